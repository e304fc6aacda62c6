//! Table 3 and Fig. 14: what DRWA gains where the latency is long.

use std::path::Path;

use paceline_sim::reproduce::drwa::{Experiment, Gain, Network, Window};
use serde::Serialize;

use super::Part;
use super::case::{Case, GOODPUT, Measured};
use crate::error::Result;
use crate::output::say;
use crate::reproduce::report::{Bound, Section, number};
use crate::table::new_table;

/// A published cell, and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct CellResult {
    pub(super) network: &'static str,
    pub(super) latency_ms: u64,
    pub(super) published: f64,
    pub(super) value: f64,
    pub(super) clamped_mbps: f64,
    pub(super) drwa_mbps: f64,
}

/// Section 5.2: 100 MB.
pub(super) const BYTES: u64 = 100_000_000;

fn pair(gain: &Gain) -> [Case; 2] {
    let of = |what: &str, window| {
        let near = Experiment::near(gain.network, window);
        let experiment = Experiment { rtt_ms: gain.latency_ms, bytes: Some(BYTES), ..near };
        Case::new(format!("Table 3, {}, {} ms, {what}", gain.network.name(), gain.latency_ms), experiment)
    };
    [of("clamped", Window::clamped(gain.network.rmem_max())), of("DRWA", Window::drwa())]
}

pub(super) fn cases() -> Vec<Case> {
    Gain::all().iter().flat_map(pair).collect()
}

pub(super) fn results(measured: &Measured<'_>) -> Vec<CellResult> {
    let result = |gain: Gain| {
        let [clamped, drwa] = pair(&gain);
        CellResult {
            network: gain.network.name(),
            latency_ms: gain.latency_ms,
            published: gain.percent,
            value: measured.gain(&drwa, &clamped, GOODPUT),
            clamped_mbps: measured.mean(&clamped, GOODPUT),
            drwa_mbps: measured.mean(&drwa, GOODPUT),
        }
    };
    Gain::all().into_iter().map(result).collect()
}

pub(super) fn print(cells: &[CellResult]) {
    if cells.is_empty() {
        return;
    }
    let mut table = new_table(
        2,
        &["network", "latency, ms", "published, %", "ours, %", "points", "clamped, Mbit/s", "DRWA, Mbit/s"],
    );
    for cell in cells {
        table.add_row([
            cell.network.to_string(),
            cell.latency_ms.to_string(),
            format!("{:.2}", cell.published),
            format!("{:.2}", cell.value),
            format!("{:+.1}", cell.value - cell.published),
            format!("{:.2}", cell.clamped_mbps),
            format!("{:.2}", cell.drwa_mbps),
        ]);
    }
    say!("Table 3: throughput of DRWA over that of an untouched phone\n{table}");
}

pub(super) fn report(measured: &Measured<'_>, _folder: &Path) -> Result<Part> {
    let cells = results(measured);
    let of = |network: Network| cells.iter().filter(move |cell| cell.network == network.name());
    let worst = |network| of(network).map(|cell| (cell.value - cell.published).abs()).fold(0.0, f64::max);
    let mean = |network| of(network).map(|cell| (cell.value - cell.published).abs()).sum::<f64>() / 5.0;
    let bounds: Vec<Bound> = Network::ALL
        .into_iter()
        .map(|network| {
            let name =
                format!("Table 3, {}: largest deviation from the published gain, points", network.name());
            let bound = Bound::at_most(name, 8.0, worst(network));
            match network {
                Network::SprintEvdo => bound.with_note(SPRINT),
                Network::VerizonLte => bound.with_note(LTE),
                _ => bound,
            }
        })
        .collect();
    let row = |network: Network| {
        vec![
            network.name().into(),
            number(network.mbps(), 2),
            network.rmem_max().into(),
            number(worst(network), 1),
            number(mean(network), 1),
        ]
    };
    let section = Section {
        name: "table-3",
        title: "Table 3: the networks".into(),
        text: TEXT.into(),
        columns: vec![
            "network",
            "rate, Mbit/s",
            "tcp_rmem_max, bytes",
            "largest deviation, points",
            "mean deviation, points",
        ],
        rows: Network::ALL.into_iter().map(row).collect(),
        files: Vec::new(),
    };
    Ok((section, bounds))
}

const SPRINT: &str = "a window W fills a path of latency L at W / L, so that with one rate the gain grows as the latency does. Published, \
                      1 + gain grows 1.31 times from 448 to 536 ms, which is 1.20 times as long. From 536 to 754 ms, 1.41 times as \
                      long, it grows 1.10 times. These are rates of 2.3 and 1.8 Mbit/s. No rate is within 16 points of all five, nor \
                      within 8 with a further delay of any length";
const LTE: &str = "the published gains beyond 219 ms are smaller than those of any constant rate that fits the one at 219 ms. A \
                   window of 484,848 bytes is 7.3 Mbit/s at 533 ms";
const TEXT: &str = "\
Downloads of 100 MB; the latency is the round trip without queues. The text gives no rates. Each network has one, from `--part fit`.";
