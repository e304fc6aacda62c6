//! Not in the paper's figures: ticks of the peer's timestamps, and clocks that drift apart.

use std::path::Path;

use paceline_sim::reproduce::rre::experiments::{GOOD_UP_MBPS, RTT_MS};
use paceline_sim::reproduce::rre::{Setup, Transfer};
use paceline_tcp::{CongestionName, TimestampClock};
use paceline_wire::Duration;

use super::{Job, Records, Shown, values};
use crate::error::Result;
use crate::reproduce::report::{Bound, Section, number};

const TICKS_US: [u64; 4] = [1, 1_000, 4_000, 10_000];
const DRIFTS_PPM: [i32; 3] = [-100, 0, 100];
const DOWN_MBPS: [f64; 2] = [2.0, 8.0];
/// Our choice: a drift of 100 ppm adds up to 30 ms in this time.
const DURATION_S: f64 = 300.0;

fn cases() -> impl Iterator<Item = (f64, u64, i32)> {
    let clocks =
        |down| TICKS_US.into_iter().flat_map(move |tick| DRIFTS_PPM.map(|drift| (down, tick, drift)));
    DOWN_MBPS.into_iter().flat_map(clocks)
}

pub(super) fn jobs(_runs: u64) -> Vec<Job<'static>> {
    let job = |(down, tick_us, drift_ppm): (f64, u64, i32)| Job {
        name: name(down, tick_us, drift_ppm),
        seed: 1,
        cost: 5.0 * down,
        work: Box::new(move |watch| {
            let clock = TimestampClock { tick: Duration::from_micros(tick_us), drift_ppb: drift_ppm * 1_000 };
            let setup = Setup { clock, ..Setup::new(down, GOOD_UP_MBPS, RTT_MS) };
            let run = setup.run(&[Transfer::download(CongestionName::Rre, None)], DURATION_S, 1, watch)?;
            let used = run.downlink.utilization(down);
            Ok(values([("used", used), ("wait_s", run.downlink.mean_wait_s())]))
        }),
    };
    cases().map(job).collect()
}

fn name(down: f64, tick_us: u64, drift_ppm: i32) -> String {
    format!("RRE clocks down {down} tick {tick_us} us drift {drift_ppm} ppm")
}

pub(super) fn show(records: &Records, _runs: u64, _folder: &Path) -> Result<Shown> {
    let of =
        |(down, tick, drift): (f64, u64, i32), value: &str| records.only(&name(down, tick, drift), value);
    let least = cases().map(|case| of(case, "used")).fold(f64::NAN, f64::min) * 100.0;
    // T is also the mean wait of a packet while the queue swings around T.
    let t_s = |down: f64| (RTT_MS / 1e3).max(30.0 * 1_448.0 * 8.0 / (down * 1e6));
    let queue = cases().map(|case| of(case, "wait_s") / t_s(case.0)).fold(f64::NAN, f64::max);
    let row = |case: (f64, u64, i32)| {
        vec![
            number(case.0, 0),
            number(case.1 as f64 / 1e3, 3),
            case.2.into(),
            number(of(case, "used") * 100.0, 1),
            number(of(case, "wait_s") * 1e3, 0),
        ]
    };
    let section = Section { rows: cases().map(row).collect(), ..Section::of("rre", "rre-clocks") };
    let bounds = vec![
        Bound::at_least("clocks: share of the link that RRE uses, least, %", 97.0, least)
            .with_note("our choice of a bound"),
        Bound::at_most("clocks: mean queue over T, largest", 2.0, queue).with_note("our choice of a bound"),
    ];
    Ok(Shown { bounds, sections: vec![section], ..Shown::default() })
}
