//! Distributions of times: bounded memory, three significant digits.

use hdrhistogram::Histogram;
use paceline_wire::Duration;

/// Distribution of times. Every flow has one, and a histogram takes 40 KB. So a few times are kept as they are, and
/// many are counted in a histogram of microseconds. Both give the same quantiles. A live run has few distributions and
/// short times, and counts nanoseconds (`Quantiles` of `crates/linux`).
#[derive(Clone, Debug)]
pub struct Quantiles {
    seen: Seen,
}

#[derive(Clone, Debug)]
enum Seen {
    /// Microseconds.
    Few(Vec<u32>),
    Many(Box<Histogram<u32>>),
}

/// Percentiles in milliseconds, to a microsecond; `None` if nothing was measured. Those of `crates/service` are part of
/// a file format.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// The median.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
}

impl Quantiles {
    /// Returns an empty distribution.
    pub fn new() -> Self {
        Quantiles { seen: Seen::Few(Vec::new()) }
    }

    /// Adds a time. A time above ten minutes counts as ten minutes.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        let us = ((time.as_nanos() + 500) / 1_000).min(LONGEST_US);
        match &mut self.seen {
            // The histogram resizes itself. No time exceeds ten minutes, so every time fits.
            Seen::Many(histogram) => {
                let _ = histogram.record(us);
            }
            Seen::Few(times) if times.len() < FEW_MAX => times.push(us as u32),
            Seen::Few(_) => self.count_from_now_on(us),
        }
    }

    fn count_from_now_on(&mut self, us: u64) {
        let Seen::Few(times) = &self.seen else { return };
        let mut histogram = histogram();
        for us in times.iter().copied().map(u64::from).chain([us]) {
            let _ = histogram.record(us);
        }
        self.seen = Seen::Many(Box::new(histogram));
    }

    /// Returns the time that this fraction (0 to 1) of all times does not exceed; zero if there are none.
    pub fn quantile(&self, fraction: f64) -> Duration {
        let [time] = self.quantiles([fraction]);
        time
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        match &self.seen {
            Seen::Few(times) => times.len() as u64,
            Seen::Many(histogram) => histogram.len(),
        }
    }

    /// The three percentiles that results report.
    pub fn percentiles(&self) -> Percentiles {
        if self.count() == 0 {
            return Percentiles::default();
        }
        let ms = |time: Duration| Some((time.as_nanos() as f64 / 1e3).round() / 1e3);
        let [p50, p95, p99] = self.quantiles([0.5, 0.95, 0.99]).map(ms);
        Percentiles { p50, p95, p99 }
    }

    fn quantiles<const N: usize>(&self, fractions: [f64; N]) -> [Duration; N] {
        let times = match &self.seen {
            Seen::Many(histogram) => {
                return fractions
                    .map(|fraction| Duration::from_micros(histogram.value_at_quantile(fraction)));
            }
            Seen::Few(times) => times,
        };
        let mut sorted = times.clone();
        sorted.sort_unstable();
        // Rounds as the histogram does.
        let scale = histogram();
        fractions.map(|fraction| {
            let rank = (fraction.min(1.0) * sorted.len() as f64).ceil() as usize;
            let us = sorted.get(rank.max(1) - 1).map_or(0, |&us| scale.highest_equivalent(us.into()));
            Duration::from_micros(us)
        })
    }
}

#[expect(clippy::expect_used, reason = "three digits are within the bounds of the crate")]
fn histogram() -> Histogram<u32> {
    Histogram::new(3).expect("valid digits")
}

impl Default for Quantiles {
    fn default() -> Self {
        Self::new()
    }
}

const LONGEST_US: u64 = 600_000_000;
/// Our choice: these take a tenth of the memory of a histogram of a tenth of a second.
const FEW_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn few_give_the_quantiles_that_a_histogram_gives(
            times in prop::collection::vec(0u64..3_000_000, 1..60), fraction in 0.01f64..1.0,
        ) {
            let (mut few, mut many) = (Quantiles::new(), Quantiles { seen: Seen::Many(Box::new(histogram())) });
            for us in &times {
                few.record(Duration::from_micros(*us));
                many.record(Duration::from_micros(*us));
            }
            prop_assert_eq!(few.quantile(fraction), many.quantile(fraction));
            prop_assert_eq!(few.percentiles(), many.percentiles());
        }
    }

    #[test]
    fn few_become_many() {
        let mut times = Quantiles::new();
        for us in 0..3_000 {
            times.record(Duration::from_micros(us));
        }
        assert!(matches!(times.seen, Seen::Many(_)));
        assert_eq!((times.count(), times.quantile(0.5)), (3_000, Duration::from_micros(1_499)));
    }

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
