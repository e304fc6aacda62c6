//! The nodes of a simulation.

mod datagrams;

use paceline_gateway::Gateway;
use paceline_wire::{Instant, Node, Packet, PortId};

pub(crate) use datagrams::{DatagramSink, DatagramSource};

/// A node of a simulated path. Hosts stand on port 0.
pub(crate) enum SimNode {
    Gateway(Box<Gateway>),
    DatagramSource(DatagramSource),
    DatagramSink(DatagramSink),
}

impl SimNode {
    fn node(&self) -> &dyn Node {
        match self {
            SimNode::Gateway(node) => &**node,
            SimNode::DatagramSource(node) => node,
            SimNode::DatagramSink(node) => node,
        }
    }

    fn node_mut(&mut self) -> &mut dyn Node {
        match self {
            SimNode::Gateway(node) => &mut **node,
            SimNode::DatagramSource(node) => node,
            SimNode::DatagramSink(node) => node,
        }
    }
}

impl Node for SimNode {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        self.node_mut().handle_packet(arrival, port, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node_mut().handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.node_mut().poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node().poll_timeout()
    }
}

/// The port by which hosts are connected.
pub(crate) const HOST: PortId = PortId(0);
