//! Figs. 17 and 18: bursty loss, with and without a box that holds back what is out of order.

use std::path::Path;

use paceline_sim::reproduce::drwa::{Experiment, Middlebox, Network, Window};

use super::Part;
use super::case::{COLUMNS, Case, GOODPUT, Measured, TIMEOUTS};
use crate::error::Result;
use crate::reproduce::report::{Bound, Section};

const LOSSES_PERCENT: [f64; 3] = [0.05, 0.5, 2.0];
const WANTED: [f64; 3] = [5.0, 40.0, 45.0];
const PUBLISHED: [f64; 3] = [6.75, 50.09, 54.30];
/// Packets of a burst on average. The text has no number; the bounds are judged with the first.
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
    let section = Section {
        name: "fig-17-18",
        title: "Figs. 17, 18: bursty loss, and a box that holds back what is out of order".into(),
        text: TEXT.into(),
        columns: COLUMNS.to_vec(),
        rows: cases().iter().map(|case| measured.row(case)).collect(),
        files: Vec::new(),
    };
    Ok((section, bounds))
}

const TEXT: &str = "\
Losses between the server and the network (Gilbert-Elliott); HSPA+ has the box behind them, EVDO has none. The box does what the text
says of it: a loss ends in a timeout, and there is no timeout without it. The published gains do not come out. What DRWA saves is
part of the queue that stands when a loss comes. At 0.5 % a loss comes after 200 packets on average. No window reaches the queue
again in between, with DRWA or without. A receive window that is larger than the congestion window changes nothing. Neither
bursts of 1 to 5, nor a sender without F-RTO, without SACK, without both, or with a minimum timeout of 1 s changes that. The largest
gain over those 45 points was 7.1 % (5 packets, 0.5 %, neither F-RTO nor SACK). It was 6.2 % at 0.05 % in single losses. Bursts of 10
to 200 packets come seldom enough for the queue to stand again. Of them a window of 262,144 bytes swallows more in one go than a
smaller one. The smaller one meets the rest with one retransmission after the other. So DRWA loses a third there, exactly as a fixed
window of its size does. DRWA saves needless retransmissions, though: 42 % of them at 0.05 %.";
