//! Two endpoints with nothing between them. Shared by the fuzz target `endpoint` and by the replay of its corpus.

use std::collections::VecDeque;

use paceline_wire::{Instant, Node, Packet, PortId};

use crate::world::{Middle, World};

/// `data` has the hosts' configurations, then the events, a few bytes each.
pub(crate) fn endpoint(data: &[u8]) {
    World::new(data, Wire::default()).run();
}

/// Forwards everything.
#[derive(Default)]
struct Wire(VecDeque<(PortId, Packet)>);

impl Node for Wire {
    fn handle_packet(&mut self, _: Instant, port: PortId, packet: Packet) {
        self.0.push_back((PortId(1 - port.0.min(1)), packet));
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant) -> Option<(PortId, Packet)> {
        self.0.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl Middle for Wire {
    fn makes_acks(&self) -> bool {
        false
    }
}
