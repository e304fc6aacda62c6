//! The smallest round-trip time of a recent window, in constant space.

use paceline_tcp::WindowedMin;
use paceline_wire::{Duration, Instant};

/// A queue that has not emptied for this time is standing (the bad queue of RFC 8289, Section 3). The RFC's interval of
/// 100 ms is for a router; ours is some round trips of a radio link.
pub(crate) const STANDING: Duration = Duration::from_millis(250);

/// Windowed minimum that keeps three samples (`tcp/src/filter.rs`): O(1), and a minimum is stale for at most a window.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(from = "written::SerializedRttMin", into = "written::SerializedRttMin")]
pub struct RttMin {
    window: Duration,
    filter: WindowedMin,
}

/// No sample, in nanoseconds: no round-trip time is this long.
const NONE: u64 = u64::MAX;

impl RttMin {
    /// An empty filter over `window`.
    pub const fn new(window: Duration) -> Self {
        RttMin { window, filter: WindowedMin::new(0, NONE) }
    }

    /// The smallest round-trip time of the window that ended with the last sample.
    pub fn get(&self) -> Option<Duration> {
        (self.filter.get() != NONE).then(|| Duration::from_nanos(self.filter.get()))
    }

    /// Forgets the past: `rtt` is the minimum from now on.
    pub fn reset(&mut self, now: Instant, rtt: Duration) {
        self.filter.reset(now.as_nanos(), rtt.as_nanos());
    }

    /// Adds a sample and returns the minimum.
    pub fn update(&mut self, now: Instant, rtt: Duration) -> Duration {
        Duration::from_nanos(self.filter.update(self.window.as_nanos(), now.as_nanos(), rtt.as_nanos()))
    }
}

/// The serialised form for another process.
mod written {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    pub(super) struct SerializedRttMin {
        window: Duration,
        best: Option<[Sample; 3]>,
    }

    #[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
    struct Sample {
        at: Instant,
        rtt: Duration,
    }

    impl From<RttMin> for SerializedRttMin {
        fn from(min: RttMin) -> Self {
            let sample = |(at, rtt)| Sample { at: Instant::from_nanos(at), rtt: Duration::from_nanos(rtt) };
            SerializedRttMin { window: min.window, best: min.get().map(|_| min.filter.samples().map(sample)) }
        }
    }

    impl From<SerializedRttMin> for RttMin {
        fn from(written: SerializedRttMin) -> Self {
            let sample = |sample: Sample| (sample.at.as_nanos(), sample.rtt.as_nanos());
            let filter = written.best.map(|best| WindowedMin::from_samples(best.map(sample)));
            RttMin { window: written.window, filter: filter.unwrap_or(RttMin::new(written.window).filter) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_of_a_window_is_kept_and_then_forgotten() {
        let mut filter = RttMin::new(Duration::from_millis(1_000));
        assert_eq!(filter.get(), None);
        for (at, rtt, min) in
            [(0, 50, 50), (10, 40, 40), (20, 60, 40), (1_000, 80, 40), (1_020, 80, 80), (5_000, 90, 90)]
        {
            let min = Duration::from_millis(min);
            assert_eq!(filter.update(Instant::from_nanos(at * 1_000_000), Duration::from_millis(rtt)), min);
            assert_eq!(filter.get(), Some(min));
        }
    }
}
