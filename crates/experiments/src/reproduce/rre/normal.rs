//! Figs. 10 and 11: a download of 10 MB alone, over a good uplink.

use std::path::Path;

use paceline_sim::reproduce::rre::experiments::{
    GOOD_UP_MBPS, LONG_BYTES, LOSS_PERCENT, RTT_MS, RUN_MAX_S, SCHEMES, down_mbps,
};
use paceline_sim::reproduce::rre::{BIN, DownlinkRun, Setup, Transfer};
use paceline_sim::{RunObserver, ScenarioError};
use paceline_tcp::CongestionName;

use super::{Job, Records, Shown, cell, quantile, sorted, values};
use crate::error::{Error, Result};
use crate::plot::{self, Across, Line, Panel};
use crate::reproduce::report::{Bound, Section, number};

pub(super) fn jobs(runs: u64) -> Vec<Job<'static>> {
    let schemes = SCHEMES.into_iter().map(|scheme| (scheme, false, 1));
    let lossy = (1..=runs).map(|seed| (CongestionName::Rre, true, seed));
    let cases = schemes.chain(lossy);
    cases
        .flat_map(|(scheme, lossy, seed)| {
            down_mbps().map(move |down| Job {
                name: name(scheme, down, lossy),
                seed,
                cost: 1.0,
                work: Box::new(move |watch| {
                    let run = run(scheme, down, lossy, seed, watch)?;
                    let wait_s = run.downlink.mean_wait_s();
                    Ok(values([("goodput", run.goodput_mbps(0)), ("wait_s", wait_s)]))
                }),
            })
        })
        .collect()
}

fn run(
    scheme: CongestionName,
    down: f64,
    lossy: bool,
    seed: u64,
    watch: &mut dyn RunObserver,
) -> std::result::Result<DownlinkRun, ScenarioError> {
    let loss_percent = if lossy { LOSS_PERCENT } else { 0.0 };
    let setup = Setup { loss_percent, ..Setup::new(down, GOOD_UP_MBPS, RTT_MS) };
    setup.run(&[Transfer::download(scheme, Some(LONG_BYTES))], RUN_MAX_S, seed, watch)
}

fn name(scheme: CongestionName, down: f64, lossy: bool) -> String {
    format!("Fig. 10 {scheme} down {down}{}", if lossy { " with loss" } else { "" })
}

pub(super) fn show(records: &Records, runs: u64, folder: &Path) -> Result<Shown> {
    let of = |scheme, down, value: &str| records.only(&name(scheme, down, false), value);
    let best = |down| SCHEMES.map(|scheme| of(scheme, down, "goodput")).into_iter().fold(f64::NAN, f64::max);
    let to_best =
        sorted(down_mbps().map(|down| of(CongestionName::Rre, down, "goodput") / best(down)).collect());
    let waits = sorted(
        down_mbps()
            .map(|down| of(CongestionName::Rre, down, "wait_s") / of(CongestionName::Cubic, down, "wait_s"))
            .collect(),
    );
    let lossy = down_mbps().flat_map(|down| {
        let with = records.values(&name(CongestionName::Rre, down, true), runs, "goodput");
        with.into_iter().map(move |with| with / of(CongestionName::Rre, down, "goodput"))
    });
    let lossy = sorted(lossy.collect());
    let bounds = vec![
        Bound::at_least(
            "Fig. 10: goodput of RRE over that of the best without upload, least",
            0.97,
            quantile(&to_best, 0.0),
        ),
        Bound::at_most("Fig. 10: mean queue of RRE over that of CUBIC, largest", 0.1, quantile(&waits, 1.0)),
    ];
    let cells = vec![
        cell(10, "goodput, RRE over the best: least", "comparable", quantile(&to_best, 0.0), ""),
        cell(
            10,
            "mean queue, RRE over CUBIC: largest",
            "an order of magnitude less",
            quantile(&waits, 1.0),
            "",
        ),
        cell(
            10,
            "goodput of RRE with 0.04 % loss over that without: median",
            "hardly any difference",
            quantile(&lossy, 0.5),
            "",
        ),
    ];
    plots(&of, folder)?;
    let row = |down: f64| {
        let mut row = vec![number(down, 1)];
        row.extend(SCHEMES.map(|scheme| number(of(scheme, down, "goodput"), 3)));
        row.extend(
            [CongestionName::Rre, CongestionName::Cubic].map(|scheme| number(of(scheme, down, "wait_s"), 2)),
        );
        row
    };
    let section = Section {
        rows: down_mbps().filter(|down| down.fract() == 0.0).map(row).collect(),
        ..Section::of("rre", "rre-fig-10-11")
    };
    Ok(Shown { cells, bounds, sections: vec![section] })
}

fn plots(of: &dyn Fn(CongestionName, f64, &str) -> f64, folder: &Path) -> Result<()> {
    let goodput = |(colour, scheme): (usize, CongestionName)| Line {
        label: scheme.to_string(),
        colour,
        points: down_mbps().map(|down| (down, of(scheme, down, "goodput"))).collect(),
    };
    let lines = SCHEMES.into_iter().enumerate().map(goodput).collect();
    let panel = Panel { title: "goodput (Mbit/s)".into(), lines };
    let across = Across::Logarithm("downlink (Mbit/s)");
    plot::write_across(&folder.join("rre-fig-10.svg"), "Fig. 10: without upload", across, &[panel])?;
    let mut panels: Vec<Panel> = ["receive rate (Mbit/s)", "queue (s)"]
        .map(|title| Panel { title: title.into(), lines: Vec::new() })
        .into();
    for (colour, scheme) in SCHEMES.into_iter().enumerate() {
        let run = run(scheme, 8.0, false, 1, &mut ()).map_err(|error| Error::failed(error.to_string()))?;
        let bins = || run.downlink.bins().iter().enumerate();
        let at = |n: usize| (n + 1) as f64 * BIN.as_secs_f64();
        let rate = bins().map(|(n, bin)| (at(n), bin.mbps())).collect();
        let wait = bins().map(|(n, bin)| (at(n), bin.mean_wait_s())).collect();
        for (panel, points) in panels.iter_mut().zip([rate, wait]) {
            panel.lines.push(Line { label: scheme.to_string(), colour, points });
        }
    }
    plot::write(&folder.join("rre-fig-11.svg"), "Fig. 11: 10 MB at 8 Mbit/s", &panels)
}
