//! How long a subscriber's packets may wait before its radio link: little on a steady one, more where its rate varies.

use paceline_wire::{Duration, Instant, Rate};

/// Follows one link by how far its rate was off what had been forecast ([`crate::bound`]).
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct QueueTarget {
    /// Mean error of the forecast, in thousandths of the forecast.
    error_permille: u64,
    at: Instant,
    /// How much of the past is in the mean, up to [`MEMORY`].
    watched: Duration,
    varies: bool,
    /// The buffer before the link overflowed then.
    overflowed: Option<Instant>,
}

/// Our choice: a step of the rate is over in a second or two and no reason; a link that fades does so for tens of seconds.
const MEMORY: Duration = Duration::from_secs(5);
/// As long as BBR keeps its shortest round trip: who shares the buffer has come back by then.
const OVERFLOW_LASTS: Duration = Duration::from_secs(10);
/// How often the mean is brought up to date.
const STEP: Duration = Duration::from_millis(100);
/// By measurement (docs/auto.md): steady links stay below a tenth, recorded ones lie above a fifth.
const VARIES_PERMILLE: u64 = 150;
const STEADY_PERMILLE: u64 = 75;
/// By measurement (docs/auto.md): on recorded links half as much loses one percent of the throughput and a third of the delay, twice as
/// much gains nothing that can be told.
const QUEUE: Duration = Duration::from_millis(100);
const SUPPLY: Duration = Duration::from_millis(200);
/// Our choice: the first seconds of a link, with slow starts in them, say little of it.
const WATCHED_MIN: Duration = Duration::from_secs(3);

impl QueueTarget {
    /// The link varied of late. Returns the target, unless something has been measured since.
    pub(crate) fn begin_varying(&mut self) -> Option<Duration> {
        if self.at > Instant::ZERO || self.overflowed.is_some() || self.varies {
            return None;
        }
        (self.error_permille, self.watched, self.varies) = (2 * VARIES_PERMILLE, MEMORY, true);
        self.queue()
    }

    /// The forecast was `forecast` and off by `error`. Returns the new target when it changes.
    pub(crate) fn on_forecast(&mut self, now: Instant, forecast: Rate, error: Rate) -> Option<bool> {
        let passed = now.saturating_since(self.at);
        let overflows = self.overflowed.is_some_and(|at| now.saturating_since(at) < OVERFLOW_LASTS);
        if forecast.is_zero() || passed < STEP || overflows {
            return None;
        }
        // A flow that comes back after a break begins anew.
        let passed = if self.at == Instant::ZERO || passed > MEMORY { STEP } else { passed };
        self.at = now;
        let sample =
            (error.as_bytes_per_sec().saturating_mul(1_000) / forecast.as_bytes_per_sec()).min(1_000);
        let (old, new) = (self.error_permille * 1_000, sample * 1_000);
        let weight = |value: u64, time: Duration| value.saturating_mul(time.as_micros());
        let all = (self.watched + passed).as_micros();
        self.error_permille = (weight(old, self.watched) + weight(new, passed)) / all / 1_000;
        self.watched = (self.watched + passed).min(MEMORY);
        if self.watched < WATCHED_MIN {
            return None;
        }
        let varies = match self.varies {
            true => self.error_permille > STEADY_PERMILLE,
            false => self.error_permille > VARIES_PERMILLE,
        };
        (core::mem::replace(&mut self.varies, varies) != varies).then_some(varies)
    }

    /// Another sender's queue stands there, or the buffer overflowed: what that does to the rate is no variation of the link, and a
    /// longer queue of ours would gain nothing.
    pub(crate) fn forget(&mut self, now: Instant) -> Option<bool> {
        let varied = self.varies;
        *self = QueueTarget { overflowed: Some(now), ..QueueTarget::default() };
        varied.then_some(false)
    }

    /// The queue that is aimed at; none for the bound's own.
    pub(crate) fn queue(&self) -> Option<Duration> {
        self.varies.then_some(QUEUE)
    }

    /// What a flow's server may have waiting here; none for the configured target.
    pub(crate) fn supply(&self) -> Option<Duration> {
        self.varies.then_some(SUPPLY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it varies after so many steps of 100 ms with an error of so many percent.
    fn after(target: &mut QueueTarget, from_ms: u64, steps: u64, percent: u64) -> bool {
        for step in 1..=steps {
            let now = Instant::ZERO + Duration::from_millis(from_ms + 100 * step);
            target.on_forecast(now, Rate::from_mbps(8.0), Rate::from_mbps(0.08 * percent as f64));
        }
        target.queue().is_some()
    }

    #[test]
    fn a_step_is_no_variation_and_fading_is() {
        let mut target = QueueTarget::default();
        assert!(!after(&mut target, 0, 300, 3));
        assert!(!after(&mut target, 30_000, 8, 80), "a step");
        assert!(!after(&mut target, 31_000, 100, 3));
        assert!(after(&mut target, 42_000, 150, 25), "fading");
        assert!(!after(&mut target, 60_000, 200, 3), "steady again");
    }
}
