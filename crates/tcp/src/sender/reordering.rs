//! Reordering: the distance by which later segments overtook earlier ones.

use crate::detection::DUP_THRESH;

/// Linux net.ipv4.tcp_max_reordering.
const REORDERING_MAX: u32 = 300;

/// The observed reordering.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Reordering {
    /// Number of segments that may overtake one that is not lost.
    #[serde(rename = "reordering")]
    pub(crate) distance: u32,
    /// Number of times that reordering was observed.
    #[serde(rename = "reord_seen")]
    pub(crate) seen: u32,
    /// The longest distance not yet reported to the loss detection, in segments.
    #[serde(rename = "reordered_by")]
    untold: u32,
}

impl Default for Reordering {
    fn default() -> Self {
        Reordering { distance: DUP_THRESH, seen: 0, untold: 0 }
    }
}

impl Reordering {
    /// Notes reordering: the segment at `low` arrived without retransmission, after segments above it up to `fack`.
    #[inline(never)]
    pub(super) fn note(&mut self, low: u64, fack: u64, mss: u32) {
        if low >= fack {
            return;
        }
        let distance = (fack - low).div_ceil(u64::from(mss));
        if distance > u64::from(self.distance) {
            self.distance = (distance as u32).min(REORDERING_MAX);
        }
        self.seen += 1;
        self.untold = self.untold.max(distance as u32);
    }

    /// Returns the longest distance since the last call.
    pub(super) fn take_longest(&mut self) -> u32 {
        core::mem::take(&mut self.untold)
    }

    /// Handles a timeout outside an episode. If `sacked_out` segments had arrived and recovery still did not begin, the
    /// distance was too long.
    pub(super) fn on_timeout(&mut self, sacked_out: u32) {
        if sacked_out >= self.distance {
            self.distance = self.distance.min(DUP_THRESH);
        }
    }
}
