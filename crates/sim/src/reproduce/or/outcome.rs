//! Cells run anew.

use paceline_tcp::DetectionName;
use rayon::prelude::*;

use super::cells::{Cell, SetupLoss};
use super::experiment::SenderSetup;
use super::recovery_meter::{RecoveryMeter, RecoveryUse};
use crate::run::{Watch, run_watched};
use crate::scenario::ScenarioError;
use paceline_judge::Sample;

/// A cell and what it is here.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// As published.
    pub cell: Cell,
    /// One value for each run, in the unit of the cell.
    pub values: Sample,
    /// Of all recoveries of all runs, the share in which the sender had room and nothing to send, because the application
    /// had not been woken.
    pub stalled_share: f64,
    /// Retransmission timeouts, of all runs.
    pub timeouts: u64,
}

/// What one run of a cell yields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellRun {
    /// In the unit of the cell.
    pub value: f64,
    /// Recoveries of the sender.
    pub recoveries: u64,
    /// Of those, in how many the application had not been woken in time.
    pub stalled: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// Runs the experimental cells among `cells`, each with seeds 1 to `runs`, on all cores.
///
/// # Errors
/// What cannot be simulated.
pub fn measure(cells: &[Cell], runs: u64, detection: DetectionName) -> Result<Vec<Outcome>, ScenarioError> {
    let cells: Vec<&Cell> = cells.iter().filter(|cell| !cell.numerical).collect();
    let jobs: Vec<(&Cell, u64)> =
        cells.iter().flat_map(|cell| (1..=runs).map(|seed| (*cell, seed))).collect();
    let done: Result<Vec<CellRun>, ScenarioError> =
        jobs.par_iter().map(|(cell, seed)| cell.run(*seed, detection, &mut ())).collect();
    let done = done?;
    let per_cell = done.chunks(runs.max(1) as usize);
    Ok(cells.into_iter().zip(per_cell).map(|(cell, runs)| outcome(cell, runs)).collect())
}

fn outcome(cell: &Cell, runs: &[CellRun]) -> Outcome {
    let recoveries: u64 = runs.iter().map(|run| run.recoveries).sum();
    let stalled: u64 = runs.iter().map(|run| run.stalled).sum();
    Outcome {
        cell: cell.clone(),
        values: runs.iter().map(|run| run.value).collect(),
        stalled_share: stalled as f64 / recoveries.max(1) as f64,
        timeouts: runs.iter().map(|run| run.timeouts).sum(),
    }
}

impl Cell {
    /// One run of an experimental cell.
    ///
    /// # Errors
    /// What cannot be simulated; that `watch` gave it up.
    pub fn run(
        &self,
        seed: u64,
        detection: DetectionName,
        watch: &mut dyn Watch,
    ) -> Result<CellRun, ScenarioError> {
        let setup = self.setup();
        let sender = SenderSetup::of(self, detection)
            .ok_or_else(|| ScenarioError::NoSuchSender(format!("{self:?}")))?;
        let meter = RecoveryMeter::new(setup.rate());
        let bursts = matches!(setup.loss, SetupLoss::Burst(_));
        let taps = match bursts {
            true => vec![("radio_down", meter.data_side()), ("radio_up", meter.ack_side())],
            false => Vec::new(),
        };
        let result = run_watched(&setup.scenario(&sender, seed), taps, watch)?;
        let flow = &result.flows[0];
        let used: Sample = meter.recoveries().iter().map(RecoveryUse::utilization).collect();
        Ok(CellRun {
            value: if bursts { used.mean() } else { flow.goodput_mbps },
            recoveries: flow.recoveries,
            stalled: flow.stalled_recoveries,
            timeouts: flow.timeouts,
        })
    }
}
