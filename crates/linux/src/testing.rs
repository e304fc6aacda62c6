//! Packets for the tests of this crate.

use std::net::SocketAddr;

use paceline_wire::{FlowKey, Packet, Payload, TcpRepr};

/// Returns a TCP segment with `len` bytes. With a `gso_size` it is a super-packet.
pub(crate) fn tcp_packet(len: usize, gso_size: Option<u16>) -> Packet {
    let key = FlowKey::new(SocketAddr::from(([10, 0, 0, 1], 80)), SocketAddr::from(([10, 0, 1, 1], 4000)));
    let payload = Payload::from(vec![7; len]);
    let mut packet = Packet::build_tcp(key, &TcpRepr::default(), payload);
    packet.set_gso_size(gso_size);
    packet
}
