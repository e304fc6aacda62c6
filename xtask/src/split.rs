//! docs/evidence/split.md: the gateway's own senders in the simulator and in the lab, from the runs of scenarios/split.

use std::fmt::Write as _;
use std::path::Path;

use paceline_judge::{Bound, Measurements as _, Outcome, Sample};
use serde::Deserialize;

use crate::model::{Results, Run};
use crate::results::{COMMAND_END, earlier_figures};

const SCENARIOS: &str = "scenarios/split";
const REPORT: &str = "docs/evidence/split.md";
/// Folders of runs: results/PLACE/SCENARIO/. The others are compared with the first.
const PLACES: [(&str, &str); 3] = [("sim", "simulator"), ("virtual", "virtual time"), ("live", "live")];
/// Largest deviation, as a share of the simulator's throughput.
const AGREEMENT: f64 = 0.05;
/// A wider interval proves nothing, whatever it contains. This is half of its width, as a share of the simulator's
/// throughput.
const HALF_WIDTH_MAX: f64 = 0.1;

const INTRODUCTION: &str = include_str!("../pages/split.txt");

#[derive(Deserialize)]
struct Scenario {
    name: String,
    title: String,
    #[serde(default)]
    bounds: Vec<Bound>,
}

/// Writes the page. Returns a finding for each bound that the simulator misses.
pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    let earlier = crate::seal::unsealed(&std::fs::read_to_string(root.join(REPORT)).unwrap_or_default());
    let mut page = String::from(INTRODUCTION);
    let (mut findings, mut kept) = (Vec::new(), false);
    for file in crate::tidy::tracked(root, &format!(":(glob){SCENARIOS}/*.toml"))? {
        let scenario: Scenario = crate::read_toml(root, &file)?;
        let Scenario { name, title, .. } = &scenario;
        let _ = write!(page, "\n## {name}\n\n{title}\n\n    paceline run {file} --on sim{COMMAND_END}");
        let mut places = Vec::new();
        for (place, heading) in PLACES {
            places.push((heading, Results::load(&root.join("results").join(place).join(name))?));
        }
        places.retain(|(_, results)| !results.runs.is_empty());
        if places.is_empty() {
            page.push_str(earlier_figures(&earlier, name));
            kept = true;
            continue;
        }
        write_figures(&mut page, &scenario, &places);
        for (place, results) in places.iter().filter(|(place, _)| *place == PLACES[0].1) {
            let missed = outcomes(&scenario, results).into_iter().filter(|outcome| !outcome.holds);
            findings.extend(missed.map(|outcome| {
                format!("{name}, {}: {} missed in the {place}", outcome.variant, outcome.bound.metric)
            }));
        }
    }
    let origin = crate::seal::Origin::of_folder(root, &root.join("results")).in_part(kept);
    crate::write(root, REPORT, &crate::seal::sealed(&page, &origin))?;
    Ok(findings)
}

/// Returns the outcomes of those bounds that were measured.
fn outcomes(scenario: &Scenario, results: &Results) -> Vec<Outcome> {
    let all = scenario.bounds.iter().flat_map(|bound| bound.check(results));
    all.filter(|outcome| outcome.measured.is_some()).collect()
}

fn write_figures(page: &mut String, scenario: &Scenario, places: &[(&str, Results)]) {
    page.push_str(
        "| in | runs | bounds held | of | cells that agree | of |\n|---|---:|---:|---:|---:|---:|\n",
    );
    let reference = places.iter().find(|(place, _)| *place == PLACES[0].1).map(|(_, results)| results);
    for (place, results) in places {
        let outcomes = outcomes(scenario, results);
        let held = outcomes.iter().filter(|outcome| outcome.holds).count();
        let others = reference.filter(|_| *place != PLACES[0].1);
        let verdicts: Vec<bool> = flows(results)
            .into_iter()
            .filter_map(|(variant, flow)| Some(compared(results, others?, variant, flow)?.1))
            .collect();
        let agreeing = verdicts.iter().filter(|agrees| **agrees).count();
        let cells =
            if others.is_some() { format!("{agreeing} | {}", verdicts.len()) } else { "- | -".into() };
        let (runs, of) = (results.runs.len(), outcomes.len());
        let _ = writeln!(page, "| {place} | {runs} | {held} | {of} | {cells} |");
    }
    page.push_str("\nMbit/s, and p95 of the path's delay in ms; of the lab, how far from the simulator.\n\n| variant | flow | asked |");
    places.iter().for_each(|(place, _)| {
        let _ = write!(page, " {place} |");
    });
    let _ = writeln!(page, "\n|---|---|---:|{}", "---:|".repeat(places.len()));
    let all = places.iter().max_by_key(|(_, results)| results.variants().len()).map(|(_, results)| results);
    for (variant, flow) in all.map(flows).unwrap_or_default() {
        let asked = scenario.bounds.iter().find(|bound| bound.metric == "goodput_mbps" && is(variant, bound));
        let asked = asked.and_then(|bound| Some((bound.min?, bound.relative_to.as_ref())));
        let asked = asked.map_or(String::new(), |(min, other)| {
            other.map_or(format!("{min}"), |other| format!("{min} x {other}"))
        });
        let _ = write!(page, "| {variant} | {flow} | {asked} |");
        for (place, results) in places {
            let others = reference.filter(|_| *place != PLACES[0].1);
            let _ = write!(page, " {} |", figure(results, others, variant, flow));
        }
        page.push('\n');
    }
}

fn is(variant: &str, bound: &Bound) -> bool {
    bound.variant.split(',').all(|part| variant.split(',').any(|own| own == part))
}

/// Returns every flow of every variant.
fn flows(results: &Results) -> Vec<(&str, &str)> {
    let names = |variant| results.flow_names(variant).into_iter().map(move |flow| (variant, flow));
    results.variants().into_iter().flat_map(names).collect()
}

fn throughput(results: &Results, variant: &str, flow: &str) -> Sample {
    results.sample(variant, Some(flow), "goodput_mbps")
}

/// Returns how far the runs of a cell are from the other's mean, and whether they agree. `None` if one was not
/// measured. Only seeds that both have are compared, seed by seed, because a seed loses packets of the same numbers
/// in both.
fn compared(own: &Results, other: &Results, variant: &str, flow: &str) -> Option<(f64, bool)> {
    let throughput = |run: &Run| {
        let numbers: Sample = run.flow_numbers(Some(flow), "goodput_mbps").collect();
        (!numbers.is_empty()).then(|| numbers.mean())
    };
    let runs = own.runs.iter().filter(|run| run.variant == variant);
    let pairs: Vec<(f64, f64)> = runs
        .filter_map(|run| {
            let same = |theirs: &&Run| theirs.variant == run.variant && theirs.seed == run.seed;
            Some((throughput(run)?, throughput(other.runs.iter().find(same)?)?))
        })
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let theirs = pairs.iter().map(|pair| pair.1).sum::<f64>() / pairs.len() as f64;
    let interval = pairs.iter().map(|(own, other)| own - other).collect::<Sample>().interval();
    let deviation = interval.mean / theirs;
    let holds_zero = interval.low < 0.0 && interval.high > 0.0;
    let narrow = (interval.high - interval.low) / 2.0 <= HALF_WIDTH_MAX * theirs;
    Some((deviation, deviation.abs() <= AGREEMENT || (holds_zero && narrow)))
}

fn figure(results: &Results, others: Option<&Results>, variant: &str, flow: &str) -> String {
    let own = throughput(results, variant, flow);
    if own.is_empty() {
        return "-".into();
    }
    let delay = results.sample(variant, None, "path_delay_ms.p95");
    let delay = if delay.is_empty() { "-".to_string() } else { format!("{:.0}", delay.mean()) };
    let deviation = others.and_then(|others| compared(results, others, variant, flow));
    let deviation = deviation.map_or(String::new(), |(deviation, agrees)| {
        format!(" ({:+.1} %{})", deviation * 100.0, if agrees { "" } else { " ✗" })
    });
    format!("{:.2}, {delay}{deviation}", own.mean())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(values: &[f64]) -> Results {
        let mut results = Results::default();
        for (seed, mbps) in values.iter().enumerate() {
            let run = format!(
                r#"{{"variant": "cubic,loss=1%", "seed": {seed}, "flows": [{{"name": "download", "goodput_mbps": {mbps}}}], "path_delay_ms": {{"p95": 12}}}}"#
            );
            results.add(&run).unwrap();
        }
        results
    }

    #[test]
    fn the_lab_agrees_within_a_twentieth_or_within_what_chance_explains() {
        let sim = results(&[10.0, 20.0, 5.0]);
        let of = |values: &[f64]| compared(&results(values), &sim, "cubic,loss=1%", "download").unwrap().1;
        assert!(of(&[9.6, 19.1, 4.9]));
        // One seed is 40 % off. The interval is too wide to prove anything, although it contains zero.
        assert!(!of(&[6.0, 20.5, 5.0]));
        // The deviation is smaller than the differences between seeds, but each seed has it.
        assert!(!of(&[9.0, 18.8, 4.1]));
        assert!(!of(&[9.3]));
        // 6 % on average. With seeds that are 7.7 % apart, chance may explain it.
        let (sim, lab) = (results(&[10.0; 5]), results(&[11.2, 9.8, 11.1, 10.1, 10.8]));
        let (deviation, agrees) = compared(&lab, &sim, "cubic,loss=1%", "download").unwrap();
        assert!(agrees && deviation > AGREEMENT, "{deviation}");
    }

    #[test]
    fn the_same_seeds_are_compared() {
        let (lab, sim) = (results(&[10.0]), results(&[10.1, 20.0, 30.0]));
        let (deviation, agrees) = compared(&lab, &sim, "cubic,loss=1%", "download").unwrap();
        assert!(agrees && deviation.abs() < 0.011, "{deviation}");
        assert!(compared(&lab, &Results::default(), "cubic,loss=1%", "download").is_none());
    }

    #[test]
    fn a_row_has_the_bound_and_each_place() {
        let scenario: Scenario = toml::from_str(
            "name = \"s\"\ntitle = \"t\"\n[[bounds]]\nvariant = \"loss=1%\"\nmetric = \"goodput_mbps\"\nmin = 9.5\n",
        )
        .unwrap();
        let mut page = String::new();
        write_figures(
            &mut page,
            &scenario,
            &[("simulator", results(&[10.0])), ("virtual time", results(&[9.0]))],
        );
        assert!(page.contains("| simulator | 1 | 1 | 1 | - | - |"), "{page}");
        assert!(page.contains("| virtual time | 1 | 0 | 1 | 0 | 1 |"), "{page}");
        assert!(
            page.contains("| cubic,loss=1% | download | 9.5 | 10.00, 12 | 9.00, 12 (-10.0 % ✗) |"),
            "{page}"
        );
    }
}
