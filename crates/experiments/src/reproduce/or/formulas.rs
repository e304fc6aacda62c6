//! Compares the formulas for whole flows with the simulator.

use paceline_sim::reproduce::or::grid::GridPoint;
use paceline_theory::or::flow::{LARGEST_ERROR, MEAN_ERROR};

use super::{Job, Records, cost, values};
use crate::reproduce::report::{Bound, Section, number};

pub(super) fn jobs(runs: u64) -> Vec<Job<'static>> {
    let of_point = |point: GridPoint| {
        (1..=seeds(runs)).map(move |seed| Job {
            name: name(&point),
            seed,
            cost: cost(point.mbps, 200.0),
            work: Box::new(move |watch| Ok(values(&[("utilization", point.simulated(seed, watch)?)]))),
        })
    };
    GridPoint::all().into_iter().flat_map(of_point).collect()
}

/// Our choice: at most three runs, because there are many paths.
fn seeds(runs: u64) -> u64 {
    runs.min(3)
}

fn name(point: &GridPoint) -> String {
    let GridPoint { mbps, rtt_ms, loss_percent, reduction, opportunistic } = point;
    let variant = if *opportunistic { "opportunistic" } else { "as found" };
    format!("formula {reduction} {variant} {mbps} Mbit/s {rtt_ms} ms loss {loss_percent} %")
}

pub(super) fn report(records: &Records, runs: u64) -> (Section, Vec<Bound>) {
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    for point in GridPoint::all() {
        let Ok(predicted) = point.predicted() else { continue };
        let simulated = records.mean(&name(&point), seeds(runs), "utilization");
        errors.push((simulated - predicted).abs());
        rows.push(vec![
            point.reduction.to_string().into(),
            if point.opportunistic { "yes" } else { "no" }.into(),
            number(point.mbps, 0),
            point.rtt_ms.into(),
            number(point.loss_percent, 3),
            number(predicted, 3),
            number(simulated, 3),
            number(simulated - predicted, 3),
        ]);
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let largest = errors.iter().copied().fold(f64::NAN, f64::max);
    let name = |what: &str| {
        format!("formulas for whole flows against the simulator: {what} error, share of the link")
    };
    let stated = format!("as `predict` states it, over {} paths and senders", errors.len());
    let bounds = vec![
        Bound::at_most(name("mean"), MEAN_ERROR, mean).with_note(&stated),
        Bound::at_most(name("largest"), LARGEST_ERROR, largest).with_note(&stated),
    ];
    let section = Section { rows, ..Section::of("or", "formulas") }
        .told("runs", seeds(runs))
        .told("mean", format!("{mean:.3}"))
        .told("largest", format!("{largest:.3}"));
    (section, bounds)
}
