//! docs/evidence/results.md: measurements with their bounds, from the runs in results/.

use std::fmt::Write as _;
use std::path::Path;

use paceline_judge::{Bound, Measurements as _, Misses, Outcome};
use serde::Deserialize;

use crate::model::Results;

/// Folders of runs: results/PLACE/SCENARIO/. Bounds are asserted in virtual time only, because live runs share the
/// machine.
const VIRTUAL: &str = "results/virtual";
const LIVE: &str = "results/live";
const SCENARIOS: &str = "scenarios/accelerator";
const MISSES: &str = "docs/evidence/misses.toml";
const REPORT: &str = "docs/evidence/results.md";

/// Ends the commands of a section. The section's figures follow.
pub(crate) const COMMAND_END: &str = "\n\n<!-- figures -->\n\n";

const INTRODUCTION: &str = include_str!("../pages/results.txt");

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Scenario {
    name: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    bounds: Vec<Bound>,
}

/// Writes the report. Returns a finding for each missed bound that is not a known miss, and for each known miss that
/// holds.
pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    let misses: Misses = match std::fs::read_to_string(root.join(MISSES)) {
        Ok(text) => toml::from_str(&text).map_err(|error| format!("{MISSES}: {error}"))?,
        Err(_) => Misses::default(),
    };
    let earlier = crate::seal::unsealed(&std::fs::read_to_string(root.join(REPORT)).unwrap_or_default());
    let mut report = String::from(INTRODUCTION);
    let (mut findings, mut kept) = (Vec::new(), false);
    for file in crate::tidy::tracked(root, &format!(":(glob){SCENARIOS}/*.toml"))? {
        let scenario: Scenario = crate::read_toml(root, &file)?;
        let of = |place: &str| Results::load(&root.join(place).join(&scenario.name));
        let (proved, live) = (of(VIRTUAL)?, of(LIVE)?);
        let outcomes: Vec<Outcome> = scenario.bounds.iter().flat_map(|bound| bound.check(&proved)).collect();
        write_section(&mut report, &scenario, &file);
        if proved.runs.is_empty() && live.runs.is_empty() {
            report.push_str(earlier_figures(&earlier, &scenario.name));
            kept = true;
            continue;
        }
        write_runs(&mut report, &proved, &live);
        write_bounds(&mut report, &scenario, &outcomes, &live, &misses);
        if !proved.runs.is_empty() {
            findings.extend(outcomes.iter().filter_map(|outcome| finding(&scenario.name, outcome, &misses)));
        }
    }
    let origin = crate::seal::Origin::of_folder(root, &root.join("results")).in_part(kept);
    crate::write(root, REPORT, &crate::seal::sealed(&report, &origin))?;
    Ok(findings)
}

/// Returns the earlier page's figures for a scenario, which follow its heading and command. They stay if no runs
/// replace them.
pub(crate) fn earlier_figures<'a>(page: &'a str, name: &str) -> &'a str {
    let heading = format!("\n## {name}\n");
    let section = page
        .split_once(&heading)
        .map_or("", |(_, rest)| rest.split_once("\n## ").map_or(rest, |(own, _)| own));
    match section.split_once(COMMAND_END) {
        Some((_, figures)) if !figures.trim().is_empty() => figures,
        _ => "Not measured.\n",
    }
}

fn write_section(report: &mut String, scenario: &Scenario, file: &str) {
    let Scenario { name, title, .. } = scenario;
    let _ = write!(
        report,
        "\n## {name}\n\n{title}\n\n    paceline run {file} --on lab\n    make prove SCENARIOS={name}{COMMAND_END}"
    );
}

fn write_runs(report: &mut String, proved: &Results, live: &Results) {
    report.push_str(
        "| in | variant | flow | runs | goodput Mbit/s | completion s | RTT p50 ms | path delay p95 ms | link used % | resent \
         | RTO | TLP |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for (place, results) in [("virtual time", proved), ("live", live)] {
        for variant in results.variants() {
            for flow in results.flow_names(variant) {
                write_row(report, place, results, variant, flow);
            }
        }
    }
}

fn write_row(report: &mut String, place: &str, results: &Results, variant: &str, flow: &str) {
    let median = |name: &str, factor: f64, digits: usize| {
        let sample = results.sample(variant, Some(flow), name);
        if sample.is_empty() { "-".to_string() } else { format!("{:.digits$}", sample.median() * factor) }
    };
    let runs = results.runs.iter().filter(|run| run.variant == variant).count();
    let cells = [
        median("goodput_mbps", 1.0, 2),
        median("completion_s", 1.0, 2),
        median("rtt_ms.p50", 1.0, 1),
        median("path_delay_ms.p95", 1.0, 1),
        median("links.radio_down.utilization", 100.0, 1),
        median("retransmitted_segments", 1.0, 0),
        median("timeouts", 1.0, 0),
        median("tail_loss_probes", 1.0, 0),
    ];
    let _ = writeln!(report, "| {place} | {variant} | {flow} | {runs} | {} |", cells.join(" | "));
}

fn write_bounds(
    report: &mut String,
    scenario: &Scenario,
    outcomes: &[Outcome],
    live: &Results,
    misses: &Misses,
) {
    if outcomes.iter().all(|outcome| outcome.measured.is_none()) {
        return;
    }
    report.push_str("\n| bound | variant | wanted | virtual time | samples | live | |\n|---|---|---|---:|---:|---:|---|\n");
    for outcome in outcomes {
        let bound = &outcome.bound;
        let live = bound.check(live).into_iter().find(|other| other.variant == outcome.variant);
        let _ = writeln!(
            report,
            "| {} | {} | {} | {} | {} | {} | {} |",
            what(bound),
            outcome.variant,
            wanted(bound),
            figure(Some(outcome)),
            outcome.samples,
            figure(live.as_ref()),
            match (outcome.holds, misses.reason(&scenario.name, outcome)) {
                (true, _) => "holds".to_string(),
                (false, Some(reason)) => format!("**missed**: {reason}"),
                (false, None) => "**missed**".to_string(),
            }
        );
    }
}

fn finding(scenario: &str, outcome: &Outcome, misses: &Misses) -> Option<String> {
    let line = |verdict: &str| {
        let bound = &outcome.bound;
        format!(
            "{scenario}, {}: {} {}, measured {}: {verdict}",
            outcome.variant,
            what(bound),
            wanted(bound),
            figure(Some(outcome))
        )
    };
    match (outcome.holds, misses.reason(scenario, outcome)) {
        (false, None) => Some(line("missed")),
        (true, Some(_)) => Some(line(&format!("holds, so take it out of {MISSES}"))),
        _ => None,
    }
}

fn what(bound: &Bound) -> String {
    let statistic = format!("{:?}", bound.statistic).to_lowercase();
    let flow = bound.flow.as_ref().map(|flow| format!(" of {flow}")).unwrap_or_default();
    let relative = bound.relative_to.as_ref().map(|other| format!(" / {other}")).unwrap_or_default();
    format!("{statistic} {}{flow}{relative}", bound.metric)
}

fn wanted(bound: &Bound) -> String {
    let limits = [bound.min.map(|min| format!(">= {min}")), bound.max.map(|max| format!("<= {max}"))];
    limits.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn figure(outcome: Option<&Outcome>) -> String {
    match outcome.and_then(|outcome| outcome.measured) {
        None => "-".to_string(),
        Some(measured) if measured.low == measured.high => format!("{:.3}", measured.mean),
        Some(measured) => format!("{:.3} ({:.3} to {:.3})", measured.mean, measured.low, measured.high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(value: f64) -> Outcome {
        let mut results = Results::default();
        let run = format!(
            r#"{{"variant": "accelerated,loss=1%", "seed": 1, "flows": [{{"name": "a", "goodput_mbps": {value}}}]}}"#
        );
        results.add(&run).unwrap();
        let bound: Bound =
            toml::from_str("variant = \"accelerated\"\nmetric = \"goodput_mbps\"\nmin = 6.7\n").unwrap();
        bound.check(&results).remove(0)
    }

    #[test]
    fn a_miss_is_a_finding_unless_it_is_known_and_a_known_miss_that_holds_is_one() {
        let none = Misses::default();
        let known: Misses = toml::from_str(
            "[[miss]]\nscenario = \"s\"\nmetric = \"goodput_mbps\"\nvariant = \"loss=1%\"\nreason = \"because\"\n",
        )
        .unwrap();
        assert!(finding("s", &outcome(6.8), &none).is_none());
        assert!(finding("s", &outcome(6.6), &none).unwrap().contains("missed"));
        assert!(finding("s", &outcome(6.6), &known).is_none());
        assert!(finding("other", &outcome(6.6), &known).is_some());
        assert!(finding("s", &outcome(6.8), &known).unwrap().contains("take it out"));
    }

    #[test]
    fn figures_stay_where_there_are_no_runs_to_replace_them() {
        let page =
            format!("# Results\n\n## a\n\nx{COMMAND_END}| 1 |\n\n## b\n\ny{COMMAND_END}Not measured.\n");
        assert_eq!(earlier_figures(&page, "a"), "| 1 |\n");
        assert_eq!(earlier_figures(&page, "b"), "Not measured.\n");
        assert_eq!(earlier_figures(&page, "c"), "Not measured.\n");
    }

    #[test]
    fn figures_show_an_interval_only_where_there_is_one() {
        assert_eq!(figure(Some(&outcome(6.8))), "6.800");
        assert_eq!(figure(None), "-");
        assert_eq!(wanted(&outcome(6.8).bound), ">= 6.7");
    }
}
