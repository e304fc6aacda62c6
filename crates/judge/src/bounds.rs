//! The `[[bounds]]` of a scenario, checked against all its runs. docs/reference/scenario.md documents the keys.

use serde::Deserialize;

use crate::statistics::{Interval, Sample};

/// What a result must satisfy, as a scenario states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bound {
    /// Parts of the variant's name, joined by commas; all variants when empty.
    #[serde(default)]
    pub variant: String,
    /// A number of the result by its name: `goodput_mbps` (of flows), `path_delay_ms.p95`, `links.radio_down.utilization`.
    pub metric: String,
    /// Only flows with this name.
    pub flow: Option<String>,
    /// The statistic over runs and flows.
    #[serde(default)]
    pub statistic: Statistic,
    /// Lower limit.
    pub min: Option<f64>,
    /// Upper limit.
    pub max: Option<f64>,
    /// Name parts of the reference variant, in place of those in `variant`. The number is divided by that of the
    /// reference.
    pub relative_to: Option<String>,
}

/// All runs of a scenario, wherever they are stored.
pub trait Measurements {
    /// Names of the variants that were run, in the order of their first run.
    fn variants(&self) -> Vec<&str>;

    /// The values of a metric for a variant: one for each run, or one for each flow of those runs. `flow` selects flows
    /// by name.
    fn sample(&self, variant: &str, flow: Option<&str>, metric: &str) -> Sample;
}

/// True if every comma-separated part of `selection` is a part of the variant's `name`.
pub fn is_named(name: &str, selection: &str) -> bool {
    let parts = selection.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.into_iter().all(|part| name.split(',').any(|own| own == part))
}

/// Reduces the numbers of all runs and flows to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The middle value, or the mean of the two middle values.
    #[default]
    Median,
    /// The mean. Only this one has a confidence interval, and the whole interval must satisfy the bound.
    Mean,
    /// The value that 99 of 100 do not exceed.
    P99,
    /// The smallest.
    Smallest,
    /// The largest.
    Largest,
    /// The sum.
    Sum,
}

/// The result of a bound for one variant.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The bound.
    pub bound: Bound,
    /// The variant.
    pub variant: String,
    /// The measured value; `None` if nothing was measured.
    pub measured: Option<Interval>,
    /// Number of values.
    pub samples: usize,
    /// True if the bound holds.
    pub holds: bool,
}

impl Bound {
    /// Returns one outcome for each variant that the bound names. If no such variant was run, returns one without a
    /// measurement.
    pub fn check(&self, results: &impl Measurements) -> Vec<Outcome> {
        let outcomes = self.check_run(results);
        if outcomes.is_empty() { vec![self.outcome(self.variant.clone(), None, 0, false)] } else { outcomes }
    }

    /// The same for a run of the whole scenario or of a part. Returns nothing if no variant that the bound names was
    /// run.
    pub fn check_run(&self, results: &impl Measurements) -> Vec<Outcome> {
        let named = results.variants().into_iter().filter(|variant| is_named(variant, &self.variant));
        named.map(|variant| self.check_variant(results, variant)).collect()
    }

    fn check_variant(&self, results: &impl Measurements, variant: &str) -> Outcome {
        let own = self.sample(results, variant);
        if own.is_empty() {
            return self.outcome(variant.into(), None, 0, false);
        }
        let Some(other) = &self.relative_to else {
            let measured = self.statistic.of(&own);
            let holds = self.min.is_none_or(|min| measured.low >= min)
                && self.max.is_none_or(|max| measured.high <= max);
            return self.outcome(variant.into(), Some(measured), own.len(), holds);
        };
        let reference = self.sample(results, &self.counterpart(variant, other));
        if reference.is_empty() {
            return self.outcome(variant.into(), None, 0, false);
        }
        let (measured, holds) = self.ratio(&own, &reference);
        self.outcome(variant.into(), Some(measured), own.len(), holds)
    }

    /// The variant's name, in which the parts of the bound are replaced one by one by those of `other`.
    fn counterpart(&self, variant: &str, other: &str) -> String {
        let pairs: Vec<(&str, &str)> =
            self.variant.split(',').map(str::trim).zip(other.split(',').map(str::trim)).collect();
        let replace = |part| pairs.iter().find(|(from, _)| *from == part).map_or(part, |(_, to)| *to);
        variant.split(',').map(replace).collect::<Vec<&str>>().join(",")
    }

    /// The ratio, and whether the bound holds. A ratio of means is checked by the interval of a difference:
    /// `own - min * reference` must not be below zero.
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

    fn sample(&self, results: &impl Measurements, variant: &str) -> Sample {
        results.sample(variant, self.flow.as_deref(), &self.metric)
    }

    fn outcome(&self, variant: String, measured: Option<Interval>, samples: usize, holds: bool) -> Outcome {
        Outcome { bound: self.clone(), variant, measured, samples, holds }
    }
}

impl Statistic {
    /// The statistic of a sample; not a number without values.
    pub fn of(self, sample: &Sample) -> Interval {
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

    /// Each run has one flow, `a`, with one number, `goodput_mbps`.
    struct Results(Vec<(String, Vec<f64>)>);

    impl Measurements for Results {
        fn variants(&self) -> Vec<&str> {
            self.0.iter().map(|(name, _)| name.as_str()).collect()
        }

        fn sample(&self, variant: &str, _flow: Option<&str>, metric: &str) -> Sample {
            let of = self.0.iter().filter(|(name, _)| name == variant && metric == "goodput_mbps");
            of.flat_map(|(_, values)| values.clone()).collect()
        }
    }

    fn results(cells: &[(&str, &[f64])]) -> Results {
        Results(cells.iter().map(|(name, values)| (name.to_string(), values.to_vec())).collect())
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

    #[test]
    fn a_variant_that_was_not_run_is_a_miss_only_of_the_whole() {
        let bound = bound("variant = \"accelerated\"\nmetric = \"goodput_mbps\"\nmin = 1\n");
        let others = results(&[("unaccelerated", &[1.0])]);
        assert_eq!((bound.check(&others).len(), bound.check_run(&others).len()), (1, 0));
    }

    #[test]
    fn a_selection_names_parts() {
        assert!(is_named("accelerated,loss=1%", "loss=1%, accelerated") && is_named("base", ""));
        assert!(!is_named("unaccelerated,loss=1%", "accelerated"));
    }

    #[test]
    fn two_parts_of_a_name_are_replaced_one_by_one() {
        let ratio = bound(
            "variant = \"accelerated,server=cubic\"\nmetric = \"goodput_mbps\"\nmin = 2\n\
             relative-to = \"unaccelerated,server=bbr\"\n",
        );
        let cells = results(&[
            ("accelerated,server=cubic,trace=x", &[6.0]),
            ("unaccelerated,server=bbr,trace=x", &[2.0]),
        ]);
        let outcomes = ratio.check(&cells);
        assert_eq!((outcomes.len(), outcomes[0].measured.unwrap().mean), (1, 3.0));
    }
}
