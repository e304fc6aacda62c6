//! Statistics of a trace.

use alloc::vec::Vec;

use paceline_wire::{Duration, Rate};

use super::{OPPORTUNITY_BYTES, Trace};

/// The rate of a trace over consecutive windows.
#[derive(Clone, Debug, PartialEq)]
pub struct RateStats {
    /// The length of a window.
    pub window: Duration,
    /// The number of whole windows in a period, at least one. A period shorter than the window is itself the window.
    pub windows: usize,
    /// The rate over the whole period.
    pub mean: Rate,
    /// Coefficient of variation of the windows' rates: standard deviation / mean. Zero for a mean of zero.
    pub variation: f64,
    /// Rate of the slowest window.
    pub min: Rate,
    /// 5 % of the windows are at or below this.
    pub p5: Rate,
    /// Median rate of the windows.
    pub p50: Rate,
    /// 95 % of the windows are at or below this.
    pub p95: Rate,
    /// Rate of the fastest window.
    pub max: Rate,
}

/// A pause between two opportunities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Time of the last opportunity before it, since the start of the trace.
    pub start: Duration,
    /// Time until the next opportunity.
    pub length: Duration,
}

impl Trace {
    /// Mean, variation and percentiles (nearest rank) of the rate over windows of the given length.
    pub fn rate_stats(&self, window: Duration) -> RateStats {
        let window = window.min(self.period()).max(Duration::from_nanos(1));
        let windows = (self.period().as_nanos() / window.as_nanos()) as usize;
        let counts: Vec<u64> = self.window_counts(window, windows);
        let mut sorted = counts.clone();
        sorted.sort_unstable();
        let rate = |count: u64| Rate::from_bytes_in(count * OPPORTUNITY_BYTES, window);
        let percentile = |percent: usize| rate(sorted[(windows * percent).div_ceil(100).saturating_sub(1)]);
        RateStats {
            window,
            windows,
            mean: self.mean_rate(),
            variation: variation(&counts),
            min: percentile(0),
            p5: percentile(5),
            p50: percentile(50),
            p95: percentile(95),
            max: percentile(100),
        }
    }

    /// Pauses of at least the given length, in order. The pause between the end of a period and the first opportunity
    /// of the next is last.
    pub fn pauses(&self, at_least: Duration) -> Vec<Pause> {
        let at = |at_ms: u32| Duration::from_millis(u64::from(at_ms));
        let times = self.counts().map(|(at_ms, _)| at(at_ms));
        let wrapped = self.counts().next().map(|(at_ms, _)| self.period() + at(at_ms));
        times
            .clone()
            .zip(times.skip(1).chain(wrapped))
            .map(|(start, next)| Pause { start, length: next - start })
            .filter(|pause| pause.length >= at_least)
            .collect()
    }

    fn window_counts(&self, window: Duration, windows: usize) -> Vec<u64> {
        let mut before = 0;
        (1..=windows as u64)
            .map(|index| {
                let through = self.opportunities_before(window * index);
                through - core::mem::replace(&mut before, through)
            })
            .collect()
    }
}

/// Standard deviation / mean.
fn variation(counts: &[u64]) -> f64 {
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<u64>() as f64 / n;
    if mean == 0.0 {
        return 0.0;
    }
    let variance =
        counts.iter().map(|count| (*count as f64 - mean) * (*count as f64 - mean)).sum::<f64>() / n;
    libm::sqrt(variance) / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_counted_and_ranked() {
        // Two opportunities in the first half of each second, none in the second half.
        let times = (0..10).flat_map(|second| [second * 1_000, second * 1_000 + 499]).chain([10_000]);
        let trace = Trace::from_opportunities(times).unwrap();
        let stats = trace.rate_stats(Duration::from_millis(500));
        assert_eq!((stats.windows, stats.min, stats.p50), (20, Rate::ZERO, Rate::ZERO));
        assert_eq!(
            (stats.p95, stats.max),
            (Rate::from_bytes_per_sec(6_000), Rate::from_bytes_per_sec(6_000))
        );
        assert_eq!(stats.variation, 1.0);
        assert_eq!(stats.mean, Rate::from_bytes_per_sec(3_150));
        assert_eq!(trace.rate_stats(Duration::from_secs(1)).variation, 0.0);
        assert_eq!(trace.rate_stats(Duration::from_secs(60)).windows, 1);
    }

    #[test]
    fn pauses_include_the_one_across_the_end() {
        let trace = Trace::from_opportunities([200, 210, 1_210, 1_300]).unwrap();
        let pauses = trace.pauses(Duration::from_millis(100));
        let expected = [(210, 1_000), (1_300, 200)].map(|(start, length)| Pause {
            start: Duration::from_millis(start),
            length: Duration::from_millis(length),
        });
        assert_eq!(pauses, expected);
    }
}
