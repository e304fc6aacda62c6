//! The packets that come out of a link.

use paceline_wire::{Duration, Instant, Packet};

/// A packet that has arrived at the other end.
///
/// The order of the fields keeps frequently used bytes together. The end of a packet is rarely used.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Delivered {
    /// Time of arrival, which is not later than the time given to `advance`.
    pub at: Instant,
    /// Time at which it was handed to the link.
    pub sent: Instant,
    /// Time from then until it left the bottleneck, minus the time in which its own bytes were being sent.
    pub queue_delay: Duration,
    /// The packet.
    pub packet: Packet,
}
