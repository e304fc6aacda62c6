//! Percentiles of measured values.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Percentiles. Null without measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
}

impl Percentiles {
    /// Returns the percentiles of times in milliseconds, to three digits.
    pub fn of_ms(samples: impl IntoIterator<Item = f64>) -> Self {
        let Ok(mut histogram) = Histogram::<u64>::new(3) else {
            return Percentiles::default();
        };
        for ms in samples {
            // The histogram grows as needed. It refuses only values beyond 64 bits.
            let _ = histogram.record((ms.max(0.0) * 1e6) as u64);
        }
        Percentiles::of_histogram(histogram.len(), |quantile| {
            histogram.value_at_quantile(quantile) as f64 / 1e6
        })
    }

    /// Returns the percentiles of `count` samples. `at` returns a quantile in milliseconds.
    pub fn of_histogram(count: u64, at: impl Fn(f64) -> f64) -> Self {
        if count == 0 {
            return Percentiles::default();
        }
        let round = |ms: f64| Some((ms * 1e3).round() / 1e3);
        Percentiles { p50: round(at(0.5)), p95: round(at(0.95)), p99: round(at(0.99)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let percentiles = Percentiles::of_ms((1..=1000).map(f64::from));
        assert!((percentiles.p50.unwrap() - 500.0).abs() < 1.0);
        assert!((percentiles.p99.unwrap() - 990.0).abs() < 1.5);
        assert_eq!(Percentiles::of_ms([]), Percentiles::default());
    }
}
