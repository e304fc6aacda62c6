//! The figures: their runs, what the paper leaves open, and the plots.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::scenarios::{Outcome, Outcomes, Wanted};
use super::series::{Series, panel};
use crate::error::Result;
use crate::plot::{self, Panel};
use crate::reproduce::report::{Section, number};
use crate::result::values;

/// One figure, or several that show the same runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    pub(super) numbers: Vec<u8>,
    name: String,
    title: String,
    scenario: String,
    /// Each variant gets its own plot.
    variants: Vec<String>,
    /// What the paper leaves open, what we chose, and what the figure shows.
    text: String,
}

impl Figure {
    pub(super) fn want(&'static self, wanted: &mut Wanted) {
        self.variants.iter().for_each(|variant| wanted.add(&self.scenario, variant));
    }

    /// Returns the figure as a table of its runs, and writes its plots to `out`.
    pub(super) fn section(&'static self, outcomes: &Outcomes, out: &Path) -> Result<Section> {
        let (mut rows, mut files) = (Vec::new(), Vec::new());
        if let Some(outcome) = outcomes.get(&self.scenario) {
            for (number, variant) in self.variants.iter().enumerate() {
                rows.extend(row(outcome, variant));
                if let (Some(panels), Some(series)) = (self.panels(), outcome.files(variant)) {
                    let file = format!("accelerator-{}-{}.svg", self.name, number + 1);
                    let title = format!("{}: {variant}", self.title);
                    plot::write(&out.join(&file), &title, &panels(&Series::read(&series)?))?;
                    files.push(file);
                }
            }
        }
        Ok(Section {
            name: &self.name,
            title: self.title.clone(),
            text: format!("Scenario `{}`. {}", self.scenario, self.text),
            columns: COLUMNS.to_vec(),
            rows,
            files,
        })
    }

    fn panels(&self) -> Option<fn(&Series) -> Vec<Panel>> {
        Some(match self.name.as_str() {
            "fig-4" => fig_4,
            "fig-5" => fig_5,
            "fig-6" | "fig-9" => whole,
            "fig-8" => fig_8,
            "fig-13" => fig_13,
            "fig-15" => fig_15,
            "fig-18" => fig_18,
            "fig-22" => fig_22,
            _ => return None,
        })
    }
}

const COLUMNS: [&str; 7] =
    ["variant", "runs", "goodput Mbit/s", "RTT p50 ms", "path delay p95 ms", "longest gap s", "timeouts"];

fn row(outcome: &Outcome, variant: &str) -> Option<Vec<Value>> {
    let mean = |metric: &str, digits: i32| {
        let found: Vec<f64> = outcome.of(variant).flat_map(|run| values(run, metric, None)).collect();
        number(found.iter().sum::<f64>() / found.len() as f64, digits)
    };
    let runs = outcome.of(variant).count();
    (runs > 0).then(|| {
        vec![
            json!(variant),
            json!(runs),
            mean("goodput_mbps", 3),
            mean("rtt_ms.p50", 1),
            mean("path_delay_ms.p95", 1),
            mean("longest_gap_s", 1),
            mean("timeouts", 1),
        ]
    })
}

fn windows(series: &Series, until_s: f64) -> Panel {
    panel(
        "Windows (KB)",
        vec![
            ("AWnd shown to the sender", series.of_sender(until_s, |row| row.peer_window_bytes / 1e3)),
            ("CWnd", series.of_sender(until_s, |row| row.cwnd_segments * SEGMENT_BYTES / 1e3)),
        ],
    )
}

fn cwnd(series: &Series, until_s: f64) -> Panel {
    let cwnd = series.of_sender(until_s, |row| row.cwnd_segments * SEGMENT_BYTES / 1e3);
    panel("CWnd (KB)", vec![("CWnd", cwnd)])
}

fn rates(series: &Series, bin_s: f64, until_s: f64) -> Panel {
    panel(
        "Rates (Mbit/s)",
        vec![
            ("throughput", series.throughput("download", bin_s, until_s)),
            ("sending rate", series.link_rate("wired_down", bin_s, until_s)),
        ],
    )
}

fn fig_4(series: &Series) -> Vec<Panel> {
    vec![windows(series, 20.0), rates(series, 0.5, 20.0)]
}

fn fig_5(series: &Series) -> Vec<Panel> {
    vec![cwnd(series, 15.0), rates(series, 0.5, 15.0)]
}

fn whole(series: &Series) -> Vec<Panel> {
    vec![cwnd(series, WHOLE_S), rates(series, 5.0, WHOLE_S)]
}

fn fig_8(series: &Series) -> Vec<Panel> {
    let until_s = 60.0;
    let gateway = panel(
        "Gateway (KB)",
        vec![
            ("virtual AWnd", series.of_gateway(until_s, |row| row.virtual_window_bytes / 1e3)),
            ("buffer", series.of_gateway(until_s, |row| row.waiting_bytes / 1e3)),
            ("client's AWnd", series.of_gateway(until_s, |row| row.client_window_bytes / 1e3)),
        ],
    );
    vec![cwnd(series, until_s), gateway, rates(series, 0.5, until_s)]
}

fn fig_13(series: &Series) -> Vec<Panel> {
    vec![cwnd(series, 60.0), rates(series, 0.5, 60.0)]
}

fn modulation(series: &Series, until_s: f64) -> Vec<Panel> {
    let times = panel(
        "Of the sender (ms)",
        vec![
            ("RTO", series.of_sender(until_s, |row| row.rto_ms)),
            ("RTT", series.of_sender(until_s, |row| row.rtt_ms)),
        ],
    );
    let delay = series.of_gateway(until_s, |row| row.ack_delay_ms);
    vec![times, panel("Delay added to ACKs (ms)", vec![("D", delay)]), cwnd(series, until_s)]
}

fn fig_15(series: &Series) -> Vec<Panel> {
    modulation(series, 20.0)
}

fn shares(series: &Series, flows: &[&str], until_s: f64) -> Vec<Panel> {
    let of_bin = |bin_s: f64, title: &str| {
        let lines = flows.iter().map(|flow| (*flow, series.throughput(flow, bin_s, until_s)));
        panel(title, lines.collect())
    };
    vec![of_bin(1.0, "Over 1 s (Mbit/s)"), of_bin(0.1, "Over 100 ms (Mbit/s)")]
}

fn fig_18(series: &Series) -> Vec<Panel> {
    shares(series, &["first", "second"], 45.0)
}

fn fig_22(series: &Series) -> Vec<Panel> {
    shares(series, &["weight-1", "weight-2", "weight-3"], 60.0)
}

const SEGMENT_BYTES: f64 = 1_460.0;
const WHOLE_S: f64 = 700.0;
