//! Fig. 9: a signal that fades and returns. Also a path whose round-trip time grows to four times.

use std::path::Path;

use paceline_sim::reproduce::drwa::{Experiment, Network, Signal, Trace, Window};
use paceline_wire::Duration;

use super::Part;
use super::case::{Case, Measured, RTT_P95};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::plot::{self, Line, Panel};
use crate::reproduce::pool::not_simulated;
use crate::reproduce::report::Bound;

const NETWORK: Network = Network::AttHspa;
const STEP_S: f64 = 40.0;
const LONGER: u64 = 4;

fn case(what: &str, signal: Signal, drwa: bool) -> Case {
    let window = if drwa { Window::drwa() } else { Window::clamped(NETWORK.rmem_max()) };
    let phone = if drwa { "DRWA" } else { "untouched" };
    let near = Experiment::near(NETWORK, window);
    let experiment = Experiment { signal, duration: Duration::from_secs(80), ..near };
    Case::new(format!("{}, {what}, {phone}", NETWORK.name()), experiment)
}

fn fading(drwa: bool) -> Case {
    case("fading signal", Signal::Fading, drwa)
}

fn longer(drwa: bool) -> Case {
    case("four times the round trip after 40 s", Signal::LongerAfter40s(LONGER), drwa)
}

pub(super) fn cases() -> Vec<Case> {
    vec![fading(false), fading(true), longer(false), longer(true)]
}

pub(super) fn report(measured: &Measured<'_>, folder: &Path) -> Result<Part> {
    let record = |case: Case| {
        if interrupt::requested() {
            return Err(Error::interrupted());
        }
        let recorded = case.experiment.record(1, &mut ());
        recorded.map(|(_, trace)| trace).map_err(|error| not_simulated("", &error))
    };
    let fades = [record(fading(false))?, record(fading(true))?];
    let steps = [record(longer(false))?, record(longer(true))?];
    draw(folder, "drwa-fig-9.svg", "Fig. 9: a signal that fades and returns, HSPA+", &fades)?;
    draw(folder, "drwa-longer-path.svg", "Four times the round trip after 40 s, HSPA+", &steps)?;
    let base_ms = NETWORK.near_rtt_ms() as f64;
    let limit_ms = 1.5 * 3.0 * base_ms;
    let [untouched, drwa] = [false, true].map(|drwa| measured.mean(&fading(drwa), RTT_P95));
    let after_ms = p95(steps[1].between(STEP_S, f64::INFINITY).map(|row| row.rtt_ms));
    let bounds = vec![
        Bound::at_most("Fig. 9: p95 of RTT with DRWA over 1.5 x lambda x RTTmin", 1.0, drwa / limit_ms),
        Bound::at_least("Fig. 9: p95 of RTT, untouched over DRWA", 3.0, untouched / drwa),
        Bound::at_most(
            "path four times as long: p95 of RTT with DRWA over 1.5 x lambda x the new RTTmin",
            1.0,
            after_ms / (limit_ms * LONGER as f64),
        ),
        Bound::at_most("path four times as long: until the full rate is back, s", 5.0, full_again(&steps[1]))
            .with_note("95 % of the rate of before, over a second"),
    ];
    Ok((measured.section("fig-9", &cases()), bounds))
}

/// Returns the time from the step to the first second with 95 % of the earlier rate; infinite if there is none.
fn full_again(trace: &Trace) -> f64 {
    let before = trace.mbps(STEP_S - 10.0, STEP_S);
    let found = trace
        .rows
        .iter()
        .map(|row| row.at_s)
        .filter(|at_s| *at_s > STEP_S)
        .find(|at_s| trace.mbps(*at_s, at_s + 1.05) >= 0.95 * before && *at_s > STEP_S + 1.0);
    found.map_or(f64::INFINITY, |at_s| at_s - STEP_S)
}

fn p95(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 95 / 100).copied().unwrap_or(f64::NAN)
}

fn draw(folder: &Path, file: &str, title: &str, traces: &[Trace; 2]) -> Result<()> {
    type Of = fn(&paceline_sim::reproduce::drwa::Row) -> f64;
    let line = |(n, label): (usize, &str), of: Of| Line {
        label: label.into(),
        colour: n,
        points: traces[n].rows.iter().map(|row| (row.at_s, of(row))).collect(),
    };
    let panel = |title: &str, of: Of| Panel {
        title: title.into(),
        lines: ["untouched", "DRWA"].into_iter().enumerate().map(|label| line(label, of)).collect(),
    };
    let panels =
        [panel("receive window (kB)", |row| row.window_bytes / 1e3), panel("RTT (ms)", |row| row.rtt_ms)];
    plot::write(&folder.join(file), title, &panels)
}
