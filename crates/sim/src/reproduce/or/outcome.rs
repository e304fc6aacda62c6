//! Runs of cells.

use paceline_tcp::DetectionName;

use super::cells::{Cell, SetupLoss};
use super::experiment::SenderSetup;
use super::recovery_meter::{RecoveryMeter, RecoveryUse};
use crate::run::{RunObserver, run_watched};
use crate::scenario::ScenarioError;
use paceline_judge::Sample;

/// Results of one run of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellRun {
    /// The value in the unit of the cell.
    pub value: f64,
    /// Recoveries of the sender.
    pub recoveries: u64,
    /// Recoveries in which the application had not been woken in time.
    pub stalled: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Cell {
    /// Runs an experimental cell once.
    ///
    /// # Errors
    /// Fails if the cell cannot be simulated, or if `watch` ends the run.
    pub fn run(
        &self,
        seed: u64,
        detection: DetectionName,
        watch: &mut dyn RunObserver,
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
