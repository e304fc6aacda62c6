//! The peer's reports about sent data, for a relay between two connections.

use paceline_wire::{Duration, Instant};

/// The peer's reports about sent data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Delivery {
    /// Bytes that have arrived, reported by SACK or cumulatively.
    pub delivered: u64,
    /// Bytes marked as lost, without those that a timeout gave up.
    pub lost: u64,
    /// The newest round-trip time of a segment that was sent once.
    pub rtt: Option<Duration>,
    /// Departure time of the segment sent last among those that have arrived.
    pub sent_at: Option<Instant>,
}
