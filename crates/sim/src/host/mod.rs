//! The nodes of a simulation.

mod datagrams;
mod ping;
mod port;
mod stream;
mod tcp;

use paceline_adhoc::AdHoc;
use paceline_gateway::Gateway;
use paceline_wire::{Instant, Node, Packet, PortId};

pub(crate) use datagrams::{DatagramSink, DatagramSource};
pub(crate) use ping::{PingClient, PingServer};
pub use port::HOST;
pub use tcp::{Plan, TcpHost, TcpSetup, TransferEnd};

/// A node of a simulated path. Hosts have the port 0.
pub(crate) enum SimNode {
    Gateway(Box<Gateway>),
    AdHoc(Box<AdHoc>),
    Tcp(Box<TcpHost>),
    DatagramSource(DatagramSource),
    DatagramSink(DatagramSink),
    PingClient(PingClient),
    PingServer(PingServer),
}

impl Node for SimNode {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        match self {
            SimNode::Tcp(node) => node.handle_packet(arrival, port, packet),
            SimNode::Gateway(node) => node.handle_packet(arrival, port, packet),
            SimNode::AdHoc(node) => node.handle_packet(arrival, port, packet),
            SimNode::DatagramSource(node) => node.handle_packet(arrival, port, packet),
            SimNode::DatagramSink(node) => node.handle_packet(arrival, port, packet),
            SimNode::PingClient(node) => node.handle_packet(arrival, port, packet),
            SimNode::PingServer(node) => node.handle_packet(arrival, port, packet),
        }
    }

    #[inline(always)]
    fn handle_borrowed(&mut self, arrival: Instant, port: PortId, packet: &Packet) {
        match self {
            SimNode::Tcp(node) => node.handle_borrowed(arrival, port, packet),
            SimNode::Gateway(node) => node.handle_borrowed(arrival, port, packet),
            SimNode::AdHoc(node) => node.handle_borrowed(arrival, port, packet),
            SimNode::DatagramSource(node) => node.handle_borrowed(arrival, port, packet),
            SimNode::DatagramSink(node) => node.handle_borrowed(arrival, port, packet),
            SimNode::PingClient(node) => node.handle_borrowed(arrival, port, packet),
            SimNode::PingServer(node) => node.handle_borrowed(arrival, port, packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            SimNode::Tcp(node) => node.handle_timeout(now),
            SimNode::Gateway(node) => node.handle_timeout(now),
            SimNode::AdHoc(node) => node.handle_timeout(now),
            SimNode::DatagramSource(node) => node.handle_timeout(now),
            SimNode::DatagramSink(node) => node.handle_timeout(now),
            SimNode::PingClient(node) => node.handle_timeout(now),
            SimNode::PingServer(node) => node.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        match self {
            SimNode::Tcp(node) => node.poll_transmit(now),
            SimNode::Gateway(node) => node.poll_transmit(now),
            SimNode::AdHoc(node) => node.poll_transmit(now),
            SimNode::DatagramSource(node) => node.poll_transmit(now),
            SimNode::DatagramSink(node) => node.poll_transmit(now),
            SimNode::PingClient(node) => node.poll_transmit(now),
            SimNode::PingServer(node) => node.poll_transmit(now),
        }
    }

    #[inline(always)]
    fn transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<PortId> {
        match self {
            SimNode::Tcp(node) => node.transmit_into(now, packet),
            SimNode::Gateway(node) => node.transmit_into(now, packet),
            SimNode::AdHoc(node) => node.transmit_into(now, packet),
            SimNode::DatagramSource(node) => node.transmit_into(now, packet),
            SimNode::DatagramSink(node) => node.transmit_into(now, packet),
            SimNode::PingClient(node) => node.transmit_into(now, packet),
            SimNode::PingServer(node) => node.transmit_into(now, packet),
        }
    }

    #[inline(always)]
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            SimNode::Tcp(node) => node.poll_timeout(),
            SimNode::Gateway(node) => node.poll_timeout(),
            SimNode::AdHoc(node) => node.poll_timeout(),
            SimNode::DatagramSource(node) => node.poll_timeout(),
            SimNode::DatagramSink(node) => node.poll_timeout(),
            SimNode::PingClient(node) => node.poll_timeout(),
            SimNode::PingServer(node) => node.poll_timeout(),
        }
    }
}
