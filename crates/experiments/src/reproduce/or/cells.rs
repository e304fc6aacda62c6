//! The published cells and our values.

use paceline_judge::{Sample, distinct};
use paceline_sim::reproduce::or::{Cell, SenderSetup, Setup, SetupLoss};
use paceline_sim::run_watched;
use paceline_tcp::DetectionName;
use paceline_theory::or::{Episode, RateReduction};
use serde::Serialize;

use super::notes;
use super::{Job, Records, cost, values};
use crate::error::{Error, Result};
use crate::output::say;
use crate::table::new_table;

/// A published cell with the columns of its file, and our value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct CellResult {
    pub(super) table: u8,
    pub(super) congestion_control: String,
    pub(super) loss_recovery: String,
    pub(super) variant: &'static str,
    /// `numerical` or `experimental`.
    pub(super) kind: &'static str,
    pub(super) axis: String,
    pub(super) axis_value: f64,
    /// Our mean over runs, in the unit of the published value.
    pub(super) value: f64,
    /// Our utilization, if the published cell has one.
    pub(super) utilization_percent: Option<f64>,
    pub(super) published: f64,
    pub(super) published_percent: Option<f64>,
    /// Half of the 95 % interval; null for one run, and for computed cells.
    pub(super) ci95: Option<f64>,
    /// Our value with RACK-TLP in place of FACK, if asked for.
    pub(super) rack_tlp: Option<f64>,
    /// Share of recoveries in which the application was woken too late; null for computed cells.
    pub(super) stalled_share: Option<f64>,
    /// Retransmission timeouts, summed over all runs.
    pub(super) timeouts: Option<u64>,
    /// Why the cell is not judged, or why it differs.
    pub(super) note: Option<&'static str>,
}

/// All runs of the measured cells among `cells`.
pub(super) fn jobs(cells: &[Cell], runs: u64, detection: DetectionName) -> Vec<Job<'_>> {
    let measured = cells.iter().filter(|cell| !cell.numerical);
    measured.flat_map(|cell| (1..=runs).map(move |seed| job(cell, seed, detection))).collect()
}

fn job(cell: &Cell, seed: u64, detection: DetectionName) -> Job<'_> {
    Job {
        name: name(cell, detection),
        seed,
        cost: cost(cell.setup().mbps, 200.0),
        work: Box::new(move |watch| {
            let run = cell.run(seed, detection, watch)?;
            Ok(values(&[
                ("value", run.value),
                ("recoveries", run.recoveries as f64),
                ("stalled", run.stalled as f64),
                ("timeouts", run.timeouts as f64),
            ]))
        }),
    }
}

fn name(cell: &Cell, detection: DetectionName) -> String {
    format!(
        "Table {} {} {} {} {} {} {detection}",
        cell.table,
        cell.congestion_control,
        cell.loss_recovery,
        cell.variant.name(),
        cell.axis,
        cell.axis_value
    )
}

/// Measures the goodput of the first tables' flow without loss.
pub(super) fn no_loss_job() -> Option<Job<'static>> {
    let setup = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(0.0) };
    Some(Job {
        name: NO_LOSS.into(),
        seed: 1,
        cost: cost(setup.mbps, 200.0),
        work: Box::new(move |watch| {
            let result = run_watched(&setup.scenario(&SenderSetup::default(), 1), Vec::new(), watch)?;
            Ok(values(&[("goodput_mbps", result.flows[0].goodput_mbps)]))
        }),
    })
}

pub(super) fn no_loss_mbps(records: &Records) -> Option<f64> {
    records.values(NO_LOSS, 1, "goodput_mbps").first().copied()
}

/// Returns every cell with our value.
pub(super) fn results(
    cells: &[Cell],
    records: &Records,
    runs: u64,
    detection: DetectionName,
    beside: Option<DetectionName>,
) -> Result<Vec<CellResult>> {
    let result = |cell: &Cell| {
        if cell.numerical {
            return computed(cell);
        }
        let name_of = |detection| name(cell, detection);
        let ours = name_of(detection);
        let mean = |name: &str| records.values(name, runs, "value").into_iter().collect::<Sample>();
        let estimate = mean(&ours).estimate();
        let recoveries = records.sum(&ours, runs, "recoveries").max(1.0);
        let result = CellResult {
            ci95: Some(estimate.half_width).filter(|width| width.is_finite()),
            rack_tlp: beside.map(|beside| mean(&name_of(beside)).mean()),
            stalled_share: Some(records.sum(&ours, runs, "stalled") / recoveries),
            timeouts: Some(records.sum(&ours, runs, "timeouts") as u64),
            ..unmeasured(cell, estimate.mean)
        };
        Ok(CellResult { note: notes::note(&result), ..result })
    };
    cells.iter().map(result).collect()
}

/// Computes a cell by the theorems, in packets of 1,500 bytes.
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
    Ok(CellResult { kind: "numerical", ..unmeasured(cell, value) })
}

fn unmeasured(cell: &Cell, value: f64) -> CellResult {
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
        rack_tlp: None,
        stalled_share: None,
        timeouts: None,
        note: None,
    }
}

impl CellResult {
    /// Our utilization minus the published one, in points.
    pub(super) fn points(&self) -> f64 {
        match (self.utilization_percent, self.published_percent) {
            (Some(ours), Some(published)) => ours - published,
            _ => (self.value - self.published) * 100.0,
        }
    }

    /// The cell's row and column.
    pub(super) fn place(&self) -> String {
        let row = [self.congestion_control.as_str(), self.loss_recovery.as_str(), self.variant];
        let row: Vec<&str> = row.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{} {}", row.join(" "), self.axis_value)
    }
}

pub(super) fn print(cells: &[CellResult]) {
    for of_table in cells.chunk_by(|one, other| one.table == other.table) {
        say!("Table {}", of_table[0].table);
        say!("{}", table(of_table));
        for note in distinct(of_table.iter().filter_map(|cell| cell.note)) {
            let of_note = of_table.iter().filter(|cell| cell.note == Some(note));
            say!("{}: {note}", of_note.map(CellResult::place).collect::<Vec<_>>().join("; "));
        }
        say!();
    }
}

fn table(cells: &[CellResult]) -> String {
    let axis = cells[0].axis.replace('_', " ");
    let rack = cells.iter().any(|cell| cell.rack_tlp.is_some());
    let mut header = vec![
        "congestion control", "recovery", "variant", "kind", &axis, "published", "ours", "95 %", "deviation",
        "RTO",
    ];
    if rack {
        header.push("RACK-TLP");
    }
    let mut table = new_table(4, &header);
    for cell in cells {
        let deviation = match cell.published_percent {
            Some(_) => format!("{:+.1} points", cell.points()),
            None => format!("{:+.3}", cell.value - cell.published),
        };
        let mut row = vec![
            cell.congestion_control.clone(),
            cell.loss_recovery.clone(),
            cell.variant.to_string(),
            cell.kind.to_string(),
            cell.axis_value.to_string(),
            format!("{:.3}", cell.published),
            format!("{:.3}", cell.value),
            cell.ci95.map_or("-".into(), |width| format!("± {width:.3}")),
            deviation,
            cell.timeouts.map_or("-".into(), |timeouts| timeouts.to_string()),
        ];
        if rack {
            row.push(cell.rack_tlp.map_or("-".into(), |value| format!("{value:.3}")));
        }
        table.add_row(row);
    }
    table.to_string()
}

const NO_LOSS: &str = "without loss";
const PACKET_BYTES: f64 = 1_500.0;
/// CUBIC's reduction factor.
const BETA: f64 = 0.7;

/// A cell of CUBIC with QARR at 0.1 % loss; values are in percent.
#[cfg(test)]
pub(super) fn sample(
    table: u8,
    variant: &'static str,
    kind: &'static str,
    published: f64,
    value: f64,
) -> CellResult {
    CellResult {
        table,
        congestion_control: "CUBIC".into(),
        loss_recovery: "QARR".into(),
        variant,
        kind,
        axis: "loss_percent".into(),
        axis_value: 0.1,
        value,
        utilization_percent: Some(value),
        published,
        published_percent: Some(published),
        ci95: None,
        rack_tlp: None,
        stalled_share: None,
        timeouts: None,
        note: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::bounds;
    use super::*;

    #[test]
    fn every_computed_cell_comes_out() {
        let cells: Vec<Cell> = Cell::all().into_iter().filter(|cell| cell.numerical).collect();
        let results = results(&cells, &Records::default(), 1, DetectionName::Fack, None).unwrap();
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
        let result = unmeasured(&cell, 10.0);
        assert_eq!(result.utilization_percent, cell.published_percent.map(|_| 50.0));
        assert!((result.points() - (50.0 - cell.published_percent.unwrap())).abs() < 1e-9);
    }

    #[test]
    fn every_run_has_a_name_of_its_own() {
        let cells = Cell::all();
        let jobs = jobs(&cells, 2, DetectionName::Fack);
        let mut names: Vec<String> = jobs.iter().map(|job| format!("{} {}", job.name, job.seed)).collect();
        names.sort();
        names.dedup();
        assert_eq!((jobs.len(), names.len()), (832, 832));
    }
}
