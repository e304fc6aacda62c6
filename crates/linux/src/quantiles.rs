//! Distributions of times: bounded memory, three significant digits.

use hdrhistogram::Histogram;
use paceline_wire::Duration;

/// A histogram of recorded times in nanoseconds. The simulator's type rounds to microseconds, and saves memory for
/// thousands of flows. A packet's time in a gateway needs more digits.
#[derive(Clone, Debug)]
pub struct Quantiles {
    histogram: Histogram<u64>,
}

impl Quantiles {
    /// Returns an empty histogram.
    pub fn new() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants within those of the crate")]
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("valid bounds");
        Quantiles { histogram }
    }

    /// Records a time. A time above ten minutes counts as ten minutes.
    pub fn record(&mut self, time: Duration) {
        self.histogram.saturating_record(time.as_nanos());
    }

    /// Adds all times of `other`.
    pub fn merge(&mut self, other: &Quantiles) {
        // The bounds are the same, so this cannot fail.
        let _ = self.histogram.add(&other.histogram);
    }

    /// Returns the time that a fraction (0 to 1) of all times does not exceed. Zero without times.
    pub fn quantile(&self, fraction: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(fraction))
    }

    /// Returns the mean. Zero without times.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.histogram.mean() as u64)
    }

    /// Returns the longest time.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }

    /// Returns the number of recorded times.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }
}

impl Default for Quantiles {
    fn default() -> Self {
        Self::new()
    }
}

const LONGEST_NS: u64 = 600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_three_digits() {
        let mut times = Quantiles::new();
        for ms in 1..=100 {
            times.record(Duration::from_millis(ms));
        }
        for (fraction, ms) in [(0.5, 50), (0.95, 95), (0.99, 99)] {
            let error = times.quantile(fraction).abs_diff(Duration::from_millis(ms));
            assert!(error <= Duration::from_micros(ms), "{fraction}: {:?}", times.quantile(fraction));
        }
        assert_eq!(times.count(), 100);
        assert_eq!(Quantiles::new().quantile(0.99), Duration::ZERO);
    }
}
