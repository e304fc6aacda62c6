//! Packets for tests.

use core::net::{Ipv4Addr, SocketAddr};

use paceline_wire::{Flags, FlowKey, Packet, Payload, Seq, TcpRepr};

/// The n-th flow.
pub(crate) fn key(n: u16) -> FlowKey {
    FlowKey::new(
        SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 80)),
        SocketAddr::from((Ipv4Addr::new(198, 51, 100, 1), 1_024 + n)),
    )
}

/// A segment without options.
pub(crate) fn segment(key: FlowKey, seq: u32, payload_len: u32) -> Packet {
    let tcp = TcpRepr { seq: Seq(seq), flags: Flags::ACK, window: 1_000, ..TcpRepr::default() };
    Packet::build_tcp(key, &tcp, Payload::Length(payload_len))
}

/// A SYN.
pub(crate) fn syn(key: FlowKey, seq: u32) -> Packet {
    let tcp = TcpRepr { seq: Seq(seq), flags: Flags::SYN, window: 1_000, ..TcpRepr::default() };
    Packet::build_tcp(key, &tcp, Payload::Length(0))
}

/// A segment of `ip_bytes`, at least 40, with its number as the sequence number.
pub(crate) fn numbered(number: u32, ip_bytes: u32) -> Packet {
    segment(key(0), number, ip_bytes - 40)
}

/// The number of a segment that [`numbered`] made.
pub(crate) fn number_of(packet: &Packet) -> u32 {
    packet.tcp().unwrap().seq().0
}
