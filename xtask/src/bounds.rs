//! The `[[bounds]]` of a scenario, held against all its runs. docs/scenario.md documents the keys.

use serde::Deserialize;

use crate::model::Results;
use crate::statistics::{Interval, Sample};

/// What a result must satisfy, as a scenario states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Bound {
    #[serde(default)]
    pub(crate) variant: String,
    pub(crate) metric: String,
    pub(crate) flow: Option<String>,
    #[serde(default)]
    pub(crate) statistic: Statistic,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) relative_to: Option<String>,
}

/// One number out of those of all runs and flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Statistic {
    #[default]
    Median,
    /// The only one with a confidence interval: what must satisfy the bound is the whole interval.
    Mean,
    P99,
    Smallest,
    Largest,
    Sum,
}

/// A bound held against one variant.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) bound: Bound,
    pub(crate) variant: String,
    /// `None` where nothing was measured.
    pub(crate) measured: Option<Interval>,
    pub(crate) samples: usize,
    pub(crate) holds: bool,
}

impl Bound {
    /// One outcome for each variant that the bound names; one without a measurement when there is none.
    pub(crate) fn check(&self, results: &Results) -> Vec<Outcome> {
        let named = results.of(&self.variant);
        let variants = named.variants();
        if variants.is_empty() {
            return vec![self.outcome(self.variant.clone(), None, 0, false)];
        }
        variants.into_iter().map(|variant| self.check_variant(results, variant)).collect()
    }

    fn check_variant(&self, results: &Results, variant: &str) -> Outcome {
        let own = self.sample(results, variant);
        if own.len() == 0 {
            return self.outcome(variant.into(), None, 0, false);
        }
        let Some(other) = &self.relative_to else {
            let measured = self.statistic.of(&own);
            let holds = self.min.is_none_or(|min| measured.low >= min)
                && self.max.is_none_or(|max| measured.high <= max);
            return self.outcome(variant.into(), Some(measured), own.len(), holds);
        };
        let reference = self.sample(results, &self.counterpart(variant, other));
        if reference.len() == 0 {
            return self.outcome(variant.into(), None, 0, false);
        }
        let (measured, holds) = self.ratio(&own, &reference);
        self.outcome(variant.into(), Some(measured), own.len(), holds)
    }

    /// The variant in which the parts that the bound names are replaced, one after the other, by those of `other`.
    fn counterpart(&self, variant: &str, other: &str) -> String {
        let pairs: Vec<(&str, &str)> =
            self.variant.split(',').map(str::trim).zip(other.split(',').map(str::trim)).collect();
        let replace = |part| pairs.iter().find(|(from, _)| *from == part).map_or(part, |(_, to)| *to);
        variant.split(',').map(replace).collect::<Vec<&str>>().join(",")
    }

    /// Of a ratio of means the interval is that of a difference: `own - min * reference` must not be below zero.
    fn ratio(&self, own: &Sample, reference: &Sample) -> (Interval, bool) {
        let (value, unit) = (self.statistic.of(own).mean, self.statistic.of(reference).mean);
        if self.statistic != Statistic::Mean {
            let point = Interval { low: value / unit, mean: value / unit, high: value / unit };
            let holds =
                self.min.is_none_or(|min| point.mean >= min) && self.max.is_none_or(|max| point.mean <= max);
            return (point, holds);
        }
        let spread = own.minus_scaled(value / unit, reference);
        let half = (spread.high - spread.low) / 2.0 / unit;
        let measured = Interval { low: value / unit - half, mean: value / unit, high: value / unit + half };
        let holds = self.min.is_none_or(|min| own.minus_scaled(min, reference).low >= 0.0)
            && self.max.is_none_or(|max| own.minus_scaled(max, reference).high <= 0.0);
        (measured, holds)
    }

    fn sample(&self, results: &Results, variant: &str) -> Sample {
        results.sample(variant, self.flow.as_deref(), &self.metric)
    }

    fn outcome(&self, variant: String, measured: Option<Interval>, samples: usize, holds: bool) -> Outcome {
        Outcome { bound: self.clone(), variant, measured, samples, holds }
    }
}

impl Statistic {
    fn of(self, sample: &Sample) -> Interval {
        let value = match self {
            Statistic::Mean => return sample.interval(),
            Statistic::Median => sample.median(),
            Statistic::P99 => sample.quantile(0.99),
            Statistic::Smallest => sample.least(),
            Statistic::Largest => sample.greatest(),
            Statistic::Sum => sample.mean() * sample.len() as f64,
        };
        Interval { low: value, mean: value, high: value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(cells: &[(&str, &[f64])]) -> Results {
        let mut results = Results::default();
        for (variant, values) in cells {
            for (seed, value) in values.iter().enumerate() {
                let run = format!(
                    r#"{{"variant": "{variant}", "seed": {seed}, "flows": [{{"name": "a", "goodput_mbps": {value}}}]}}"#
                );
                results.add(&format!(r#"{{"schema": 1, "runs": [{run}]}}"#)).unwrap();
            }
        }
        results
    }

    fn bound(text: &str) -> Bound {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_mean_must_hold_with_its_whole_interval() {
        let close = results(&[("accelerated", &[6.6, 6.9, 6.8])]);
        let clear = results(&[("accelerated", &[6.8, 6.81, 6.79])]);
        let mean = bound("metric = \"goodput_mbps\"\nstatistic = \"mean\"\nmin = 6.7\n");
        assert!(!mean.check(&close)[0].holds);
        assert!(mean.check(&clear)[0].holds);
        let median = bound("metric = \"goodput_mbps\"\nmin = 6.7\n");
        assert!(median.check(&close)[0].holds);
    }

    #[test]
    fn a_ratio_is_taken_against_the_same_cell() {
        let cells = results(&[
            ("unaccelerated,loss=1%", &[2.0, 2.1, 1.9]),
            ("accelerated,loss=1%", &[6.0, 6.1, 5.9]),
            ("unaccelerated,loss=0%", &[3.0]),
        ]);
        for statistic in ["mean", "median"] {
            let text =
                "variant = \"accelerated\"\nmetric = \"goodput_mbps\"\nrelative-to = \"unaccelerated\"\n";
            let ratio = bound(&format!("{text}statistic = \"{statistic}\"\nmin = 2.4\n")).check(&cells);
            assert_eq!(ratio.len(), 1);
            assert!(ratio[0].holds && (ratio[0].measured.unwrap().mean - 3.0).abs() < 1e-9);
            assert!(
                !bound(&format!("{text}statistic = \"{statistic}\"\nmin = 3.1\n")).check(&cells)[0].holds
            );
        }
    }

    #[test]
    fn what_was_not_measured_does_not_hold() {
        let missing = bound("variant = \"accelerated\"\nmetric = \"goodput_mbps\"\nmin = 0\n");
        assert!(!missing.check(&results(&[]))[0].holds);
        assert!(!bound("metric = \"nothing\"\nmin = 0\n").check(&results(&[("base", &[1.0])]))[0].holds);
    }
}
