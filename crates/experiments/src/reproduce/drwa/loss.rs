//! Figs. 17 and 18: bursty loss, with and without a box that holds out-of-order packets back.

use std::path::Path;

use paceline_sim::reproduce::drwa::{Experiment, Middlebox, Network, Window};

use super::Part;
use super::case::{Case, GOODPUT, Measured, TIMEOUTS};
use crate::error::Result;
use crate::reproduce::report::Bound;

const LOSSES_PERCENT: [f64; 3] = [0.05, 0.5, 2.0];
const WANTED: [f64; 3] = [5.0, 40.0, 45.0];
const PUBLISHED: [f64; 3] = [6.75, 50.09, 54.30];
/// Mean length of a burst in packets. The paper gives no number. The bounds are judged with the first one.
const BURSTS: [u32; 3] = [2, 1, 5];

fn pair(network: Network, holds: bool, loss_percent: f64, burst_packets: u32) -> [Case; 2] {
    let middlebox = Some(Middlebox { loss_percent, burst_packets, holds });
    let of = |what: &str, window| {
        let held = if holds { "held back" } else { "not held back" };
        let name =
            format!("{}, loss {loss_percent} % in bursts of {burst_packets}, {held}, {what}", network.name());
        Case::new(name, Experiment { middlebox, ..Experiment::near(network, window) })
    };
    [of("untouched", Window::clamped(network.rmem_max())), of("DRWA", Window::drwa())]
}

fn boxed(loss_percent: f64, burst: u32) -> [Case; 2] {
    pair(Network::AttHspa, true, loss_percent, burst)
}

fn open(loss_percent: f64) -> [Case; 2] {
    pair(Network::VerizonEvdo, false, loss_percent, BURSTS[0])
}

pub(super) fn cases() -> Vec<Case> {
    let boxed = BURSTS.into_iter().flat_map(|burst| LOSSES_PERCENT.map(|loss| boxed(loss, burst)));
    boxed.chain(LOSSES_PERCENT.map(open)).flatten().collect()
}

pub(super) fn report(measured: &Measured<'_>, _folder: &Path) -> Result<Part> {
    let gain = |[untouched, drwa]: [Case; 2]| measured.gain(&drwa, &untouched, GOODPUT);
    let mut bounds = Vec::new();
    for ((loss, wanted), published) in LOSSES_PERCENT.into_iter().zip(WANTED).zip(PUBLISHED) {
        let others: Vec<String> = BURSTS[1..]
            .iter()
            .map(|burst| format!("{:.1} in bursts of {burst}", gain(boxed(loss, *burst))))
            .collect();
        let name =
            format!("Fig. 18: gain of throughput at {loss} % in bursts of {} behind the box, %", BURSTS[0]);
        let margin = published - wanted;
        bounds.push(
            Bound::near(name, published, margin, gain(boxed(loss, BURSTS[0]))).with_note(others.join(", ")),
        );
    }
    let [with_box, _] = boxed(0.5, BURSTS[0]);
    let [without, _] = open(0.5);
    bounds.push(Bound::at_least(
        "Fig. 17: timeouts of the untouched phone at 0.5 % behind the box",
        10.0,
        measured.mean(&with_box, TIMEOUTS),
    ));
    bounds.push(Bound::at_most(
        "Fig. 17: timeouts of the untouched phone at 0.5 % without the box",
        0.0,
        measured.mean(&without, TIMEOUTS),
    ));
    Ok((measured.section("fig-17-18", &cases()), bounds))
}
