//! Whole flows by formula and by simulation, over a grid of paths.

use paceline_tcp::{DetectionName, ReductionName};
use paceline_theory::or::flow::{FlowPath, FlowPolicy, Growth, LostRepair, utilization};
use paceline_theory::or::{DomainError, RateReduction};

use super::cells::{Setup, SetupLoss, Variant};
use super::experiment::SenderSetup;
use crate::run::{RunObserver, run_watched};
use crate::scenario::ScenarioError;

/// A point of the grid, with CUBIC and RACK-TLP. RACK-TLP detects lost retransmissions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridPoint {
    /// Rate of the bottleneck.
    pub mbps: f64,
    /// Round trip without queues.
    pub rtt_ms: u64,
    /// Random loss.
    pub loss_percent: f64,
    /// Rate reduction during recovery.
    pub reduction: ReductionName,
    /// If true, the sender has opportunistic retransmission and a send buffer of three windows.
    pub opportunistic: bool,
}

/// Bytes that the link charges for a segment.
const FRAMED_BYTES: f64 = 1_515.0;

impl GridPoint {
    /// The grid: 64 paths and senders.
    pub fn all() -> Vec<GridPoint> {
        let senders = [
            (ReductionName::Prr, false),
            (ReductionName::Qarr, false),
            (ReductionName::Barr, false),
            (ReductionName::Qarr, true),
        ];
        let paths = [(20.0, 50), (20.0, 100), (20.0, 200), (100.0, 100)];
        let of = |(reduction, opportunistic), (mbps, rtt_ms)| {
            let point =
                move |loss_percent| GridPoint { mbps, rtt_ms, loss_percent, reduction, opportunistic };
            [0.01, 0.05, 0.1, 0.5].map(point)
        };
        senders
            .into_iter()
            .flat_map(|sender| paths.into_iter().flat_map(move |path| of(sender, path)))
            .collect()
    }

    fn setup(&self) -> Setup {
        Setup { mbps: self.mbps, rtt_ms: self.rtt_ms, loss: SetupLoss::Random(self.loss_percent) }
    }

    /// The share of the link by formula.
    ///
    /// # Errors
    /// Fails if the model does not cover the point.
    pub fn predicted(&self) -> Result<f64, DomainError> {
        let path = FlowPath {
            c_packets_per_s: self.mbps * 1e6 / 8.0 / FRAMED_BYTES,
            u_s: self.rtt_ms as f64 / 1e3,
            aw_packets: f64::from(self.setup().window_segments()),
            loss: self.loss_percent / 100.0,
        };
        let reduction = match self.reduction.base() {
            ReductionName::Rfc6675 => RateReduction::Standard,
            ReductionName::Rh => RateReduction::RateHalving,
            ReductionName::Qarr => RateReduction::Qarr,
            ReductionName::Barr => RateReduction::Barr,
            _ => RateReduction::Prr,
        };
        let policy = FlowPolicy {
            reduction,
            opportunistic: self.opportunistic,
            growth: Growth::Cubic,
            lost_repair: LostRepair::Detected,
        };
        utilization(&path, &policy)
    }

    /// The share of the link in one run.
    ///
    /// # Errors
    /// Fails if the point cannot be simulated, or if `watch` ends the run.
    pub fn simulated(&self, seed: u64, watch: &mut dyn RunObserver) -> Result<f64, ScenarioError> {
        let variant = if self.opportunistic { Variant::Optimized } else { Variant::Original };
        let detection = DetectionName::RackTlp;
        let sender = SenderSetup { reduction: self.reduction, variant, detection, ..SenderSetup::default() };
        let result = run_watched(&self.setup().scenario(&sender, seed), Vec::new(), watch)?;
        Ok(result.flows[0].goodput_mbps / self.setup().payload_mbps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One run for each point. The formula predicts what the paper leaves open within five points of the link.
    #[test]
    fn the_formula_predicts_the_simulator() {
        let point = |rtt_ms, loss_percent, reduction, opportunistic| GridPoint {
            mbps: 20.0,
            rtt_ms,
            loss_percent,
            reduction,
            opportunistic,
        };
        let points = [
            point(100, 0.1, ReductionName::Qarr, false),
            point(200, 0.1, ReductionName::Qarr, false),
            point(100, 0.1, ReductionName::Barr, false),
            point(100, 0.1, ReductionName::Qarr, true),
            point(100, 0.1, ReductionName::Prr, false),
        ];
        for point in points {
            let error = point.simulated(1, &mut ()).unwrap() - point.predicted().unwrap();
            assert!(error.abs() < 0.05, "{point:?}: {error}");
        }
    }
}
