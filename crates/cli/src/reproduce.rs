//! `paceline reproduce`: published cells and ours, side by side.

pub(crate) mod accelerator;
mod bounds;
mod report;

use indicatif::{ProgressBar, ProgressStyle};
use paceline_sim::reproduce::or::{Cell, Outcome, SenderSetup, Setup, SetupLoss, measure};
use paceline_tcp::DetectionName;
use paceline_theory::or::{Episode, RateReduction};
use serde::Serialize;

use crate::args::ReproduceOrArgs;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::result::new_table;
use bounds::BoundResult;

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
struct Reproduction {
    cells: Vec<CellResult>,
    bounds: Vec<BoundResult>,
}

/// A published cell with the columns of its file, and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct CellResult {
    table: u8,
    congestion_control: String,
    loss_recovery: String,
    variant: &'static str,
    /// `numerical` or `experimental`.
    kind: &'static str,
    axis: String,
    axis_value: f64,
    /// Ours, in the unit of the published one: the mean over runs.
    value: f64,
    /// Ours, where the published cell has one.
    utilization_percent: Option<f64>,
    published: f64,
    published_percent: Option<f64>,
    /// Half of the 95 % interval; null for one run, and for what is computed.
    ci95: Option<f64>,
    /// Share of recoveries in which the application was woken too late; null for what is computed.
    stalled_share: Option<f64>,
    timeouts: Option<u64>,
}

pub(crate) fn or(args: &ReproduceOrArgs) -> Result<()> {
    interrupt::watch()?;
    let wanted = |cell: &Cell| args.table.is_empty() || args.table.contains(&cell.table);
    let cells: Vec<Cell> = Cell::all().into_iter().filter(wanted).collect();
    let mut results = Vec::with_capacity(cells.len());
    let bar = progress_bar(cells.len() as u64, args.json);
    // Few cells at a time, so that Ctrl-C is heard.
    for some in cells.chunks((RUNS_AT_A_TIME / args.runs as usize).max(1)) {
        if interrupt::requested() {
            bar.finish_and_clear();
            return Err(Error::interrupted());
        }
        bar.set_message(format!("Table {}", some[0].table));
        results.extend(run_cells(some, args.runs)?);
        bar.inc(some.len() as u64);
    }
    bar.finish_and_clear();
    let bounds = bounds::judge(&results, args.table.is_empty().then(no_loss_mbps).transpose()?);
    let reproduction = Reproduction { cells: results, bounds };
    if args.json {
        let text =
            serde_json::to_string_pretty(&reproduction).map_err(|error| Error::failed(error.to_string()))?;
        println!("{text}");
    } else {
        print(&reproduction);
    }
    Ok(())
}

fn run_cells(cells: &[Cell], runs: u32) -> Result<Vec<CellResult>> {
    let outcomes = measure(cells, runs.into(), DetectionName::Fack)
        .map_err(|error| Error::failed(format!("cannot simulate: {error}")))?;
    let mut outcomes = outcomes.iter();
    let result = |cell: &Cell| {
        if cell.numerical {
            return computed(cell);
        }
        match outcomes.next() {
            Some(outcome) => Ok(measured(outcome)),
            None => Err(Error::failed("a published cell was not measured")),
        }
    };
    cells.iter().map(result).collect()
}

/// By the theorems, in packets of 1,500 bytes.
fn computed(cell: &Cell) -> Result<CellResult> {
    let setup = cell.setup();
    let SetupLoss::Burst(burst) = setup.loss else {
        return Err(Error::failed(format!("Table {}: a computed cell without a burst", cell.table)));
    };
    let packets_per_s = setup.mbps * 1e6 / 8.0 / PACKET_BYTES;
    let episode =
        Episode::new(packets_per_s, setup.rtt_ms as f64 / 1e3, setup.window_segments(), burst, BETA)
            .map_err(|error| Error::failed(format!("Table {}: {error}", cell.table)))?;
    let reduction = RateReduction::from_name(&cell.loss_recovery).ok_or_else(|| {
        Error::failed(format!("Table {}: unknown rate reduction {}", cell.table, cell.loss_recovery))
    })?;
    let value = reduction.recovery(&episode, cell.variant.is_opportunistic()).utilization();
    Ok(CellResult { kind: "numerical", ..cell_result(cell, value) })
}

fn measured(outcome: &Outcome) -> CellResult {
    let estimate = outcome.values.estimate();
    CellResult {
        ci95: Some(estimate.half_width).filter(|width| width.is_finite()),
        stalled_share: Some(outcome.stalled_share),
        timeouts: Some(outcome.timeouts),
        ..cell_result(&outcome.cell, estimate.mean)
    }
}

fn cell_result(cell: &Cell, value: f64) -> CellResult {
    let percent = |_| value / cell.setup().mbps * 100.0;
    CellResult {
        table: cell.table,
        congestion_control: cell.congestion_control.clone(),
        loss_recovery: cell.loss_recovery.clone(),
        variant: cell.variant.name(),
        kind: "experimental",
        axis: cell.axis.clone(),
        axis_value: cell.axis_value,
        value,
        utilization_percent: cell.published_percent.map(percent),
        published: cell.published,
        published_percent: cell.published_percent,
        ci95: None,
        stalled_share: None,
        timeouts: None,
    }
}

/// What the flow of the first tables reaches without loss.
fn no_loss_mbps() -> Result<f64> {
    let setup = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(0.0) };
    let result = paceline_sim::run(&setup.scenario(&SenderSetup::default(), 1))
        .map_err(|error| Error::failed(format!("cannot simulate: {error}")))?;
    Ok(result.flows.first().map_or(0.0, |flow| flow.goodput_mbps))
}

fn print(reproduction: &Reproduction) {
    let cells = &reproduction.cells;
    for of_table in cells.chunk_by(|one, other| one.table == other.table) {
        println!("Table {}", of_table[0].table);
        println!("{}", table(of_table));
    }
    let mut table = new_table(1, &["bound on", "measured", "wanted", ""]);
    for bound in &reproduction.bounds {
        table.add_row([
            bound.name.to_string(),
            format!("{:.4}", bound.measured),
            bound.bound.clone(),
            if bound.holds { "ok" } else { "MISSED" }.to_string(),
        ]);
    }
    println!("{table}");
}

fn table(cells: &[CellResult]) -> String {
    let axis = cells[0].axis.replace('_', " ");
    let header = [
        "congestion control",
        "recovery",
        "variant",
        "kind",
        &axis,
        "published",
        "ours",
        "95 %",
        "deviation",
    ];
    let mut table = new_table(4, &header);
    for cell in cells {
        let deviation = match (cell.utilization_percent, cell.published_percent) {
            (Some(ours), Some(published)) => format!("{:+.1} points", ours - published),
            _ => format!("{:+.3}", cell.value - cell.published),
        };
        table.add_row([
            cell.congestion_control.clone(),
            cell.loss_recovery.clone(),
            cell.variant.to_string(),
            cell.kind.to_string(),
            cell.axis_value.to_string(),
            format!("{:.3}", cell.published),
            format!("{:.3}", cell.value),
            cell.ci95.map_or("-".into(), |width| format!("± {width:.3}")),
            deviation,
        ]);
    }
    table.to_string()
}

fn progress_bar(cells: u64, hidden: bool) -> ProgressBar {
    if hidden {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(cells);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} cells  {eta_precise} left  {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(250));
    bar
}

/// Our choice: some seconds' worth on any machine.
const RUNS_AT_A_TIME: usize = 20;
const PACKET_BYTES: f64 = 1_500.0;
/// CUBIC's.
const BETA: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_computed_cell_comes_out() {
        let cells: Vec<Cell> = Cell::all().into_iter().filter(|cell| cell.numerical).collect();
        let results = run_cells(&cells, 1).unwrap();
        assert_eq!(results.len(), 72);
        for cell in &results {
            assert!((cell.value - cell.published).abs() <= 0.0065, "{cell:?}");
        }
        let bounds = bounds::judge(&results, None);
        assert!(bounds.len() == 1 && bounds[0].holds, "{bounds:?}");
    }

    #[test]
    fn percentages_are_of_the_link() {
        let cell = Cell::all().into_iter().find(|cell| cell.table == 6).unwrap();
        let result = cell_result(&cell, 10.0);
        assert_eq!(result.utilization_percent, cell.published_percent.map(|_| 50.0));
    }
}
