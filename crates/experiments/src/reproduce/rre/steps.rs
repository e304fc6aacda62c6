//! Fig. 13: steps of rate and delay.

use std::path::Path;

use paceline_sim::reproduce::rre::experiments::{STEPS_S, steps};
use paceline_sim::reproduce::rre::{BIN, Bin, PAYLOAD_SHARE, Setup, Transfer};
use paceline_tcp::CongestionName;

use super::{Job, Records, Shown, cell, values};
use crate::error::{Error, Result};
use crate::plot::{self, Line, Panel};
use crate::reproduce::report::{Bound, Section, number};

const BOTH: [CongestionName; 2] = [CongestionName::Rre, CongestionName::Cubic];
/// The time that the paper calls quick.
const SETTLED_S: f64 = 2.0;
pub(super) fn jobs(_runs: u64) -> Vec<Job<'static>> {
    let job = |scheme: CongestionName| Job {
        name: name(scheme),
        seed: 1,
        cost: 2.0,
        work: Box::new(move |watch| {
            let end_s = STEPS_S.last().copied().unwrap_or_default();
            let run = steps().run(&[Transfer::download(scheme, None)], end_s, 1, watch)?;
            let bins = run.downlink.bins();
            let settled = STEPS_S.windows(2).flat_map(|step| {
                let (at_s, until_s) = (step[0], step[1]);
                [
                    (format!("settled {at_s}"), settled_s(&steps(), bins, at_s, until_s)),
                    (format!("peak {at_s}"), peak(&steps(), bins, at_s, until_s)),
                ]
            });
            let used = [("wait_s".to_string(), run.downlink.mean_wait_s())];
            Ok(values(settled.chain(used)))
        }),
    };
    BOTH.into_iter().map(job).collect()
}

fn name(scheme: CongestionName) -> String {
    format!("Fig. 13 {scheme}")
}

/// Returns the value that holds at a time.
fn at(steps: &[(f64, f64)], time_s: f64) -> f64 {
    steps.iter().rev().find(|(from, _)| *from <= time_s).map_or(f64::NAN, |(_, value)| *value)
}

/// Returns the time from a step at `from_s` until the receive rate stays within 10 % of the link's and the queue below
/// 2 T. Values up to `to_s` count. Both are means over a round trip, the shortest time that shows anything. A mean over
/// a second would hide shorter changes.
fn settled_s(setup: &Setup, bins: &[Bin], from_s: f64, to_s: f64) -> f64 {
    let (mbps, t_s) = (at(&setup.down_mbps, from_s), t_s(setup, from_s));
    let good = |bins: &[Bin]| {
        let count = bins.len() as f64;
        let rate = bins.iter().map(Bin::mbps).sum::<f64>() / count / (mbps * PAYLOAD_SHARE);
        let wait_s = bins.iter().map(Bin::mean_wait_s).sum::<f64>() / count;
        (0.9..=1.1).contains(&rate) && wait_s < 2.0 * t_s
    };
    let bins_of_rtt = ((at(&setup.rtt_ms, from_s) / 1e3 / BIN.as_secs_f64()).ceil() as usize).max(1);
    let bad = between(bins, from_s, to_s).windows(bins_of_rtt).rposition(|window| !good(window));
    // Settling shows only at the end of the first round trip from which all are good.
    (bad.map_or(0, |bad| bad + 1) + bins_of_rtt) as f64 * BIN.as_secs_f64()
}

/// The longest wait later than two seconds after a step, divided by T.
fn peak(setup: &Setup, bins: &[Bin], from_s: f64, to_s: f64) -> f64 {
    let waits = between(bins, from_s + SETTLED_S, to_s).iter().map(|bin| bin.wait.as_secs_f64());
    waits.fold(0.0, f64::max) / t_s(setup, from_s)
}

/// T of the link at this time (Section II-E).
fn t_s(setup: &Setup, time_s: f64) -> f64 {
    let thirty_packets_s = 30.0 * 1_448.0 * 8.0 / (at(&setup.down_mbps, time_s) * 1e6);
    (at(&setup.rtt_ms, time_s) / 1e3).max(thirty_packets_s)
}

fn between(bins: &[Bin], from_s: f64, to_s: f64) -> &[Bin] {
    let number = |time_s: f64| ((time_s / BIN.as_secs_f64()).round() as usize).min(bins.len());
    &bins[number(from_s)..number(to_s)]
}

pub(super) fn show(records: &Records, _runs: u64, folder: &Path) -> Result<Shown> {
    let of = |scheme, value: &str| records.only(&name(scheme), value);
    let settled = |scheme, step: f64| of(scheme, &format!("settled {step}"));
    let changes = &STEPS_S[..STEPS_S.len() - 1];
    let slowest = changes.iter().map(|step| settled(CongestionName::Rre, *step)).fold(f64::NAN, f64::max);
    let queue = of(CongestionName::Rre, "wait_s") / of(CongestionName::Cubic, "wait_s");
    let bounds = vec![
        Bound::at_most("Fig. 13: settled after the slowest of six steps, s", SETTLED_S, slowest)
            .with_note("receive rate within 10 % of the link's and queue below 2 T, over every round trip until the next step"),
        Bound::at_most("Fig. 13: mean queue of RRE over that of CUBIC", 0.1, queue),
    ];
    let cells = vec![
        cell(13, "settled after the slowest step", "about 2 s (the second step)", slowest, "s"),
        cell(13, "mean queue, RRE over CUBIC", "an order of magnitude less", queue, ""),
    ];
    plots(folder)?;
    let what = ["RTT 150 ms", "RTT 200 ms", "2 Mbit/s", "RTT 100 ms", "5 Mbit/s", "3 Mbit/s"];
    let row = |(step, what): (&f64, &str)| {
        vec![
            number(*step, 0),
            what.into(),
            number(settled(CongestionName::Rre, *step), 1),
            number(of(CongestionName::Rre, &format!("peak {step}")), 2),
        ]
    };
    let section =
        Section { rows: changes.iter().zip(what).map(row).collect(), ..Section::of("rre", "rre-fig-13") };
    Ok(Shown { cells, bounds, sections: vec![section] })
}

fn plots(folder: &Path) -> Result<()> {
    let mut panels: Vec<Panel> = ["receive rate (Mbit/s)", "queue of RRE (s)", "queue of CUBIC (s)"]
        .map(|title| Panel { title: title.into(), lines: Vec::new() })
        .into();
    for (colour, scheme) in BOTH.into_iter().enumerate() {
        let end_s = STEPS_S.last().copied().unwrap_or_default();
        let run = steps().run(&[Transfer::download(scheme, None)], end_s, 1, &mut ());
        let run = run.map_err(|error| Error::failed(error.to_string()))?;
        let bins = || run.downlink.bins().iter().enumerate();
        let at = |n: usize| (n + 1) as f64 * BIN.as_secs_f64();
        let line = |points| Line { label: scheme.to_string(), colour, points };
        panels[0].lines.push(line(bins().map(|(n, bin)| (at(n), bin.mbps())).collect()));
        panels[colour + 1].lines.push(line(bins().map(|(n, bin)| (at(n), bin.mean_wait_s())).collect()));
    }
    plot::write(&folder.join("rre-fig-13.svg"), "Fig. 13: steps of rate and delay", &panels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_is_what_the_steps_say() {
        let setup = steps();
        assert_eq!([3.9, 15.0, 29.0].map(|time| at(&setup.down_mbps, time)), [3.0, 2.0, 5.0]);
        let bin = |share: f64| {
            let mut bin = Bin::default();
            bin.bytes = (share * 3e6 * PAYLOAD_SHARE / 8.0 * BIN.as_secs_f64()) as u64;
            bin
        };
        // Half of the rate for half a second. A mean over a second would not show this from 0.1 s on.
        let bins: Vec<Bin> = (0..80).map(|n| bin(if n < 45 { 0.5 } else { 1.0 })).collect();
        let settled = settled_s(&setup, &bins, 4.0, 8.0);
        assert!((settled - 0.7).abs() < 1e-9, "{settled}");
    }
}
