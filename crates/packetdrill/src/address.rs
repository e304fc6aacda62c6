//! `struct sockaddr` of IPv4 and IPv6.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// Returns the address at `from`, or `None` for another family.
///
/// # Safety
/// `from` points to `len` bytes.
pub(crate) unsafe fn read(from: *const sockaddr, len: socklen_t) -> Option<SocketAddr> {
    let len = len as usize;
    if from.is_null() || len < size_of::<sa_family_t>() {
        return None;
    }
    // SAFETY: the family lies within `len`, and so does each struct that is read below.
    let family = c_family(unsafe { (*from).sa_family });
    match family {
        libc::AF_INET if len >= size_of::<sockaddr_in>() => {
            // SAFETY: see above.
            let v4 = unsafe { from.cast::<sockaddr_in>().read_unaligned() };
            let address = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::new(address.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 if len >= size_of::<sockaddr_in6>() => {
            // SAFETY: see above.
            let v6 = unsafe { from.cast::<sockaddr_in6>().read_unaligned() };
            Some(SocketAddr::new(Ipv6Addr::from(v6.sin6_addr.s6_addr).into(), u16::from_be(v6.sin6_port)))
        }
        _ => None,
    }
}

/// Writes `address` to `to`, if that is not null and has room.
///
/// # Safety
/// `to` points to `*len` bytes, or one of them is null.
pub(crate) unsafe fn write(address: SocketAddr, to: *mut sockaddr, len: *mut socklen_t) {
    if to.is_null() || len.is_null() {
        return;
    }
    let port = address.port().to_be();
    // SAFETY: `len` is not null, and the structs are written only where they fit. All-zero bytes are valid for both.
    unsafe {
        match address.ip() {
            IpAddr::V4(v4) if *len as usize >= size_of::<sockaddr_in>() => {
                let mut out: sockaddr_in = std::mem::zeroed();
                (out.sin_family, out.sin_port) = (libc::AF_INET as sa_family_t, port);
                out.sin_addr.s_addr = u32::from(v4).to_be();
                to.cast::<sockaddr_in>().write_unaligned(out);
                *len = size_of::<sockaddr_in>() as socklen_t;
            }
            IpAddr::V6(v6) if *len as usize >= size_of::<sockaddr_in6>() => {
                let mut out: sockaddr_in6 = std::mem::zeroed();
                (out.sin6_family, out.sin6_port) = (libc::AF_INET6 as sa_family_t, port);
                out.sin6_addr.s6_addr = v6.octets();
                to.cast::<sockaddr_in6>().write_unaligned(out);
                *len = size_of::<sockaddr_in6>() as socklen_t;
            }
            _ => {}
        }
    }
}

fn c_family(family: sa_family_t) -> i32 {
    i32::from(family)
}
