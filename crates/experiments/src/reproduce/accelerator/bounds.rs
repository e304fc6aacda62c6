//! Judges the bounds of scenarios/accelerator in the simulator.

use paceline_judge::{Misses, Outcome as BoundOutcome};
use serde_json::{Value, json};

use super::scenarios::{Outcome, Outcomes};
use crate::error::{Error, Result};
use crate::reproduce::report::{Bound, Section, number};
use crate::result::check_bounds;

/// The results of all bounds.
#[derive(Debug, Default)]
struct Verdict {
    held: usize,
    missed_in_lab: usize,
    /// Missed in the simulator only, for a known reason.
    missed_here: Vec<String>,
    /// Missed in the simulator only, without a known reason.
    unexplained: Vec<String>,
    rows: Vec<Vec<Value>>,
}

/// Returns a row for each missed bound and each left-out group of variants. The returned bound says that no bound is
/// missed in the simulator only.
pub(super) fn judge(outcomes: &Outcomes) -> Result<(Section, Vec<Bound>)> {
    let verdict = verdict(outcomes)?;
    let here: Vec<String> = verdict.missed_here.iter().chain(&verdict.unexplained).cloned().collect();
    let section = Section { rows: verdict.rows, ..Section::of("accelerator", "bounds") }
        .told("held", verdict.held)
        .told("in-lab", verdict.missed_in_lab)
        .told("only-here", here.len());
    let name = "bounds of scenarios/accelerator that are missed in the simulator and not in the lab";
    let bound = Bound::at_most(name, 0.0, here.len() as f64);
    Ok((section, vec![if here.is_empty() { bound } else { bound.with_note(here.join("; ")) }]))
}

fn verdict(outcomes: &Outcomes) -> Result<Verdict> {
    let lab = misses(
        "docs/evidence/misses.toml",
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evidence/misses.toml")),
    )?;
    let here = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evidence/differences.toml"));
    let here = misses("docs/evidence/differences.toml", here)?;
    let mut verdict = Verdict::default();
    for (source, outcome) in outcomes.judged() {
        for bound in check_bounds(&outcome.bounds, &outcome.runs) {
            if bound.holds {
                verdict.held += 1;
                continue;
            }
            let of = |misses: &Misses| misses.reason(source.name, &bound).map(str::to_owned);
            let name = || format!("{} {} {}", source.name, bound.variant, bound.bound.metric);
            let reason = match (of(&lab), of(&here)) {
                (Some(reason), _) => {
                    verdict.missed_in_lab += 1;
                    reason
                }
                (None, Some(reason)) => {
                    verdict.missed_here.push(name());
                    reason
                }
                (None, None) => {
                    verdict.unexplained.push(name());
                    "holds in the lab".into()
                }
            };
            verdict.rows.push(row(source.name, &bound, &reason));
        }
        let failures = outcome.failures.iter().map(|failure| ("failed".to_string(), failure.clone()));
        verdict.rows.extend(left_out(outcome).into_iter().chain(failures).map(|(variant, why)| {
            vec![json!(source.name), json!(variant), json!("left out"), Value::Null, Value::Null, json!(why)]
        }));
    }
    Ok(verdict)
}

/// Variants left out for the same reason share a row.
fn left_out(outcome: &Outcome) -> Vec<(String, String)> {
    let mut reasons: Vec<(usize, String)> = Vec::new();
    for (variant, why) in &outcome.left_out {
        let why = why.strip_prefix(&format!("variant `{variant}`: ")).unwrap_or(why);
        match reasons.iter_mut().find(|(_, known)| known == why) {
            Some((count, _)) => *count += 1,
            None => reasons.push((1, why.to_string())),
        }
    }
    reasons.into_iter().map(|(count, why)| (format!("{count} variants"), why)).collect()
}

fn misses(file: &str, text: &str) -> Result<Misses> {
    toml::from_str(text).map_err(|error| Error::failed(format!("{file}: {error}")))
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
        outcome.measured.map_or(Value::Null, |measured| number(measured.mean, 3)),
        json!(reason),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::scenarios::{self, Wanted};
    use super::*;
    use crate::options::AcceleratorOptions;
    use crate::options::How;

    /// Runs one seed of everything, which takes a minute. `paceline reproduce accelerator` runs ten.
    #[test]
    fn bounds_of_the_lab_hold_in_the_simulator() {
        let folder = tempfile::tempdir().unwrap();
        let how = How { runs: 1, jobs: None, out: folder.path().to_path_buf(), json: true, check: false };
        let options = AcceleratorOptions { figure: Vec::new(), table: Vec::new(), part: Vec::new(), how };
        let mut wanted = Wanted::default();
        wanted.add_judged();
        let outcomes = scenarios::run(&wanted, &options).unwrap();
        let verdict = verdict(&outcomes).unwrap();
        assert!(verdict.held > 80 && verdict.unexplained.is_empty(), "{verdict:#?}");
        let (section, bounds) = super::super::agreement::compare(&outcomes).unwrap();
        // One seed says little about scenarios with random choices.
        assert!(bounds.iter().all(|bound| bound.measured >= 0.8), "{bounds:?}\n{:#?}", section.rows);
    }
}
