//! The number of recoveries in which the application stalls, and the assumption of Theorem 10 that decides it. The
//! theorem lets a recovery send beta x cwnd of new data. But repairs are part of this amount. The longer the lost
//! burst, the less new data the recovery takes from the buffer, and the rarer are stalls.

use paceline_tcp::{CongestionName, DetectionName, ReductionName};
use paceline_theory::or::theorem_10;

use super::{SenderSetup, Setup, SetupLoss, Variant};
use crate::run::run;

/// The share of stalled recoveries in five runs over 20 Mbit/s and 100 ms, with a send buffer of two windows.
fn stalled_share(reduction: ReductionName, burst: u32) -> f64 {
    let setup = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Burst(burst) };
    let sender = SenderSetup {
        congestion: CongestionName::Cubic,
        reduction,
        detection: DetectionName::Fack,
        variant: Variant::Opportunistic,
    };
    let flows = (1..=5).map(|seed| run(&setup.scenario(&sender, seed)).unwrap().flows.remove(0));
    let (all, stalled) =
        flows.fold((0, 0), |(all, stalled), flow| (all + flow.recoveries, stalled + flow.stalled_recoveries));
    stalled as f64 / all as f64
}

#[test]
fn theorem_10_is_about_recoveries_that_repair_next_to_nothing() {
    for (reduction, beta) in [(ReductionName::PrrSsrb, 0.7), (ReductionName::Qarr, 1.0)] {
        let [one, hundred] = [1, 100].map(|burst| stalled_share(reduction, burst));
        let theorem = theorem_10(2.0, beta);
        assert!((one - theorem).abs() < 0.15, "{reduction}: {one} of {theorem}");
        assert!(hundred < theorem / 2.0, "{reduction}: {hundred}");
    }
}
