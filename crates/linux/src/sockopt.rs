//! Socket options and addresses that no safe wrapper offers.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

use paceline_wire::Rate;
use socket2::Socket;

/// Plain data that the kernel reads or fills as an option. Any bytes are a valid value.
///
/// # Safety
/// The type has no relevant padding and no pointers, and every bit pattern is valid.
pub(crate) unsafe trait OptionValue: Copy {}

// SAFETY: an integer.
unsafe impl OptionValue for i32 {}
// SAFETY: two integers.
unsafe impl OptionValue for libc::tpacket_stats {}

// SAFETY: integers and bytes, no padding.
unsafe impl OptionValue for libc::packet_mreq {}

/// Sets a socket option.
pub(crate) fn set<T: OptionValue>(socket: &impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is borrowed for the call, and the pointer and length describe `value`, which outlives it.
    let result = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads a socket option.
pub(crate) fn get<T: OptionValue>(socket: &impl AsFd, level: i32, name: i32) -> io::Result<T> {
    let fd = socket.as_fd().as_raw_fd();
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `value`, which outlives the call.
    let result = unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut len) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed or written by the kernel, and every bit pattern is a valid `OptionValue`.
    Ok(unsafe { value.assume_init() })
}

/// Limits the rate at which the kernel paces the connection (`SO_MAX_PACING_RATE`, tcp(7); at most 34 Gbit/s).
pub fn set_max_pacing_rate(socket: &impl AsFd, rate: Rate) -> io::Result<()> {
    // The kernel takes four bytes as an unsigned number. All ones mean no limit.
    let bytes_per_sec = u32::try_from(rate.as_bytes_per_sec()).unwrap_or(u32::MAX);
    set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_sec as i32)
}

/// Sets a socket option whose value is one number.
///
/// # Errors
/// The kernel does not know the option, or refuses the value.
pub fn set_option(socket: &impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    set(socket, level, name, value)
}

/// Returns `struct tcp_info` of a connection, and the length that this kernel fills. New kernels only append fields.
///
/// # Errors
/// The socket is not a TCP socket.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<([u8; 256], usize)> {
    let mut bytes = [0u8; 256];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the descriptor is borrowed for the call; the kernel writes at most `length` bytes to `bytes`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok((bytes, length as usize)) } else { Err(io::Error::last_os_error()) }
}

/// Sets the sizes of both buffers, beyond the system's limits if permitted.
pub(crate) fn set_buffers(socket: &Socket, receive_bytes: usize, send_bytes: usize) -> io::Result<()> {
    // The kernel doubles the value.
    let half = |bytes: usize| i32::try_from(bytes / 2).unwrap_or(i32::MAX);
    if set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, half(receive_bytes)).is_err() {
        socket.set_recv_buffer_size(receive_bytes / 2)?;
    }
    if set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, half(send_bytes)).is_err() {
        socket.set_send_buffer_size(send_bytes / 2)?;
    }
    Ok(())
}

/// Binds a packet socket to an interface, for all protocols.
pub(crate) fn bind_to_interface(socket: &Socket, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: pointer and length describe `address`, which outlives the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Puts the interface of a packet socket into promiscuous mode until the socket is closed.
pub(crate) fn take_all_addresses(socket: &Socket, index: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, request)
}
