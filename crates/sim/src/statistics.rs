//! Means with 95 % intervals: one sample, and the difference of two (Welch).

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A quantity over several runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample(Vec<f64>);

/// An estimate and half the width of its 95 % interval, which is infinite when there were too few runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The interval is the mean plus and minus this.
    pub half_width: f64,
}

impl Sample {
    /// How many runs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean; not a number without runs.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The mean with its interval (Student).
    pub fn estimate(&self) -> Estimate {
        let half_width = quantile(self.0.len() as f64 - 1.0) * self.variance_of_mean().sqrt();
        Estimate { mean: self.mean(), half_width }
    }

    /// `self` less `other` (Welch).
    pub fn minus(&self, other: &Sample) -> Estimate {
        let mean = self.mean() - other.mean();
        let (a, b) = (self.variance_of_mean(), other.variance_of_mean());
        if a + b == 0.0 {
            return Estimate { mean, half_width: 0.0 };
        }
        let weigh = |part: f64, sample: &Sample| part * part / (sample.0.len() as f64 - 1.0);
        let freedom = (a + b).powi(2) / (weigh(a, self) + weigh(b, other));
        Estimate { mean, half_width: quantile(freedom) * (a + b).sqrt() }
    }

    fn variance_of_mean(&self) -> f64 {
        let (mean, n) = (self.mean(), self.0.len() as f64);
        self.0.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Sample(values.into_iter().collect())
    }
}

impl Estimate {
    /// Whether the interval holds `value`.
    pub fn holds(&self, value: f64) -> bool {
        (self.mean - value).abs() <= self.half_width
    }
}

/// Of Student's distribution, for two-sided 95 %.
fn quantile(freedom: f64) -> f64 {
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
}
