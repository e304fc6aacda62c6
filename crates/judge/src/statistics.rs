//! Means with 95 % intervals: one sample against a number, and two samples against each other (Welch).

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A quantity over several runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample(Vec<f64>);

/// An estimate with its 95 % confidence interval; the interval is a point when there was only one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// The estimate.
    pub mean: f64,
    /// Its upper end.
    pub high: f64,
}

/// An estimate and half the width of its 95 % interval, which is infinite when there were too few runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The interval is the mean plus and minus this.
    pub half_width: f64,
}

impl Sample {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean; not a number without values.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The smallest value.
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The largest value.
    pub fn greatest(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The middle value, or the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
    }

    /// The value that the given part of the sample does not exceed (nearest rank).
    pub fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (part * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
    }

    /// The mean with its interval (Student).
    pub fn estimate(&self) -> Estimate {
        let half_width = student_quantile(self.len() as f64 - 1.0) * self.variance_of_mean().sqrt();
        Estimate { mean: self.mean(), half_width }
    }

    /// `self` minus `other` (Welch).
    pub fn minus(&self, other: &Sample) -> Estimate {
        self.less(1.0, other)
    }

    fn less(&self, factor: f64, other: &Sample) -> Estimate {
        let mean = self.mean() - factor * other.mean();
        let (a, b) = (self.variance_of_mean(), factor * factor * other.variance_of_mean());
        if a + b == 0.0 {
            return Estimate { mean, half_width: 0.0 };
        }
        let weigh = |part: f64, sample: &Sample| part * part / (sample.len() as f64 - 1.0);
        let freedom = (a + b).powi(2) / (weigh(a, self) + weigh(b, other));
        Estimate { mean, half_width: student_quantile(freedom) * (a + b).sqrt() }
    }

    /// The mean's interval (Student).
    pub fn interval(&self) -> Interval {
        Interval::of(self.estimate())
    }

    /// The interval of `self.mean() - factor * other.mean()` (Welch).
    pub fn minus_scaled(&self, factor: f64, other: &Sample) -> Interval {
        Interval::of(self.less(factor, other))
    }

    fn variance_of_mean(&self) -> f64 {
        let (mean, n) = (self.mean(), self.0.len() as f64);
        self.0.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n
    }
}

impl Interval {
    fn of(Estimate { mean, half_width }: Estimate) -> Self {
        let half_width = if half_width.is_finite() { half_width } else { 0.0 };
        Interval { low: mean - half_width, mean, high: mean + half_width }
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Sample(values.into_iter().collect())
    }
}

impl Estimate {
    /// True if the interval contains `value`.
    pub fn holds(&self, value: f64) -> bool {
        (self.mean - value).abs() <= self.half_width
    }
}

/// The 97.5 % point of Student's t distribution.
fn student_quantile(freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |student| student.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        let sample: Sample = [9.0, 10.0, 11.0].into_iter().collect();
        let Estimate { mean, half_width } = sample.estimate();
        // t(2) = 4.303, standard error 0.577.
        assert!((mean - 10.0).abs() < 1e-12 && (half_width - 2.484).abs() < 1e-3, "{half_width}");
        let other: Sample = [8.0, 9.0, 10.0].into_iter().collect();
        // t(4) = 2.776, standard error 0.816.
        let difference = sample.minus(&other);
        assert!((difference.half_width - 2.267).abs() < 1e-3 && difference.holds(0.0), "{difference:?}");
        let one: Sample = [1.0].into_iter().collect();
        assert!(!one.estimate().half_width.is_finite());
    }

    #[test]
    fn welch_intervals_widen_with_the_spread() {
        let steady: Sample = [10.0, 10.1, 9.9, 10.0].into_iter().collect();
        let spread: Sample = [5.0, 7.0, 3.0, 5.0].into_iter().collect();
        let difference = steady.minus_scaled(2.0, &spread);
        assert!((difference.mean - 0.0).abs() < 1e-9);
        assert!(difference.low < -4.0 && difference.high > 4.0, "{difference:?}");
        assert!(steady.interval().high - steady.interval().low < 0.3);
    }

    #[test]
    fn one_run_has_no_interval() {
        let one: Sample = [3.0].into_iter().collect();
        assert_eq!(one.interval(), Interval { low: 3.0, mean: 3.0, high: 3.0 });
        assert_eq!(one.minus_scaled(2.0, &one).mean, -3.0);
    }

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let sample: Sample = (1..=100).map(f64::from).collect();
        assert_eq!((sample.quantile(0.5), sample.quantile(0.99)), (50.0, 99.0));
        assert_eq!((sample.least(), sample.greatest()), (1.0, 100.0));
    }
}
