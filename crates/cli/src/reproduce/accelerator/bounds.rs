//! The bounds of scenarios/accelerator, held against the simulator.

use serde::Deserialize;
use serde_json::{Value, json};

use super::scenarios::Outcomes;
use crate::error::{Error, Result};
use crate::reproduce::report::{Bound, Section, number};
use crate::result::{BoundOutcome, check_bounds};
use crate::scenario::{Statistic, name_matches};

/// docs/misses.toml: bounds that are known to be missed in the lab, with the reason.
#[derive(Debug, Deserialize)]
struct Misses {
    miss: Vec<Miss>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Miss {
    scenario: String,
    metric: String,
    #[serde(default)]
    variant: String,
    statistic: Option<Statistic>,
    relative_to: Option<String>,
    flow: Option<String>,
    reason: String,
}

impl Miss {
    fn is_about(&self, scenario: &str, outcome: &BoundOutcome) -> bool {
        let bound = &outcome.bound;
        self.scenario == scenario
            && self.metric == bound.metric
            && name_matches(&outcome.variant, &self.variant)
            && self.statistic.is_none_or(|statistic| statistic == bound.statistic)
            && (self.relative_to.is_none() || self.relative_to == bound.relative_to)
            && (self.flow.is_none() || self.flow == bound.flow)
    }
}

/// One row for each bound that is missed, and for what was left out; and that no other is missed.
pub(super) fn judge(outcomes: &Outcomes) -> Result<(Section, Vec<Bound>)> {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/misses.toml"));
    let misses: Misses =
        toml::from_str(text).map_err(|error| Error::failed(format!("docs/misses.toml: {error}")))?;
    let (mut rows, mut held, mut known, mut unknown) = (Vec::new(), 0, 0, Vec::new());
    for (source, outcome) in outcomes.judged() {
        for bound in check_bounds(&outcome.bounds, &outcome.runs) {
            if bound.holds() {
                held += 1;
                continue;
            }
            let miss = misses.miss.iter().find(|miss| miss.is_about(source.name, &bound));
            match miss {
                Some(_) => known += 1,
                None => unknown.push(format!("{} {} {}", source.name, bound.variant, bound.bound.metric)),
            }
            let reason = miss.map_or("not missed in the lab", |miss| &miss.reason);
            rows.push(row(source.name, &bound, reason));
        }
        let failures = outcome.failures.iter().map(|failure| ("failed".to_string(), failure.clone()));
        let left_out = outcome.left_out.iter().cloned().chain(failures);
        rows.extend(left_out.map(|(variant, why)| {
            vec![json!(source.name), json!(variant), json!("left out"), Value::Null, Value::Null, json!(why)]
        }));
    }
    let section = Section {
        name: "bounds",
        title: "The bounds of scenarios/accelerator in the simulator".into(),
        text: format!(
            "{held} hold, {known} are missed as in the lab (docs/misses.toml), {} are missed only here. Missed and left out:",
            unknown.len()
        ),
        columns: vec!["scenario", "variant", "metric", "wanted", "measured", "why"],
        rows,
        files: Vec::new(),
    };
    let name = "bounds of scenarios/accelerator that are missed in the simulator and not in the lab";
    let bound = Bound::at_most(name, 0.0, unknown.len() as f64);
    let bound = if unknown.is_empty() { bound } else { bound.with_note(unknown.join("; ")) };
    Ok((section, vec![bound]))
}

fn row(scenario: &str, outcome: &BoundOutcome, reason: &str) -> Vec<Value> {
    let bound = &outcome.bound;
    let relative = bound.relative_to.as_ref().map_or(String::new(), |other| format!(" / {other}"));
    let flow = bound.flow.as_ref().map_or(String::new(), |flow| format!(" of {flow}"));
    let limit = |sign: &str, limit: Option<f64>| limit.map(|limit| format!("{sign} {limit}"));
    let wanted: Vec<String> =
        [limit(">=", bound.min), limit("<=", bound.max)].into_iter().flatten().collect();
    vec![
        json!(scenario),
        json!(outcome.variant),
        json!(format!("{}{flow}{relative}", bound.metric)),
        json!(wanted.join(", ")),
        outcome.value.map_or(Value::Null, |value| number(value, 3)),
        json!(reason),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::scenarios::{self, Wanted};
    use super::*;
    use crate::args::ReproduceAcceleratorArgs;

    /// One seed of everything, which takes a minute; `paceline reproduce accelerator` runs ten.
    #[test]
    fn bounds_of_the_lab_hold_in_the_simulator() {
        let folder = tempfile::tempdir().unwrap();
        let args = ReproduceAcceleratorArgs {
            figure: Vec::new(),
            table: Vec::new(),
            part: Vec::new(),
            runs: 1,
            jobs: None,
            out: folder.path().to_path_buf(),
            json: true,
            check: false,
        };
        let mut wanted = Wanted::default();
        wanted.add_judged();
        let outcomes = scenarios::run(&wanted, &args).unwrap();
        let (section, bounds) = judge(&outcomes).unwrap();
        assert!(bounds[0].holds, "{:?}\n{:#?}", bounds[0], section.rows);
        let (section, bounds) = super::super::agreement::compare(&outcomes).unwrap();
        // Of what is drawn one seed says little.
        assert!(bounds.iter().all(|bound| bound.measured >= 0.8), "{bounds:?}\n{:#?}", section.rows);
    }
}
