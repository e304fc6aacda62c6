//! Table 3 and Fig. 14: the gain of DRWA on paths with long latency.

use std::path::Path;

use paceline_sim::reproduce::drwa::{Experiment, Gain, Network, Window};
use serde::Serialize;

use super::Part;
use super::case::{Case, GOODPUT, Measured};
use crate::error::Result;
use crate::output::say;
use crate::reproduce::report::{Bound, Section, number};
use crate::table::{Column, table_of};

/// A published cell, and our value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct CellResult {
    pub(super) network: &'static str,
    pub(super) latency_ms: u64,
    pub(super) published: f64,
    pub(super) value: f64,
    pub(super) clamped_mbps: f64,
    pub(super) drwa_mbps: f64,
}

/// The download of Section 5.2 has 100 MB.
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
    let table = table_of(2, &COLUMNS, cells);
    say!("Table 3: throughput of DRWA over that of an untouched phone\n{table}");
}

const COLUMNS: [Column<CellResult>; 7] = [
    ("network", |cell| cell.network.to_string()),
    ("latency, ms", |cell| cell.latency_ms.to_string()),
    ("published, %", |cell| format!("{:.2}", cell.published)),
    ("ours, %", |cell| format!("{:.2}", cell.value)),
    ("points", |cell| format!("{:+.1}", cell.value - cell.published)),
    ("clamped, Mbit/s", |cell| format!("{:.2}", cell.clamped_mbps)),
    ("DRWA, Mbit/s", |cell| format!("{:.2}", cell.drwa_mbps)),
];

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
    let section =
        Section { rows: Network::ALL.into_iter().map(row).collect(), ..Section::of("drwa", "table-3") };
    Ok((section, bounds))
}

const SPRINT: &str = "a window W fills a path of latency L at W / L, so that with one rate the gain grows as the latency does. Published, \
                      1 + gain grows 1.31 times from 448 to 536 ms, which is 1.20 times as long. From 536 to 754 ms, 1.41 times as \
                      long, it grows 1.10 times. These are rates of 2.3 and 1.8 Mbit/s. No rate is within 16 points of all five, nor \
                      within 8 with a further delay of any length";
const LTE: &str = "the published gains beyond 219 ms are smaller than those of any constant rate that fits the one at 219 ms. A \
                   window of 484,848 bytes is 7.3 Mbit/s at 533 ms";
