//! Fig. 12: two downloads of 10 MB. The second begins later.

use std::path::Path;

use paceline_sim::reproduce::rre::experiments::{
    GOOD_UP_MBPS, LONG_BYTES, RTT_MS, RUN_MAX_S, delays_s, down_mbps,
};
use paceline_sim::reproduce::rre::{Setup, Transfer};
use paceline_tcp::CongestionName;

use super::{Job, Records, Shown, cell, distribution, quantile, sorted, values};
use crate::error::Result;
use crate::plot::{self, Across, Panel};
use crate::reproduce::report::{Bound, Section, number};

type Pair = [CongestionName; 2];

const PAIRS: [Pair; 6] = {
    use CongestionName::{Cubic, Reno, Rre, Vegas};
    [[Rre, Rre], [Vegas, Vegas], [Cubic, Cubic], [Reno, Reno], [Rre, Cubic], [Cubic, Rre]]
};

/// A job for each pair and downlink, which covers all delays.
pub(super) fn jobs(_runs: u64) -> Vec<Job<'static>> {
    let job = |[first, second]: Pair, down: f64| Job {
        name: name([first, second], down),
        seed: 1,
        cost: 20.0,
        work: Box::new(move |watch| {
            let mut found = Vec::new();
            for delay_s in delays_s() {
                let [one, two] = [first, second].map(|scheme| Transfer::download(scheme, Some(LONG_BYTES)));
                let setup = Setup::new(down, GOOD_UP_MBPS, RTT_MS);
                let run = setup.run(&[one, two.after(delay_s)], 2.0 * RUN_MAX_S, 1, watch)?;
                let (one, two) = (run.goodput_mbps(0), run.goodput_mbps(1));
                found
                    .push((format!("jain {delay_s}"), (one + two).powi(2) / (2.0 * (one * one + two * two))));
                found.push((format!("share {delay_s}"), run.downlink.share_of_first()));
                found.push((format!("wait {delay_s}"), run.downlink.mean_wait_s()));
            }
            Ok(values(found))
        }),
    };
    PAIRS.into_iter().flat_map(|pair| down_mbps().map(move |down| job(pair, down))).collect()
}

fn name([first, second]: Pair, down: f64) -> String {
    format!("Fig. 12 {first} before {second} down {down}")
}

fn all(records: &Records, pair: Pair, value: &str) -> Vec<f64> {
    let of = |down: f64| {
        delays_s().flat_map(move |delay| records.values(&name(pair, down), 1, &format!("{value} {delay}")))
    };
    sorted(down_mbps().flat_map(of).collect())
}

/// Our choice: a flow starves with less than this share while both are active. Half is fair.
const STARVES: f64 = 0.25;
/// Our choice for "reasonably fair": shares of 2 : 1 give 0.9.
const FAIR: f64 = 0.9;

pub(super) fn show(records: &Records, _runs: u64, folder: &Path) -> Result<Shown> {
    let [rre, _, _, _, rre_first, cubic_first] = PAIRS;
    let jain = |pair| all(records, pair, "jain");
    let share = |pair| quantile(&all(records, pair, "share"), 0.5);
    let bounds = vec![
        Bound::at_least("Fig. 12: Jain's index between RRE flows, least", 0.95, quantile(&jain(rre), 0.0)),
        Bound::at_most(
            "Fig. 12: RRE, then CUBIC: share of RRE while both are active, median",
            STARVES,
            share(rre_first),
        )
        .with_note("the text has RRE starved there"),
        Bound::at_least(
            "Fig. 12: Jain's index, CUBIC, then RRE: exceeded in 90 %",
            FAIR,
            quantile(&jain(cubic_first), 0.1),
        )
        .with_note("the text has a reasonably fair share"),
    ];
    let published = ["above 0.95", "above 0.95", "lower", "lower", "RRE starves", "fair"];
    let cells = PAIRS.iter().zip(published).map(|(pair, published)| {
        let [first, second] = pair;
        cell(
            12,
            format!("Jain's index, {first}, then {second}: exceeded in 90 %"),
            published,
            quantile(&jain(*pair), 0.1),
            "",
        )
    });
    let row = |pair: &Pair| {
        let (jain, waits) = (jain(*pair), all(records, *pair, "wait"));
        vec![
            format!("{}, then {}", pair[0], pair[1]).into(),
            number(quantile(&jain, 0.0), 3),
            number(quantile(&jain, 0.1), 3),
            number(quantile(&jain, 0.5), 3),
            number(share(*pair), 3),
            number(quantile(&waits, 0.5), 2),
        ]
    };
    let section = Section { rows: PAIRS.iter().map(row).collect(), ..Section::of("rre", "rre-fig-12") };
    let lines = PAIRS
        .iter()
        .enumerate()
        .map(|(n, pair)| distribution(format!("{}, {}", pair[0], pair[1]), n, jain(*pair)))
        .collect();
    let panel = Panel { title: "pairs at or below (%)".into(), lines };
    let across = Across::Logarithm("Jain's index of goodputs");
    plot::write_across(&folder.join("rre-fig-12.svg"), "Fig. 12: fairness", across, &[panel])?;
    Ok(Shown { cells: cells.collect(), bounds, sections: vec![section] })
}
