//! ICMP messages about a flow: a smaller path MTU (RFC 1191, RFC 8201), or a destination that cannot be reached.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use paceline_wire::{Duration, FlowKey, Instant, Seq};

use crate::keyed::Key;

/// The contents of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IcmpError {
    /// The sender of the message.
    pub(crate) source: IpAddr,
    /// Addresses and ports of the quoted packet.
    pub(crate) quoted: FlowKey,
    /// Sequence number of the quoted packet.
    pub(crate) seq: Seq,
    /// MTU in bytes of IP, if the quoted packet was too big. Without it, the destination cannot be reached.
    pub(crate) mtu: Option<u64>,
}

/// Our choice, as Linux's net.ipv4.route.min_pmtu. RFC 791, Section 3.2, allows 68, but no link in use has less than
/// 552. With such small packets, headers would take most of a link, and anybody could forge the message.
const MTU_MIN_V4: u64 = 552;
/// Smallest MTU of IPv6 (RFC 8200, Section 5). A message with a smaller value is discarded (RFC 8201, Section 4).
const MTU_MIN_V6: u64 = 1_280;

/// Limits the number of messages read from each source.
#[derive(Debug)]
pub(crate) struct Limit {
    /// Start of the present interval, and the number of messages in it. Several sources may share a place.
    places: [(Instant, u32); PLACES],
}

const PLACES: usize = 64;
/// Our choice: a Linux router sends at most a thousand messages a second (net.ipv4.icmp_msgs_per_sec).
const INTERVAL: Duration = Duration::from_millis(100);
const MESSAGES_MAX: u32 = 100;

impl Default for Limit {
    fn default() -> Self {
        Limit { places: [(Instant::ZERO, 0); PLACES] }
    }
}

impl Limit {
    /// True if this message of `source` may be read.
    pub(crate) fn allows(&mut self, now: Instant, key: Key, source: IpAddr) -> bool {
        let (began, messages) = &mut self.places[key.hash(&source) as usize % PLACES];
        if now.saturating_since(*began) >= INTERVAL {
            (*began, *messages) = (now, 0);
        }
        *messages = messages.saturating_add(1);
        *messages <= MESSAGES_MAX
    }
}

/// Reads a message about a TCP packet. `ip` is the whole IP packet.
pub(crate) fn parse(ip: &[u8]) -> Option<IcmpError> {
    match ip.first()? >> 4 {
        4 => parse_v4(ip),
        6 => parse_v6(ip),
        _ => None,
    }
}

fn parse_v4(ip: &[u8]) -> Option<IcmpError> {
    let icmp = ip.get(header_len_v4(ip)?..)?;
    // Type 3: destination unreachable; code 4: fragmentation needed.
    if *ip.get(9)? != 1 || *icmp.first()? != 3 {
        return None;
    }
    let mtu = if *icmp.get(1)? == 4 { Some(u64::from(be16(icmp, 6)?)) } else { None };
    let inner = icmp.get(8..)?;
    if inner.first()? >> 4 != 4 || *inner.get(9)? != 6 {
        return None;
    }
    let address =
        |at: usize| Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(inner.get(at..at + 4)?).ok()?)));
    let tcp = inner.get(header_len_v4(inner)?..)?;
    let source = Ipv4Addr::from(<[u8; 4]>::try_from(ip.get(12..16)?).ok()?);
    about(source.into(), address(12)?, address(16)?, tcp, mtu)
}

/// Returns the length of the header: at least five words (RFC 791, Section 3.1). With fewer, addresses would be read as
/// ports.
fn header_len_v4(ip: &[u8]) -> Option<usize> {
    let words = ip.first()? & 15;
    (words >= 5).then_some(usize::from(words) * 4)
}

fn parse_v6(ip: &[u8]) -> Option<IcmpError> {
    let icmp = ip.get(40..)?;
    // Next header 58, type 1: destination unreachable; type 2: packet too big.
    if *ip.get(6)? != 58 {
        return None;
    }
    let mtu = match *icmp.first()? {
        1 => None,
        2 => Some(u64::from(be32(icmp, 4)?)),
        _ => return None,
    };
    let inner = icmp.get(8..)?;
    if inner.first()? >> 4 != 6 || *inner.get(6)? != 6 {
        return None;
    }
    let address =
        |at: usize| Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(inner.get(at..at + 16)?).ok()?)));
    let source = Ipv6Addr::from(<[u8; 16]>::try_from(ip.get(8..24)?).ok()?);
    about(source.into(), address(8)?, address(24)?, inner.get(40..)?, mtu)
}

fn about(source: IpAddr, src: IpAddr, dst: IpAddr, tcp: &[u8], mtu: Option<u64>) -> Option<IcmpError> {
    let mtu_min = if src.is_ipv6() { MTU_MIN_V6 } else { MTU_MIN_V4 };
    if mtu.is_some_and(|mtu| mtu < mtu_min) {
        return None;
    }
    let quoted =
        FlowKey { src: SocketAddr::new(src, be16(tcp, 0)?), dst: SocketAddr::new(dst, be16(tcp, 2)?) };
    Some(IcmpError { source, quoted, seq: Seq(be32(tcp, 4)?), mtu })
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(<[u8; 2]>::try_from(bytes.get(at..at + 2)?).ok()?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?))
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
        assert_eq!((found.mtu, found.seq), (Some(1300), Seq(1)));
        assert_eq!(found.quoted.src, "10.0.0.1:80".parse().unwrap());
        assert_eq!(found.quoted.dst, "10.0.0.2:40000".parse().unwrap());
        (0..ip.len()).for_each(|n| assert!(parse(&ip[..n]).is_none()));
        ip[21] = 3;
        assert_eq!(parse(&ip).unwrap().mtu, None);
    }

    #[test]
    fn an_mtu_below_the_smallest_of_its_protocol_is_no_message() {
        let too_big = |mtu: u32| {
            let mut ip: Vec<u8> = [0x60, 0, 0, 0, 0, 56, 58, 64].into();
            ip.extend([0x20; 32]);
            ip.extend([2, 0, 0, 0]);
            ip.extend(mtu.to_be_bytes());
            ip.extend([0x60, 0, 0, 0, 5, 180, 6, 64]);
            ip.extend([0x20; 32]);
            ip.extend([0, 80, 0x9c, 0x40, 0, 0, 0, 1]);
            parse(&ip).map(|found| found.mtu)
        };
        assert_eq!(too_big(1_280), Some(Some(1_280)));
        assert_eq!(too_big(1_279), None);
        assert_eq!(too_big(68), None);
    }
}
