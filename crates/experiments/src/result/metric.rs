//! Finds numbers of a result by name, and checks bounds on them.

use paceline_judge::{Bound, Measurements, Outcome, Sample, Statistic, distinct};
use serde_json::Value;

use super::Run;

/// Returns all values of `metric` in one run. A dotted name can be a number of the run itself. Otherwise it is a number
/// of each flow; `flow` selects flows by name. Booleans count as 0 and 1.
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

/// Checks every bound on every variant that it names and that has runs.
pub(crate) fn check_all(bounds: &[Bound], runs: &[Run]) -> Vec<Outcome> {
    bounds.iter().flat_map(|bound| bound.check_run(&Runs(runs))).collect()
}

/// Gives runs to the judge.
struct Runs<'a>(&'a [Run]);

impl Measurements for Runs<'_> {
    fn variants(&self) -> Vec<&str> {
        distinct(self.0.iter().map(|run| run.variant.as_str()))
    }

    fn sample(&self, variant: &str, flow: Option<&str>, metric: &str) -> Sample {
        let of_variant = self.0.iter().filter(|run| run.variant == variant);
        of_variant.flat_map(|run| values(run, metric, flow)).collect()
    }
}

/// Computes a statistic of the values; `None` without values.
pub(crate) fn statistic(kind: Statistic, values: &[f64]) -> Option<f64> {
    let sample: Sample = values.iter().copied().collect();
    (!sample.is_empty()).then(|| kind.of(&sample).mean)
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
        let check = |bound: &Bound, runs: &[Run]| check_all(std::slice::from_ref(bound), runs);
        let runs: Vec<Run> = [6.6, 6.8, 6.9].into_iter().map(|mbps| sample("accelerated", 1, mbps)).collect();
        let met = &check(&bound("variant=\"accelerated\"\nmetric=\"goodput_mbps\"\nmin=6.7\n"), &runs)[0];
        assert!(met.holds && met.measured.is_some_and(|value| value.mean == 6.8) && met.samples == 3);
        let missed =
            bound("variant=\"accelerated\"\nmetric=\"goodput_mbps\"\nmin=6.7\nstatistic=\"smallest\"\n");
        assert!(!check(&missed, &runs)[0].holds);
        // A mean satisfies a bound only with its whole interval, as on the pages.
        let mean = bound("variant=\"accelerated\"\nmetric=\"goodput_mbps\"\nmin=6.7\nstatistic=\"mean\"\n");
        assert!(!check(&mean, &runs)[0].holds);
        assert!(!check(&bound("metric=\"nothing\"\nmin=0.0\n"), &runs)[0].holds);
        assert!(check(&bound("variant=\"other\"\nmetric=\"nothing\"\nmin=0.0\n"), &runs).is_empty());
    }

    #[test]
    fn statistics() {
        let values = [4.0, 1.0, 2.0, 3.0];
        assert_eq!(statistic(Statistic::Median, &values), Some(2.5));
        assert_eq!(statistic(Statistic::P99, &values), Some(4.0));
        assert_eq!(statistic(Statistic::Sum, &values), Some(10.0));
        assert_eq!(statistic(Statistic::Median, &[]), None);
    }
}
