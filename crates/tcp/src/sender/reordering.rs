//! Reordering: how far segments were overtaken by later ones.

use crate::detection::DUP_THRESH;

/// Linux net.ipv4.tcp_max_reordering.
const REORDERING_MAX: u32 = 300;

/// What was seen of reordering.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Reordering {
    /// So many segments may overtake one that is not lost.
    #[serde(rename = "reordering")]
    pub(crate) distance: u32,
    /// How often it was seen.
    #[serde(rename = "reord_seen")]
    pub(crate) seen: u32,
    /// The longest that detection was not told of yet, in segments.
    #[serde(rename = "reordered_by")]
    untold: u32,
}

impl Default for Reordering {
    fn default() -> Self {
        Reordering { distance: DUP_THRESH, seen: 0, untold: 0 }
    }
}

impl Reordering {
    /// What arrived at `low` was not sent again, and something above it had arrived before, up to `fack`.
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

    /// The longest since the last call.
    pub(super) fn take_longest(&mut self) -> u32 {
        core::mem::take(&mut self.untold)
    }

    /// A timeout outside an episode, though so many segments had arrived beyond the first: it waited for too many.
    pub(super) fn on_timeout(&mut self, sacked_out: u32) {
        if sacked_out >= self.distance {
            self.distance = self.distance.min(DUP_THRESH);
        }
    }
}
