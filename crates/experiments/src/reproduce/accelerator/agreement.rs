//! Compares the simulator with the virtual-time lab. Both run the same gateway, one between our endpoints, the other
//! between Linux 6.1 hosts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::scenarios::{Outcome, Outcomes};
use crate::error::{Error, Result};
use crate::reproduce::report::{Bound, Section, number};
use crate::result::{statistic, values};
use crate::run::agrees;
use crate::scenario::{Statistic, name_matches};

/// A run of the lab, from published/virtual-lab.csv.
#[derive(Clone, Debug, Deserialize)]
struct LabRow {
    scenario: String,
    variant: String,
    seed: u64,
    flow: String,
    goodput_mbps: f64,
    path_delay_p95_ms: Option<f64>,
}

/// docs/evidence/differences.toml: the known differences and their reasons.
#[derive(Debug, Deserialize)]
struct Differences {
    difference: Vec<Known>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    scenario: String,
    #[serde(default)]
    variant: String,
    metric: Option<String>,
    reason: String,
}

impl Known {
    fn is_about(&self, pair: &Pair) -> bool {
        self.scenario == pair.scenario
            && name_matches(&pair.variant, &self.variant)
            && self.metric.as_deref().is_none_or(|metric| metric == pair.metric)
    }
}

/// A number that both simulator and lab have.
struct Pair {
    scenario: &'static str,
    variant: String,
    flow: String,
    metric: &'static str,
    runs: usize,
    sim: f64,
    lab: f64,
    agrees: bool,
}

/// Compares every number that both have. Each is the median over the common seeds.
pub(super) fn compare(outcomes: &Outcomes) -> Result<(Section, Vec<Bound>)> {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../published/virtual-lab.csv"));
    let lab: Vec<LabRow> = csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect::<csv::Result<_>>()
        .map_err(|error| Error::failed(format!("published/virtual-lab.csv: {error}")))?;
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evidence/differences.toml"));
    let known: Differences = toml::from_str(text)
        .map_err(|error| Error::failed(format!("docs/evidence/differences.toml: {error}")))?;
    let known = known.difference;
    let mut pairs = Vec::new();
    for (source, outcome) in outcomes.judged() {
        let lab: Vec<&LabRow> = lab.iter().filter(|row| row.scenario == source.name).collect();
        pairs.extend(pairs_of(source.name, outcome, &lab));
    }
    let bounds = [GOODPUT, DELAY].map(|metric| bound(&pairs, metric));
    let disagree = pairs.iter().filter(|pair| !pair.agrees).count();
    let section = Section {
        rows: pairs.iter().map(|pair| row(pair, &known)).collect(),
        ..Section::of("accelerator", "lab")
    }
    .told("agree", pairs.len() - disagree)
    .told("numbers", pairs.len());
    Ok((section, bounds.to_vec()))
}

fn pairs_of(scenario: &'static str, outcome: &Outcome, lab: &[&LabRow]) -> Vec<Pair> {
    let mut of_flow: BTreeMap<(&str, &str), Vec<&LabRow>> = BTreeMap::new();
    for row in lab {
        of_flow.entry((&row.variant, &row.flow)).or_default().push(row);
    }
    let mut pairs = Vec::new();
    let mut delay_of = None;
    for ((variant, flow), rows) in of_flow {
        let rows: Vec<&&LabRow> =
            rows.iter().filter(|row| outcome.of(variant).any(|run| run.seed == row.seed)).collect();
        let seeds: Vec<u64> = rows.iter().map(|row| row.seed).collect();
        let median = |values: Vec<f64>| statistic(Statistic::Median, &values);
        let sim = |metric: &str| {
            let runs = outcome.of(variant).filter(|run| seeds.contains(&run.seed));
            median(runs.filter_map(|run| median(values(run, metric, Some(flow)))).collect())
        };
        let mut add = |metric: &'static str, flow: &str, lab: Option<f64>| {
            let Some((sim, lab)) = sim(metric).zip(lab) else { return };
            let agrees = agrees(metric, sim, lab).unwrap_or(true);
            let (variant, flow, runs) = (variant.to_string(), flow.to_string(), seeds.len());
            pairs.push(Pair { scenario, variant, flow, metric, runs, sim, lab, agrees });
        };
        add(GOODPUT, flow, median(rows.iter().map(|row| row.goodput_mbps).collect()));
        if delay_of != Some(variant) {
            delay_of = Some(variant);
            add(DELAY, "", median(rows.iter().filter_map(|row| row.path_delay_p95_ms).collect()));
        }
    }
    pairs
}

fn bound(pairs: &[Pair], metric: &'static str) -> Bound {
    let of_metric = || pairs.iter().filter(|pair| pair.metric == metric);
    let share = of_metric().filter(|pair| pair.agrees).count() as f64 / of_metric().count().max(1) as f64;
    let what = if metric == GOODPUT { "goodput within 5 %" } else { "p95 delay within 10 % or 2 ms" };
    let differ: Vec<String> = of_metric()
        .filter(|pair| !pair.agrees)
        .map(|pair| format!("{} {} {}", pair.scenario, pair.variant, pair.flow).trim_end().to_string())
        .collect();
    let bound = Bound::at_least(format!("simulator and virtual-time lab: share of {what}"), 1.0, share);
    if differ.is_empty() { bound } else { bound.with_note(differ.join("; ")) }
}

fn row(pair: &Pair, known: &[Known]) -> Vec<Value> {
    let reason = known.iter().find(|known| known.is_about(pair)).map(|known| known.reason.as_str());
    let verdict = if pair.agrees { "" } else { reason.unwrap_or("differs, not explained") };
    vec![
        json!(pair.scenario),
        json!(pair.variant),
        json!(pair.flow),
        json!(pair.metric),
        json!(pair.runs),
        number(pair.sim, 3),
        number(pair.lab, 3),
        json!(format!("{:+.1} %", (pair.sim / pair.lab - 1.0) * 100.0)),
        json!(verdict),
    ]
}

const GOODPUT: &str = "goodput_mbps";
const DELAY: &str = "path_delay_ms.p95";
