//! Compares `auto` with the fixed profiles, and judges it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::{AUTO, PASS};
use crate::compare::throughput;
use crate::result::Run;

/// The least throughput of `auto` as a share of that of `pass`.
const OF_PASS_MIN: f64 = 0.98;
/// The least throughput of `auto` as a share of that of the best fixed profile.
const OF_BEST_MIN: f64 = 0.95;
/// The largest delay of `auto` as a multiple of that of the best fixed profile.
const DELAY_MAX: f64 = 1.2;
/// Profiles with at least this share of the highest throughput are level. The best is the one with the least delay.
const LEVEL: f64 = 0.995;
/// Smaller delays count as this one, which is the time of two full packets at 10 Mbit/s.
const DELAY_LEAST_MS: f64 = 2.5;

/// One cell of a scenario, with every profile.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) scenario: String,
    /// Empty if the scenario varies nothing.
    pub(super) cell: String,
    pub(super) profiles: Vec<Row>,
}

/// The results of one profile: means over runs.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Row {
    pub(super) profile: String,
    /// The goodput of all downloads together, or of all uploads if there is no download.
    pub(super) throughput_mbps: f64,
    pub(super) delay_p95_ms: f64,
    /// The number of decisions of `auto`, by reason.
    pub(super) reasons: BTreeMap<String, u64>,
    /// The number of split flows, over all runs.
    pub(super) split: u64,
}

/// The comparison of `auto` with the fixed profiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    /// Throughput relative to passing the flow through.
    pub(super) of_pass: f64,
    /// Throughput relative to the best fixed profile.
    pub(super) of_best: f64,
    /// Delay relative to that of the best fixed profile.
    pub(super) delay_of_best: f64,
}

/// Returns the cells in the order of the runs. The runs' names end with the profile.
pub(super) fn cells(scenario: &str, runs: &[Run]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for run in runs {
        let (cell, profile) = run.variant.rsplit_once(',').unwrap_or(("", &run.variant));
        if throughput(run) == 0.0 {
            // Without TCP, the profiles make no difference.
            continue;
        }
        let place = cells.iter().position(|known| known.cell == cell).unwrap_or_else(|| {
            cells.push(Cell { scenario: scenario.into(), cell: cell.into(), profiles: Vec::new() });
            cells.len() - 1
        });
        let rows = &mut cells[place].profiles;
        if !rows.iter().any(|row| row.profile == profile) {
            let of_profile: Vec<&Run> = runs.iter().filter(|other| other.variant == run.variant).collect();
            rows.push(row(profile, &of_profile));
        }
    }
    cells
}

fn row(profile: &str, runs: &[&Run]) -> Row {
    let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(|run| of(run)).sum::<f64>() / runs.len() as f64;
    let mut reasons = BTreeMap::new();
    let mut split = 0;
    for (name, count) in runs.iter().flat_map(|run| &run.gateway.counters) {
        let count = count.as_u64().unwrap_or(0);
        if let Some(reason) = name.strip_prefix("auto_").filter(|_| count > 0) {
            *reasons.entry(reason.replace('_', "-")).or_default() += count;
        }
        split += if name == "flows_split" { count } else { 0 };
    }
    Row {
        profile: profile.into(),
        throughput_mbps: mean(&throughput),
        delay_p95_ms: mean(&|run| run.path_delay_ms.p95.unwrap_or(0.0)),
        reasons,
        split,
    }
}

impl Row {
    pub(super) fn is_auto(&self) -> bool {
        AUTO.contains(&self.profile.as_str())
    }

    pub(super) fn decisions(&self) -> String {
        let reasons: Vec<String> =
            self.reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        reasons.join(", ")
    }
}

impl Verdict {
    fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        if self.of_pass < OF_PASS_MIN {
            missed.push(format!("{:.3} of passing", self.of_pass));
        }
        if self.of_best < OF_BEST_MIN {
            missed.push(format!("{:.3} of the best", self.of_best));
        }
        if self.delay_of_best > DELAY_MAX {
            missed.push(format!("{:.2} times the best's delay", self.delay_of_best));
        }
        missed
    }
}

impl Cell {
    /// The fixed profile with the highest throughput. Among level ones, the one with the least delay.
    fn best(&self) -> Option<&Row> {
        let fixed = || self.profiles.iter().filter(|row| !row.is_auto());
        let most = fixed().map(|row| row.throughput_mbps).fold(0.0, f64::max);
        let level = fixed().filter(|row| row.throughput_mbps >= LEVEL * most);
        level.min_by(|a, b| a.delay_p95_ms.total_cmp(&b.delay_p95_ms))
    }

    /// Judges a row of `auto`. Returns none for other rows, or if there is nothing to compare with.
    pub(super) fn verdict(&self, row: &Row) -> Option<Verdict> {
        let pass = self.profiles.iter().find(|row| row.profile == PASS)?;
        let best = self.best().filter(|_| row.is_auto())?;
        let delay = |row: &Row| row.delay_p95_ms.max(DELAY_LEAST_MS);
        Some(Verdict {
            of_pass: row.throughput_mbps / pass.throughput_mbps,
            of_best: row.throughput_mbps / best.throughput_mbps,
            delay_of_best: delay(row) / delay(best),
        })
    }

    /// The cell with its best profile and its missed bounds.
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "scenario": self.scenario,
            "cell": self.cell,
            "profiles": self.profiles,
            "best": self.best().map(|row| &row.profile),
            "missed": self.missed(),
        })
    }

    /// The bounds that `auto` misses here.
    pub(super) fn missed(&self) -> Vec<String> {
        let of_row = |row: &Row| {
            let missed = self.verdict(row).map(|verdict| verdict.missed()).unwrap_or_default();
            let name = format!("{} {} {}", self.scenario, self.cell, row.profile);
            missed.into_iter().map(move |what| format!("{name}: {what}")).collect::<Vec<String>>()
        };
        self.profiles.iter().flat_map(of_row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(rows: &[(&str, f64, f64)]) -> Cell {
        let row = |(profile, throughput_mbps, delay_p95_ms): &(&str, f64, f64)| Row {
            profile: profile.to_string(),
            throughput_mbps: *throughput_mbps,
            delay_p95_ms: *delay_p95_ms,
            ..Row::default()
        };
        Cell { scenario: "x".into(), cell: String::new(), profiles: rows.iter().map(row).collect() }
    }

    #[test]
    fn of_level_profiles_the_one_with_the_least_delay_is_the_best() {
        let good = cell(&[("pass", 5.0, 900.0), ("transparent", 4.99, 30.0), ("auto", 4.98, 33.0)]);
        assert_eq!(good.missed(), Vec::<String>::new());
        let slow = cell(&[("pass", 5.0, 900.0), ("transparent", 4.99, 30.0), ("auto", 4.98, 60.0)]);
        assert_eq!(slow.missed(), ["x  auto: 2.00 times the best's delay"]);
    }

    #[test]
    fn each_bound_is_judged_by_itself() {
        let bad = cell(&[
            ("pass", 5.0, 1.0),
            ("split-rre", 9.0, 30.0),
            ("auto", 4.8, 1.0),
            ("auto-later", 8.9, 30.0),
        ]);
        assert_eq!(bad.missed(), ["x  auto: 0.960 of passing", "x  auto: 0.533 of the best"]);
    }
}
