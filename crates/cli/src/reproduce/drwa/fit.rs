//! The rates of the networks: for each the one of a grid whose gains are nearest to Table 3.

use paceline_sim::reproduce::drwa::{Experiment, Gain, Network, Signal, Window};

use super::Part;
use super::case::{Case, GOODPUT, Measured};
use super::table3::BYTES;
use crate::reproduce::report::{Bound, Section, number};

/// Networks that one rate fits, with the ends of their grids in steps of 0.05 Mbit/s: what the published gains imply.
const GRIDS: [(Network, u32, u32); 3] =
    [(Network::AttHspa, 88, 100), (Network::VerizonEvdo, 32, 40), (Network::SprintEvdo, 36, 48)];
const STEPS_PER_MBPS: f64 = 20.0;

fn rates(low: u32, high: u32) -> impl Iterator<Item = f64> {
    (low..=high).map(|step| f64::from(step) / STEPS_PER_MBPS)
}

fn pair(gain: &Gain, mbps: f64) -> [Case; 2] {
    let of = |what: &str, window| {
        let near = Experiment::near(gain.network, window);
        let signal = Signal::Rate(mbps);
        let experiment = Experiment { rtt_ms: gain.latency_ms, bytes: Some(BYTES), signal, ..near };
        let name = format!("fit, {}, {} ms, {mbps} Mbit/s, {what}", gain.network.name(), gain.latency_ms);
        Case::new(name, experiment)
    };
    [of("clamped", Window::clamped(gain.network.rmem_max())), of("DRWA", Window::drwa())]
}

fn gains(network: Network) -> Vec<Gain> {
    Gain::all().into_iter().filter(|gain| gain.network == network).collect()
}

pub(super) fn cases() -> Vec<Case> {
    let of = |(network, low, high): (Network, u32, u32)| {
        let gains = gains(network);
        rates(low, high)
            .flat_map(|mbps| gains.iter().flat_map(|gain| pair(gain, mbps)).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    GRIDS.into_iter().flat_map(of).collect()
}

/// Root of the mean square of the deviations at a rate.
fn deviation(measured: &Measured<'_>, network: Network, mbps: f64) -> f64 {
    let squares = gains(network).into_iter().map(|gain| {
        let [clamped, drwa] = pair(&gain, mbps);
        (measured.gain(&drwa, &clamped, GOODPUT) - gain.percent).powi(2)
    });
    (squares.sum::<f64>() / 5.0).sqrt()
}

pub(super) fn report(measured: &Measured<'_>) -> Part {
    let mut rows = Vec::new();
    let mut bounds = Vec::new();
    for (network, low, high) in GRIDS {
        let all: Vec<(f64, f64)> =
            rates(low, high).map(|mbps| (mbps, deviation(measured, network, mbps))).collect();
        let best = all.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(f64::NAN, |best| best.0);
        rows.extend(all.iter().map(|(mbps, deviation)| {
            let used = if *mbps == network.mbps() { "in use" } else { "" };
            vec![network.name().into(), number(*mbps, 2), number(*deviation, 2), used.into()]
        }));
        let name = format!("fit, {}: the best rate of the grid less the one in use, Mbit/s", network.name());
        bounds.push(Bound::between(name, 0.0, 0.0, best - network.mbps()));
    }
    let section = Section {
        name: "fit",
        title: "The rates, fitted".into(),
        text: TEXT.into(),
        columns: vec!["network", "rate, Mbit/s", "deviation from Table 3, points (root mean square)", ""],
        rows,
        files: Vec::new(),
    };
    (section, bounds)
}

const TEXT: &str = "\
Least squares of the five gains of a network, over rates in steps of 0.05 Mbit/s. No constant rate fits the row of LTE: its rate is
the one that the first gain beyond the window implies, 1.3867 x 484,848 bytes in 219 ms of payload, 25.4 Mbit/s with headers.";
