//! What the peer has reported of what was sent, for a relay between two connections.

use paceline_wire::{Duration, Instant};

/// What the peer has reported of what was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Delivery {
    /// Bytes that have arrived, reported by SACK or cumulatively.
    pub delivered: u64,
    /// Bytes taken for lost, without those that a timeout gave up.
    pub lost: u64,
    /// The newest round-trip time of a segment that was sent once.
    pub rtt: Option<Duration>,
    /// When the segment sent last was sent, of those that have arrived.
    pub sent_at: Option<Instant>,
}
