//! What comes out of a link.

use paceline_wire::{Duration, Instant, Packet};

/// A packet that has arrived at the other end.
///
/// In this order, so that what is looked at lies together: the end of a packet is room that few use.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Delivered {
    /// When it arrived: not later than the time given to `advance`.
    pub at: Instant,
    /// When it had been handed to the link.
    pub sent: Instant,
    /// From then until it left the bottleneck, less the time in which its own bytes were being sent.
    pub queue_delay: Duration,
    /// The packet.
    pub packet: Packet,
}
