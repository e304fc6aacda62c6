//! Numbers of a result by their names, and bounds on them.

use serde_json::Value;

use super::Run;
use crate::scenario::{Bound, Statistic};

/// What became of one bound.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) bound: Bound,
    /// The variant that it was checked on.
    pub(crate) variant: String,
    /// `None` if there was nothing to compute it from.
    pub(crate) value: Option<f64>,
    pub(crate) samples: usize,
}

impl Outcome {
    pub(crate) fn holds(&self) -> bool {
        self.value.is_some_and(|value| {
            self.bound.min.is_none_or(|min| value >= min) && self.bound.max.is_none_or(|max| value <= max)
        })
    }
}

/// All values of `metric` in one run: a number of the run itself by its dotted name, else of each flow (`flow`: only those
/// of that name). Booleans count as 0 and 1.
pub(crate) fn values(run: &Run, metric: &str, flow: Option<&str>) -> Vec<f64> {
    let Ok(value) = serde_json::to_value(run) else {
        return Vec::new();
    };
    let of_flow = |name: &str| flow.is_none_or(|wanted| wanted == name);
    if let Some(number) = lookup(&value, metric) {
        return vec![number];
    }
    let flows = value["flows"].as_array().map(Vec::as_slice).unwrap_or_default();
    flows
        .iter()
        .filter(|f| of_flow(f["name"].as_str().unwrap_or_default()))
        .filter_map(|f| lookup(f, metric))
        .collect()
}

/// Checks every bound on every variant that it names.
pub(crate) fn check_all(bounds: &[Bound], runs: &[Run]) -> Vec<Outcome> {
    bounds.iter().flat_map(|bound| check(bound, runs)).collect()
}

fn check(bound: &Bound, runs: &[Run]) -> Vec<Outcome> {
    let mut variants: Vec<&str> = Vec::new();
    for run in runs {
        if !variants.contains(&run.variant.as_str()) && names(&run.variant, &bound.variant) {
            variants.push(&run.variant);
        }
    }
    variants.into_iter().map(|variant| outcome(bound, runs, variant)).collect()
}

/// One number out of many.
pub(crate) fn statistic(kind: Statistic, values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (first, last) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    Some(match kind {
        Statistic::Median if values.len().is_multiple_of(2) => (values[middle - 1] + values[middle]) / 2.0,
        Statistic::Median => values[middle],
        Statistic::Mean => values.iter().sum::<f64>() / values.len() as f64,
        Statistic::P99 => values[(values.len() * 99).div_ceil(100).saturating_sub(1)],
        Statistic::Smallest => first,
        Statistic::Largest => last,
        Statistic::Sum => values.iter().sum(),
    })
}

fn outcome(bound: &Bound, runs: &[Run], variant: &str) -> Outcome {
    let of = |variant: &str| -> Vec<f64> {
        let of_variant = runs.iter().filter(|run| run.variant == variant);
        of_variant.flat_map(|run| values(run, &bound.metric, bound.flow.as_deref())).collect()
    };
    let mut own = of(variant);
    let samples = own.len();
    let mut value = statistic(bound.statistic, &mut own);
    if let Some(other) = &bound.relative_to {
        let reference = statistic(bound.statistic, &mut of(&counterpart(variant, &bound.variant, other)));
        value = value.zip(reference).map(|(own, reference)| own / reference);
    }
    Outcome { bound: bound.clone(), variant: variant.into(), value, samples }
}

/// `variant` with the parts that `named` names replaced, one after the other, by those of `other`.
fn counterpart(variant: &str, named: &str, other: &str) -> String {
    let pairs: Vec<(&str, &str)> =
        named.split(',').map(str::trim).zip(other.split(',').map(str::trim)).collect();
    let replace = |part| pairs.iter().find(|(from, _)| *from == part).map_or(part, |(_, to)| *to);
    variant.split(',').map(replace).collect::<Vec<&str>>().join(",")
}

fn names(variant: &str, selection: &str) -> bool {
    crate::scenario::name_matches(variant, selection)
}

fn lookup(value: &Value, dotted: &str) -> Option<f64> {
    let found = value.pointer(&format!("/{}", dotted.replace('.', "/")))?;
    match found {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        number => number.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn bound(text: &str) -> Bound {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_found_by_name() {
        let run = sample("accelerated", 1, 6.8);
        assert_eq!(values(&run, "goodput_mbps", None), [6.8]);
        assert_eq!(values(&run, "goodput_mbps", Some("other")), [0.0; 0]);
        assert_eq!(values(&run, "path_delay_ms.p95", None), [101.5]);
        assert_eq!(values(&run, "links.radio_down.utilization", None), [0.97]);
        assert_eq!(values(&run, "sha256_ok", None), [1.0]);
        assert_eq!(values(&run, "nothing", None), [0.0; 0]);
    }

    #[test]
    fn bounds_hold_or_not() {
        let runs: Vec<Run> = [6.6, 6.8, 6.9].into_iter().map(|mbps| sample("accelerated", 1, mbps)).collect();
        let met = &check(&bound("variant=\"accelerated\"\nmetric=\"goodput_mbps\"\nmin=6.7\n"), &runs)[0];
        assert!(met.holds() && met.value == Some(6.8) && met.samples == 3);
        let missed =
            bound("variant=\"accelerated\"\nmetric=\"goodput_mbps\"\nmin=6.7\nstatistic=\"smallest\"\n");
        assert!(!check(&missed, &runs)[0].holds());
        let absent = bound("metric=\"nothing\"\nmin=0.0\n");
        assert!(!check(&absent, &runs)[0].holds());
    }

    #[test]
    fn a_ratio_takes_the_same_cell_of_the_other_variant() {
        let runs = [
            sample("unaccelerated,loss=1%", 1, 2.0),
            sample("accelerated,loss=1%", 1, 6.0),
            sample("unaccelerated,loss=0%", 1, 3.0),
        ];
        let ratio = bound(
            "variant=\"accelerated\"\nmetric=\"goodput_mbps\"\nrelative-to=\"unaccelerated\"\nmin=2.4\n",
        );
        let outcomes = check(&ratio, &runs);
        assert_eq!((outcomes.len(), outcomes[0].value), (1, Some(3.0)));
        let both = counterpart(
            "accelerated,server=cubic,trace=x",
            "accelerated,server=cubic",
            "unaccelerated,server=bbr",
        );
        assert_eq!(both, "unaccelerated,server=bbr,trace=x");
    }

    #[test]
    fn statistics() {
        let mut values = [4.0, 1.0, 2.0, 3.0];
        assert_eq!(statistic(Statistic::Median, &mut values), Some(2.5));
        assert_eq!(statistic(Statistic::Mean, &mut values), Some(2.5));
        assert_eq!(statistic(Statistic::P99, &mut values), Some(4.0));
        assert_eq!(statistic(Statistic::Sum, &mut values), Some(10.0));
        assert_eq!(statistic(Statistic::Median, &mut []), None);
    }
}
