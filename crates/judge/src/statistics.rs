//! Means with 95 % intervals: one sample against a number, and two samples against each other (Welch).

/// A quantity over several runs.
#[derive(Clone, Debug, Default)]
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

impl Sample {
    /// How many values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None at all.
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

    /// A value below which the given part of the sample lies (nearest rank).
    pub fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (part * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
    }

    /// The mean's interval (Student).
    pub fn interval(&self) -> Interval {
        let mean = self.mean();
        if self.len() < 2 {
            return Interval { low: mean, mean, high: mean };
        }
        let half = student_quantile(self.len() as f64 - 1.0) * self.variance_of_mean().sqrt();
        Interval { low: mean - half, mean, high: mean + half }
    }

    /// The interval of `self.mean() - factor * other.mean()` (Welch).
    pub fn minus_scaled(&self, factor: f64, other: &Sample) -> Interval {
        let mean = self.mean() - factor * other.mean();
        if self.len() < 2 || other.len() < 2 {
            return Interval { low: mean, mean, high: mean };
        }
        let (a, b) = (self.variance_of_mean(), factor * factor * other.variance_of_mean());
        if a + b == 0.0 {
            return Interval { low: mean, mean, high: mean };
        }
        let freedom =
            (a + b).powi(2) / (a * a / (self.len() as f64 - 1.0) + b * b / (other.len() as f64 - 1.0));
        let half = student_quantile(freedom) * (a + b).sqrt();
        Interval { low: mean - half, mean, high: mean + half }
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

/// The 97.5 % point of Student's t distribution: from the table up to 4 degrees of freedom, else by Hill's expansion, which
/// is within 0.5 % of it.
fn student_quantile(freedom: f64) -> f64 {
    const TABLE: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    if let Some(value) = TABLE.get((freedom as usize).max(1) - 1) {
        return *value;
    }
    let (z, n) = (1.959_964_f64, freedom);
    let g1 = (z.powi(3) + z) / 4.0;
    let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let g3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + g1 / n + g2 / (n * n) + g3 / (n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_quantiles_agree_with_the_tables() {
        for (freedom, table) in
            [(1.0, 12.706), (3.0, 3.182), (5.0, 2.571), (9.0, 2.262), (18.0, 2.101), (100.0, 1.984)]
        {
            let found = student_quantile(freedom);
            assert!((found / table - 1.0).abs() < 0.006, "{freedom}: {found} but {table}");
        }
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
