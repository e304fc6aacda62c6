//! The points of the figures, and their measurements.

use paceline_judge::Sample;
use paceline_sim::reproduce::ncl::{NclExperiment, NclRun, Scheme};
use paceline_sim::wireless::{AdHocPath, Dumbbell, LastHop, VaryingDelay, WirelessHops, WirelessPath};
use paceline_tcp::{NclConfig, TauCd};
use paceline_wire::Duration;
use serde::{Deserialize, Serialize};

use super::{Job, Records, Values};
use crate::output::say;
use crate::table::{Column, table_of};

/// A figure, or an addition of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Figure {
    Fig3,
    Fig4,
    Fig5,
    Fig7,
    Fig9a,
    Fig9b,
    Fig9c,
    Fig9d,
    /// Fig. 9a for other windows, rates and round-trip times.
    Grid,
    /// Fig. 9c for other lengths of the rest of the path.
    Rest,
    Model,
}

impl Figure {
    pub(super) fn number(self) -> u8 {
        match self {
            Figure::Fig3 => 3,
            Figure::Fig4 => 4,
            Figure::Fig5 => 5,
            Figure::Fig7 => 7,
            Figure::Fig9a | Figure::Fig9b | Figure::Fig9c | Figure::Fig9d => 9,
            Figure::Grid | Figure::Rest | Figure::Model => 0,
        }
    }
}

/// A point of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) figure: Figure,
    pub(super) experiment: NclExperiment,
    /// Place on the figure's axis: errors in percent, the longest delay in ms, flows, or metres per second.
    pub(super) x: f64,
    runs: u64,
}

/// A point and its results, as means over runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct CellResult {
    pub(super) figure: Figure,
    pub(super) scheme: &'static str,
    pub(super) mrrl: Option<u32>,
    pub(super) beta_percent: Option<u32>,
    /// The fixed tau_CD, if it is neither the shortest RTT nor chosen by the sender.
    pub(super) tau_cd_ms: Option<f64>,
    pub(super) mbps: f64,
    /// RTT without queues. If a link's delay varies, that of the rest of the path.
    pub(super) rtt_ms: Option<f64>,
    /// The largest congestion window in packets; null without a bound.
    pub(super) window_max: Option<u32>,
    pub(super) x: f64,
    /// The sum over all flows.
    pub(super) goodput_mbps: f64,
    /// Half of the 95 % interval; null for one run.
    pub(super) ci95: Option<f64>,
    /// Goodput as a share of 1 - p of the link's payload rate, which is what errors leave.
    pub(super) share: f64,
    /// Goodput of each of several flows divided by their mean: the least and the largest mean over runs.
    pub(super) normalised: Option<[f64; 2]>,
    pub(super) jain: Option<f64>,
    /// Per 1,000 s and flow; `answers` counts responses to congestion.
    pub(super) timeouts: f64,
    pub(super) answers: f64,
    pub(super) resent_percent: f64,
    pub(super) needless_percent: f64,
    pub(super) reordered_percent: f64,
    pub(super) srtt_ms: f64,
    pub(super) cwnd: f64,
    pub(super) runs: usize,
}

const ERRORS_PERCENT: [f64; 6] = [0.0, 3.0, 6.0, 9.0, 12.0, 15.0];
const DELAYS_MS: [f64; 7] = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0];
/// The longest delays of Fig. 9c with a shorter rest of the path.
const REST_DELAYS_MS: [f64; 4] = [100.0, 300.0, 500.0, 700.0];
const SPEEDS: [f64; 4] = [5.0, 20.0, 35.0, 50.0];
const MRRLS: [u32; 4] = [250, 500, 800, 1_000];
const BETAS_PERCENT: [u32; 5] = [30, 50, 80, 95, 100];
/// Our choice: the path of Figs. 3 and 9a. A packet's time is less than beta times the shortest RTT for every beta.
/// Otherwise RTTs that grow by a packet's time would never be learnt.
pub(super) const LAST_HOP: LastHop = LastHop {
    mbps: 1.0,
    rtt: Duration::from_millis(50),
    error: 0.0,
    // Our choice: only errors on data make a sender believe in congestion. With errors on ACKs, too, TCP-PR and Reno
    // fall to nearly nothing at 15 %.
    error_both_ways: false,
    queue_packets: 50,
};
const GRID_MBPS: [f64; 4] = [0.5, 1.0, 2.0, 10.0];
const GRID_RTT_MS: [u64; 4] = [20, 50, 100, 200];
/// Our choice of a window that losses of one packet in six do not reduce (Section "Fig. 9a over windows ..."), and
/// ns-2's window.
const GRID_WINDOWS: [u32; 2] = [6, WINDOW];
/// ns-2's default `window_`, in packets. The paper mentions no other value. Also, beta = 1 can have the effect of Fig.
/// 3 only if RTTs do not grow with the window.
const WINDOW: u32 = 20;
/// No bound: for the dumbbell, and for comparing times, where one flow must fill the link.
pub(super) const NO_BOUND: u32 = u32::MAX;
/// `minrto_` of ns-2 2.29, and Linux's minimum.
pub(super) const RTO_MIN: Duration = Duration::from_millis(200);
/// Our choice: the rest of the path of Figs. 5 and 9c. It is long enough that 0.8 of the shortest RTT covers most
/// jumps.
const REST: Duration = Duration::from_millis(500);
/// Shorter rests of the path.
const SHORTER_RESTS_MS: [u64; 3] = [10, 100, 200];
/// The first and the last error rate of the figure.
const GRID_ERRORS_PERCENT: [f64; 2] = [0.0, 15.0];
/// The paper has four times as many runs for the ad-hoc network.
const AD_HOC_RUNS: u64 = 4;

pub(super) fn of_figures(runs: u64, seconds: u64) -> Vec<Cell> {
    let of = |figure, scheme, ncl, path, x| {
        let runs = if figure == Figure::Fig9d { runs * AD_HOC_RUNS } else { runs };
        let window_max = if figure == Figure::Fig7 { NO_BOUND } else { WINDOW };
        let experiment = NclExperiment { scheme, ncl, rto_min: RTO_MIN, window_max, path, seconds };
        Cell { figure, experiment, x, runs }
    };
    let mut cells = Vec::new();
    let sensitivity = [Figure::Fig3, Figure::Fig4, Figure::Fig5];
    for figure in sensitivity {
        for mrrl in MRRLS {
            for beta_percent in BETAS_PERCENT {
                let ncl = NclConfig { mrrl, beta_percent, ..NclConfig::default() };
                cells.extend(points(figure).map(|(path, x)| of(figure, Scheme::Ncl, ncl, path, x)));
            }
        }
    }
    let default = NclConfig::default();
    for scheme in [Scheme::Ncl, Scheme::NclSecondRd] {
        cells.extend(points(Figure::Fig7).map(|(path, x)| of(Figure::Fig7, scheme, default, path, x)));
    }
    for figure in [Figure::Fig9a, Figure::Fig9b, Figure::Fig9c, Figure::Fig9d] {
        for scheme in Scheme::ALL {
            cells.extend(points(figure).map(|(path, x)| of(figure, scheme, default, path, x)));
        }
    }
    cells
}

/// The paths along the axis of a figure.
fn points(figure: Figure) -> impl Iterator<Item = (WirelessPath, f64)> {
    let all: Vec<(WirelessPath, f64)> = match figure {
        Figure::Fig3 | Figure::Fig9a | Figure::Grid | Figure::Model => {
            let path = |p: f64| WirelessPath::LastHop(LastHop { error: p / 100.0, ..LAST_HOP });
            ERRORS_PERCENT.map(|p| (path(p), p)).to_vec()
        }
        Figure::Fig4 | Figure::Fig9b => {
            let path =
                |p: f64| WirelessPath::Hops(WirelessHops { error: p / 100.0, ..WirelessHops::default() });
            ERRORS_PERCENT.map(|p| (path(p), p)).to_vec()
        }
        Figure::Fig5 | Figure::Fig9c | Figure::Rest => DELAYS_MS.map(|ms| (varying(ms, REST), ms)).to_vec(),
        Figure::Fig7 => {
            let path = |flows: u32| WirelessPath::Dumbbell(Dumbbell { flows, ..Dumbbell::default() });
            (1..=10).map(|flows| (path(flows), f64::from(flows))).collect()
        }
        Figure::Fig9d => {
            let path = |speed| WirelessPath::AdHoc(AdHocPath::with_speed(speed));
            SPEEDS.map(|speed| (path(speed), speed)).to_vec()
        }
    };
    all.into_iter()
}

fn varying(delay_max_ms: f64, rest: Duration) -> WirelessPath {
    let delay_max = Duration::from_millis(delay_max_ms as u64);
    WirelessPath::VaryingDelay(VaryingDelay { delay_max, rest, ..VaryingDelay::default() })
}

/// Points for Fig. 9a with other windows, rates and round-trip times, and for Fig. 9c with other rests of the path.
pub(super) fn of_grid(runs: u64, seconds: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    let schemes = [Scheme::Ncl, Scheme::NclSecondRd, Scheme::NclAdaptive].into_iter().chain(Scheme::COMPARED);
    for scheme in schemes {
        for (window_max, mbps, rtt_ms) in grid_points() {
            let point = |x: f64| {
                let rtt = Duration::from_millis(rtt_ms);
                let path = WirelessPath::LastHop(LastHop { mbps, rtt, error: x / 100.0, ..LAST_HOP });
                Cell { figure: Figure::Grid, experiment: plain(scheme, window_max, path, seconds), x, runs }
            };
            cells.extend(GRID_ERRORS_PERCENT.map(point));
        }
        for rest_ms in SHORTER_RESTS_MS {
            let point = |x: f64| {
                let path = varying(x, Duration::from_millis(rest_ms));
                Cell { figure: Figure::Rest, experiment: plain(scheme, WINDOW, path, seconds), x, runs }
            };
            cells.extend(REST_DELAYS_MS.map(point));
        }
    }
    cells
}

fn plain(scheme: Scheme, window_max: u32, path: WirelessPath, seconds: u64) -> NclExperiment {
    NclExperiment { scheme, ncl: NclConfig::default(), rto_min: RTO_MIN, window_max, path, seconds }
}

fn grid_points() -> impl Iterator<Item = (u32, f64, u64)> {
    let of_rate = |window: u32, mbps: f64| GRID_RTT_MS.into_iter().map(move |rtt| (window, mbps, rtt));
    GRID_WINDOWS
        .into_iter()
        .flat_map(move |window| GRID_MBPS.into_iter().flat_map(move |mbps| of_rate(window, mbps)))
}

/// Points for the comparison with the model: fixed times, and the times that the paper's senders and ours use. The
/// paths are that of Fig. 9a, and one where all losses are congestive.
pub(super) fn of_model(runs: u64, seconds: u64) -> Vec<Cell> {
    let fixed = FIXED_RTTS.map(|rtts| (Scheme::Ncl, Some(rtts)));
    let senders =
        fixed.into_iter().chain([Scheme::Ncl, Scheme::NclSecondRd, Scheme::NclAdaptive].map(|s| (s, None)));
    let mut cells = Vec::new();
    for (scheme, rtts) in senders {
        let of = |path: WirelessPath, base_ms: f64, x: f64| {
            let fixed = |rtts: f64| TauCd::Fixed(Duration::from_micros((rtts * base_ms * 1e3) as u64));
            let ncl = NclConfig { tau_cd: rtts.map_or(TauCd::Shortest, fixed), ..NclConfig::default() };
            let experiment = NclExperiment { ncl, ..plain(scheme, NO_BOUND, path, seconds) };
            Cell { figure: Figure::Model, experiment, x, runs }
        };
        // A packet of 1,500 bytes takes 12 ms at 1 Mbit/s, and 1.2 ms at 10 Mbit/s. An ACK takes a twentieth of that.
        let last_hop = |x: f64| WirelessPath::LastHop(LastHop { error: x / 100.0, ..LAST_HOP });
        cells.extend(MODEL_ERRORS_PERCENT.map(|x| of(last_hop(x), 62.5, x)));
        let flows = Dumbbell { flows: MODEL_FLOWS, ..Dumbbell::default() };
        cells.push(of(WirelessPath::Dumbbell(flows), 101.3, f64::from(MODEL_FLOWS)));
    }
    cells
}

/// In multiples of the path's shortest RTT.
const FIXED_RTTS: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0];
pub(super) const MODEL_ERRORS_PERCENT: [f64; 3] = [0.0, 3.0, 9.0];
pub(super) const MODEL_FLOWS: u32 = 5;

/// All runs, each once.
pub(super) fn jobs(cells: &[Cell]) -> Vec<Job<'_>> {
    let mut seen = std::collections::HashSet::new();
    let fresh = cells.iter().filter(|cell| seen.insert((cell.name(), cell.runs)));
    fresh.flat_map(|cell| (1..=cell.runs).map(move |seed| cell.job(seed))).collect()
}

impl Cell {
    fn job(&self, seed: u64) -> Job<'_> {
        let path = &self.experiment.path;
        let events = match path {
            WirelessPath::AdHoc(_) => AD_HOC_COST,
            WirelessPath::Hops(hops) => hops.mbps * f64::from(hops.hops),
            other => other.mbps(),
        };
        Job {
            name: self.name(),
            seed,
            cost: events * self.experiment.seconds as f64 / 200.0,
            work: Box::new(move |watch| self.experiment.run(seed, watch).map(|run| values(&run))),
        }
    }

    /// Identifies the cell by everything that determines it except the seed.
    fn name(&self) -> String {
        let NclExperiment { scheme, ncl, rto_min: _, window_max, path, seconds } = &self.experiment;
        let rtt = self.rtt_ms().map_or(String::new(), |ms| format!(" {ms} ms"));
        let window = self.window_max().map_or(String::new(), |_| format!(", window {window_max}"));
        let settings = match scheme.is_ncl() {
            true => format!(" mrrl {} beta {} {:?}", ncl.mrrl, ncl.beta_percent, ncl.tau_cd),
            false => String::new(),
        };
        format!(
            "{} {} Mbit/s{rtt}{window} at {}: {}{settings}, {seconds} s",
            path.name(),
            path.mbps(),
            self.x,
            scheme.name()
        )
    }

    fn rtt_ms(&self) -> Option<f64> {
        match &self.experiment.path {
            WirelessPath::LastHop(path) => Some(path.rtt.as_secs_f64() * 1e3),
            WirelessPath::VaryingDelay(path) => Some(path.rest.as_secs_f64() * 1e3),
            _ => None,
        }
    }

    fn window_max(&self) -> Option<u32> {
        Some(self.experiment.window_max).filter(|max| *max != NO_BOUND)
    }

    pub(super) fn result(&self, records: &Records) -> CellResult {
        let NclExperiment { scheme, ncl, path, seconds, .. } = &self.experiment;
        let name = self.name();
        let sample = |value: &str| records.values(&name, self.runs, value).into_iter().collect::<Sample>();
        let mean = |value: &str| sample(value).mean();
        let goodput = sample("goodput_mbps").estimate();
        let error = match path {
            WirelessPath::LastHop(path) => path.error,
            _ => 0.0,
        };
        let flows = if let WirelessPath::Dumbbell(path) = path { path.flows } else { 1 };
        let per_kilosecond = 1_000.0 / (*seconds as f64 / 2.0) / f64::from(flows);
        let normalised: Vec<f64> = (0..flows).map(|flow| mean(&normalised_name(flow))).collect();
        let of_ncl = |value: u32| scheme.is_ncl().then_some(value);
        CellResult {
            figure: self.figure,
            scheme: scheme.name(),
            mrrl: of_ncl(ncl.mrrl),
            beta_percent: of_ncl(ncl.beta_percent),
            tau_cd_ms: match ncl.tau_cd {
                TauCd::Fixed(tau) => Some(tau.as_secs_f64() * 1e3),
                _ => None,
            },
            mbps: path.mbps(),
            rtt_ms: self.rtt_ms(),
            window_max: self.window_max(),
            x: self.x,
            goodput_mbps: goodput.mean,
            ci95: Some(goodput.half_width).filter(|width| width.is_finite()),
            share: goodput.mean / (NclExperiment::payload_mbps(path.mbps()) * (1.0 - error)),
            normalised: (flows > 1).then(|| {
                [
                    normalised.iter().copied().fold(f64::NAN, f64::min),
                    normalised.iter().copied().fold(f64::NAN, f64::max),
                ]
            }),
            jain: (flows > 1).then(|| mean("jain")),
            timeouts: mean("timeouts") * per_kilosecond,
            answers: mean("answers") * per_kilosecond,
            resent_percent: mean("resent_share") * 100.0,
            needless_percent: mean("needless_share") * 100.0,
            reordered_percent: mean("reordered_share") * 100.0,
            srtt_ms: mean("srtt_ms"),
            cwnd: mean("cwnd"),
            runs: sample("goodput_mbps").len(),
        }
    }
}

pub(super) fn values(run: &NclRun) -> Values {
    let total: f64 = run.goodput_mbps.iter().sum();
    let mean = total / run.goodput_mbps.len().max(1) as f64;
    let squares: f64 = run.goodput_mbps.iter().map(|mbps| mbps * mbps).sum();
    let mut values: Values = [
        ("goodput_mbps", total),
        ("jain", total * total / (squares * run.goodput_mbps.len() as f64)),
        ("timeouts", run.timeouts as f64),
        ("answers", run.answers as f64),
        ("resent_share", run.retransmitted_share),
        ("needless_share", run.needless_share),
        ("reordered_share", run.reordered_share),
        ("srtt_ms", run.srtt_ms),
        ("cwnd", run.cwnd),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_string(), value))
    .collect();
    if run.goodput_mbps.len() > 1 {
        let each = run.goodput_mbps.iter().zip(0..);
        values.extend(each.map(|(mbps, flow)| (normalised_name(flow), mbps / mean)));
    }
    values
}

fn normalised_name(flow: u32) -> String {
    format!("normalised {flow}")
}

/// Prints the cells of the paper's figures. The other cells have their own tables.
pub(super) fn print(cells: &[CellResult]) {
    let shown = |cell: &&CellResult| {
        !matches!(
            cell.figure,
            Figure::Fig3 | Figure::Fig4 | Figure::Fig5 | Figure::Grid | Figure::Rest | Figure::Model
        )
    };
    if !cells.iter().any(|cell| shown(&cell)) {
        return;
    }
    let table = table_of(1, &COLUMNS, cells.iter().filter(shown));
    say!("RTO and answers are per 1,000 s and flow.\n{table}");
}

const COLUMNS: [Column<CellResult>; 12] = [
    ("figure", |cell| format!("{:?}", cell.figure)),
    ("sender", |cell| cell.scheme.to_string()),
    ("at", |cell| format!("{}", cell.x)),
    ("Mbit/s", |cell| format!("{:.3}", cell.goodput_mbps)),
    ("± 95 %", |cell| cell.ci95.map_or("-".into(), |width| format!("{width:.3}"))),
    ("share", |cell| format!("{:.3}", cell.share)),
    ("RTO", |cell| format!("{:.1}", cell.timeouts)),
    ("answers", |cell| format!("{:.1}", cell.answers)),
    ("resent, %", |cell| format!("{:.2}", cell.resent_percent)),
    ("needless, %", |cell| format!("{:.1}", cell.needless_percent)),
    ("SRTT, ms", |cell| format!("{:.0}", cell.srtt_ms)),
    ("cwnd", |cell| format!("{:.1}", cell.cwnd)),
];

/// Our choice: the approximate cost of a run, relative to one over a link of 1 Mbit/s.
const AD_HOC_COST: f64 = 10.0;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_run_has_a_name_of_its_own() {
        let mut cells = of_figures(2, 400);
        cells.extend(of_grid(2, 400));
        let jobs = jobs(&cells);
        let names: HashSet<String> = jobs.iter().map(|job| format!("{} {}", job.name, job.seed)).collect();
        assert_eq!(jobs.len(), names.len());
        // Points that several figures share are run once.
        assert!(jobs.len() < cells.iter().map(|cell| cell.runs as usize).sum());
    }

    #[test]
    fn flows_are_set_beside_their_mean() {
        let run = NclRun { goodput_mbps: vec![1.0, 3.0], ..NclRun::default() };
        let values = values(&run);
        assert_eq!((values["goodput_mbps"], values["normalised 1"], values["jain"]), (4.0, 1.5, 0.8));
    }
}
