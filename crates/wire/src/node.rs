//! The interface between a driver and a gateway or an endpoint: packets and time in, packets out.

use crate::packet::Packet;
use crate::time::Instant;

/// A port of a [`Node`], numbered by the node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct PortId(pub u8);

/// Anything that turns packets and time into packets.
///
/// A driver passes arriving packets, calls `poll_transmit` until it returns `None`, sleeps until `poll_timeout`, and
/// calls `handle_timeout`. Time never goes backwards between calls. Early or repeated timeouts do nothing.
pub trait Node {
    /// Takes a packet that arrived at `arrival` on `port`. Time belongs to the packet, not to the moment of the call.
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet);

    /// Handles the timers that have expired at `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// The next packet to send and its port, or `None` when there is nothing to send at `now`. Packets of one direction
    /// of a flow stay in order.
    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)>;

    /// As [`handle_packet`](Self::handle_packet), for a packet whose memory the driver reuses. Packets are large.
    fn handle_borrowed(&mut self, arrival: Instant, port: PortId, packet: &Packet) {
        self.handle_packet(arrival, port, packet.clone());
    }

    /// As [`poll_transmit`](Self::poll_transmit), into a packet whose memory the driver reuses. If it returns `None`,
    /// the content of `packet` has no meaning.
    fn transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<PortId> {
        let (port, next) = self.poll_transmit(now)?;
        *packet = next;
        Some(port)
    }

    /// When `handle_timeout` or `poll_transmit` has something to do next; `None` when only a packet can change that.
    fn poll_timeout(&self) -> Option<Instant>;
}
