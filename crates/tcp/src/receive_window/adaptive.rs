//! A lambda that follows the variation of the link.
//!
//! What a window must hold beyond one RTTmin of the mean rate is what the link could carry in its faster moments. So lambda is 1,
//! a margin, and the deviation of the rate relative to its mean.

use paceline_wire::{Duration, Rate};

/// Mean rate and its deviation, over rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdaptiveLambda {
    percent: u32,
    /// Bytes per second; zero before the first round.
    mean: u64,
    deviation: u64,
}

/// Our choice.
const MARGIN_PERCENT: u64 = 25;
/// Our choice.
const DEVIATIONS: u64 = 2;
const MAX_PERCENT: u64 = 500;

impl AdaptiveLambda {
    pub(super) fn new(percent: u32) -> Self {
        AdaptiveLambda { percent, mean: 0, deviation: 0 }
    }

    pub(super) fn percent(&self) -> u32 {
        self.percent
    }

    /// A round is over. Mean and deviation are smoothed as RFC 6298, Section 2.3, does it for RTTs.
    pub(super) fn on_round(&mut self, bytes: u64, elapsed: Duration, _rtt_est: Duration, _rtt_min: Duration) {
        let rate = Rate::from_bytes_in(bytes, elapsed).as_bytes_per_sec();
        if self.mean == 0 {
            (self.mean, self.deviation) = (rate, rate / 2);
            return;
        }
        self.deviation = self.deviation - self.deviation / 4 + self.mean.abs_diff(rate) / 4;
        self.mean = self.mean - self.mean / 8 + rate / 8;
        let share = DEVIATIONS * 100 * self.deviation / self.mean.max(1);
        self.percent = (100 + MARGIN_PERCENT + share).min(MAX_PERCENT) as u32;
    }
}
