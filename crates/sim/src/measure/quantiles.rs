//! Distributions of times: bounded memory, three significant digits.

use hdrhistogram::Histogram;
use paceline_wire::Duration;

/// Times seen, as a histogram of microseconds. It has room for what was seen and no more, for every flow has one.
#[derive(Clone, Debug)]
pub struct Quantiles {
    histogram: Histogram<u32>,
}

/// In milliseconds, to a microsecond; `None` where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// The median.
    pub p50: Option<f64>,
    /// 95 of 100 are not longer.
    pub p95: Option<f64>,
    /// 99 of 100 are not longer.
    pub p99: Option<f64>,
}

impl Quantiles {
    /// Nothing seen yet.
    pub fn new() -> Self {
        #[expect(clippy::expect_used, reason = "three digits are within the bounds of the crate")]
        let histogram = Histogram::new(3).expect("valid digits");
        Quantiles { histogram }
    }

    /// Adds one; longer than ten minutes counts as ten minutes.
    pub fn record(&mut self, time: Duration) {
        // It grows by itself, and what is cut at ten minutes always fits.
        let _ = self.histogram.record(((time.as_nanos() + 500) / 1_000).min(LONGEST_US));
    }

    /// The time that a fraction of 0 to 1 does not exceed; zero when nothing was seen.
    pub fn quantile(&self, fraction: f64) -> Duration {
        Duration::from_micros(self.histogram.value_at_quantile(fraction))
    }

    /// How many were seen.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The three that results report.
    pub fn percentiles(&self) -> Percentiles {
        if self.count() == 0 {
            return Percentiles::default();
        }
        let ms = |fraction| Some((self.quantile(fraction).as_nanos() as f64 / 1e3).round() / 1e3);
        Percentiles { p50: ms(0.5), p95: ms(0.95), p99: ms(0.99) }
    }
}

impl Default for Quantiles {
    fn default() -> Self {
        Self::new()
    }
}

const LONGEST_US: u64 = 600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_three_digits() {
        let mut times = Quantiles::new();
        assert_eq!(times.percentiles(), Percentiles::default());
        for ms in 1..=100 {
            times.record(Duration::from_millis(ms));
        }
        let Percentiles { p50: Some(p50), p95: Some(p95), p99: Some(p99) } = times.percentiles() else {
            panic!("nothing seen")
        };
        for (ours, ms) in [(p50, 50.0), (p95, 95.0), (p99, 99.0)] {
            assert!((ours / ms - 1.0f64).abs() < 1e-3, "{ours} ms, not {ms}");
        }
    }
}
