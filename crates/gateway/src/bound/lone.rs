//! How long a packet takes that finds nothing of ours on its way.

use paceline_wire::{Duration, Instant};

/// Fewer say nothing.
const SAMPLES: u32 = 4;

#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Lone {
    /// Nothing was outstanding then, and nothing that left since was reported.
    empty: Option<Instant>,
    mean: Duration,
    samples: u32,
    at: Instant,
}

impl Lone {
    /// What left `rtt` ago was reported; `outstanding` bytes are on their way.
    pub(super) fn on_rtt(&mut self, now: Instant, rtt: Duration, outstanding: u64, window: Duration) {
        if now.saturating_since(self.at) > window {
            self.samples = 0;
        }
        if let Some(since) = self.empty
            && now - rtt >= since
        {
            self.empty = None;
            // Else the client may have waited for a second packet.
            if outstanding > 0 {
                self.samples = (self.samples + 1).min(16);
                let gain = u64::from(self.samples);
                self.mean = if self.samples == 1 { rtt } else { self.mean.mul_ratio(gain - 1, gain) + rtt / gain };
                self.at = now;
            }
        }
        if outstanding == 0 {
            self.empty = Some(now);
        }
    }

    /// Longer than `rtt_min` by so much.
    pub(super) fn beyond(&self, now: Instant, rtt_min: Duration, window: Duration) -> Duration {
        if self.samples < SAMPLES || now.saturating_since(self.at) > window {
            return Duration::ZERO;
        }
        self.mean.saturating_sub(rtt_min)
    }
}
