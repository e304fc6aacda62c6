//! A forwarder without any other work. It shows the cost of packet I/O without a gateway.

use std::collections::VecDeque;

use paceline_wire::{Instant, Node, Packet, PortId};

/// Passes packets between ports 0 and 1 in order of arrival.
#[derive(Debug, Default)]
pub struct NullForwarder {
    waiting: VecDeque<(PortId, Packet)>,
}

impl NullForwarder {
    /// Returns a forwarder with nothing to forward.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Node for NullForwarder {
    fn handle_packet(&mut self, _arrival: Instant, port: PortId, packet: Packet) {
        self.waiting.push_back((PortId(port.0 ^ 1), packet));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        self.waiting.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
