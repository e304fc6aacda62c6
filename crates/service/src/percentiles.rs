//! Percentiles of measured values.

use paceline_linux::Quantiles;
use serde::{Deserialize, Serialize};

/// Percentiles in milliseconds, as files have them. Null without measurements. The simulator has a type of its own,
/// because it knows nothing of files.
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
    /// Returns the percentiles of times, to a microsecond.
    pub fn of(times: &Quantiles) -> Self {
        let at = |fraction| {
            let ms = times.quantile(fraction).as_secs_f64() * 1e3;
            (times.count() > 0).then(|| (ms * 1e3).round() / 1e3)
        };
        Percentiles { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    }
}

#[cfg(test)]
mod tests {
    use paceline_wire::Duration;

    use super::*;

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let mut times = Quantiles::new();
        assert_eq!(Percentiles::of(&times), Percentiles::default());
        (1..=1000).for_each(|ms| times.record(Duration::from_millis(ms)));
        let percentiles = Percentiles::of(&times);
        assert!((percentiles.p50.unwrap() - 500.0).abs() < 1.0);
        assert!((percentiles.p99.unwrap() - 990.0).abs() < 1.5);
    }
}
