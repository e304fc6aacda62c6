//! ICMP messages that tell the server of a smaller path MTU (RFC 1191, RFC 8201).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use paceline_wire::FlowKey;

/// What a "packet too big" message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooBig {
    /// The flow, with the client as source.
    pub(crate) flow: FlowKey,
    /// The MTU in bytes of IP.
    pub(crate) mtu: u64,
}

/// Smallest MTUs of the two protocols: a smaller value is a lie (RFC 791, RFC 8200).
const MTU_MIN: u64 = 68;

/// Reads a message on its way to the server; `ip` is the whole IP packet.
pub(crate) fn parse(ip: &[u8]) -> Option<TooBig> {
    match ip.first()? >> 4 {
        4 => parse_v4(ip),
        6 => parse_v6(ip),
        _ => None,
    }
}

fn parse_v4(ip: &[u8]) -> Option<TooBig> {
    let icmp = ip.get(usize::from(ip[0] & 15) * 4..)?;
    // Type 3, code 4: fragmentation needed.
    if *ip.get(9)? != 1 || icmp.get(..2)? != [3, 4] {
        return None;
    }
    let mtu = u64::from(be16(icmp, 6)?);
    let inner = icmp.get(8..)?;
    if inner.first()? >> 4 != 4 || *inner.get(9)? != 6 {
        return None;
    }
    let address =
        |at: usize| Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(inner.get(at..at + 4)?).ok()?)));
    let tcp = inner.get(usize::from(inner[0] & 15) * 4..)?;
    too_big(address(12)?, address(16)?, tcp, mtu)
}

fn parse_v6(ip: &[u8]) -> Option<TooBig> {
    let icmp = ip.get(40..)?;
    // Next header 58, type 2: packet too big.
    if *ip.get(6)? != 58 || *icmp.first()? != 2 {
        return None;
    }
    let mtu = u64::from(u32::from_be_bytes(<[u8; 4]>::try_from(icmp.get(4..8)?).ok()?));
    let inner = icmp.get(8..)?;
    if inner.first()? >> 4 != 6 || *inner.get(6)? != 6 {
        return None;
    }
    let address =
        |at: usize| Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(inner.get(at..at + 16)?).ok()?)));
    too_big(address(8)?, address(24)?, inner.get(40..)?, mtu)
}

/// The quoted packet went from the server to the client.
fn too_big(server: IpAddr, client: IpAddr, tcp: &[u8], mtu: u64) -> Option<TooBig> {
    if mtu < MTU_MIN {
        return None;
    }
    let server = SocketAddr::new(server, be16(tcp, 0)?);
    let client = SocketAddr::new(client, be16(tcp, 2)?);
    Some(TooBig { flow: FlowKey { src: client, dst: server }, mtu })
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(<[u8; 2]>::try_from(bytes.get(at..at + 2)?).ok()?))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_quoted_flow_and_the_mtu_are_read() {
        let mut ip: Vec<u8> = [0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 9, 10, 0, 0, 1].into();
        ip.extend([3, 4, 0, 0, 0, 0, 0x05, 0x14]);
        ip.extend([
            0x45, 0, 5, 220, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0x9c, 0x40, 0, 0,
            0, 1,
        ]);
        let found = parse(&ip).unwrap();
        assert_eq!(found.mtu, 1300);
        assert_eq!(found.flow.src, "10.0.0.2:40000".parse().unwrap());
        assert_eq!(found.flow.dst, "10.0.0.1:80".parse().unwrap());
        (0..ip.len()).for_each(|n| assert!(n > 51 || parse(&ip[..n]).is_none()));
    }
}
