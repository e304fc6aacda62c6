//! Switches: the next hop of a packet by port number.

use paceline_wire::{Packet, PortId};

use super::{Hop, LinkId, NodeId, RouteBy};

/// Leads a packet on by one of its port numbers.
pub(super) struct Switch {
    pub(super) by: RouteBy,
    pub(super) ways: Vec<Option<Hop>>,
}

/// Where a packet arrives behind any number of switches.
pub(super) enum End {
    Node(NodeId, PortId),
    Link(LinkId),
}

#[inline(always)]
pub(super) fn resolve(switches: &[Switch], to: Hop, packet: &Packet) -> Option<End> {
    match to {
        Hop::Node(node, port) => Some(End::Node(node, port)),
        Hop::Link(link) => Some(End::Link(link)),
        Hop::Switch(switch) => match switches[switch.0 as usize].way(packet)? {
            // The usual case: one switch, and a node behind it.
            Hop::Node(node, port) => Some(End::Node(node, port)),
            to => resolve_far(switches, to, packet),
        },
    }
}

/// Follows a packet behind a switch. More hops than there are switches mean a circle.
fn resolve_far(switches: &[Switch], mut to: Hop, packet: &Packet) -> Option<End> {
    for _ in 0..=switches.len() {
        match to {
            Hop::Node(node, port) => return Some(End::Node(node, port)),
            Hop::Link(link) => return Some(End::Link(link)),
            Hop::Switch(next) => to = switches[next.0 as usize].way(packet)?,
        }
    }
    None
}

impl Switch {
    #[inline]
    pub(super) fn way(&self, packet: &Packet) -> Option<Hop> {
        self.ways.get(usize::from(self.by.port_of(packet)?)).copied().flatten()
    }
}

impl RouteBy {
    /// Returns this port number of a packet. TCP and UDP have their ports in the same place.
    #[inline]
    pub fn port_of(self, packet: &Packet) -> Option<u16> {
        let header = packet.header();
        let ports = match packet.tcp_offset() {
            Some(tcp) => tcp,
            None if header.first()? >> 4 == 4 => usize::from(header[0] & 0xf) * 4,
            None => IPV6_HEADER_LEN,
        };
        let &[a, b, c, d] = header.get(ports..)?.first_chunk()?;
        Some(match self {
            RouteBy::SourcePort => u16::from_be_bytes([a, b]),
            RouteBy::DestinationPort => u16::from_be_bytes([c, d]),
        })
    }
}

const IPV6_HEADER_LEN: usize = 40;
