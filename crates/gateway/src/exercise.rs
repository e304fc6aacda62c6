//! Properties that must hold for any ICMP message. The fuzz target `icmp` and the replay of its corpus share them.

use crate::icmp::parse;

/// Checks the properties for `data`, an IP packet.
pub fn icmp(data: &[u8]) {
    let Some(found) = parse(data) else { return };
    let is_v6 = data[0] >> 4 == 6;
    assert_eq!(found.source.is_ipv6(), is_v6, "the message's own protocol");
    assert_eq!((found.quoted.src.is_ipv6(), found.quoted.dst.is_ipv6()), (is_v6, is_v6));
    // RFC 8201, Section 4; net.ipv4.route.min_pmtu.
    assert!(found.mtu.is_none_or(|mtu| mtu >= if is_v6 { 1_280 } else { 552 }));
    // Nothing behind the quoted sequence number counts.
    let header = if is_v6 { 40 } else { usize::from(data[0] & 15) * 4 };
    let quoted = if is_v6 { 40 } else { usize::from(data[header + 8] & 15) * 4 };
    let end = header + 8 + quoted + 8;
    assert_eq!(parse(&data[..end]), Some(found));
    assert_eq!(parse(&data[..end - 1]), None, "cut short");
    assert_eq!(found.seq.0.to_be_bytes(), data[end - 4..end]);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn messages_replayed() {
    replay::replay("icmp", 20_000, icmp);
}
