//! Figs. 7 and 8: a download of 1 MB over a slow uplink that carries only ACKs.

use std::path::Path;

use paceline_sim::reproduce::rre::Transfer;
use paceline_sim::reproduce::rre::experiments::{
    Pair, RUN_MAX_S, SHORT_BYTES, slow_uplink_down_mbps, slow_uplink_up_kbps,
};
use paceline_tcp::CongestionName;

use super::{Cell, Job, Records, Shown, cell, distribution, percent_of, quantile, sorted, values};
use crate::error::Result;
use crate::plot::{self, Across, Line, Panel};
use crate::reproduce::report::{Bound, Section, number};

const BOTH: [CongestionName; 2] = [CongestionName::Cubic, CongestionName::Rre];

/// A job for each scheme and downlink rate, which covers all uplinks.
pub(super) fn jobs(_runs: u64) -> Vec<Job<'static>> {
    let job = |scheme: CongestionName, down_mbps: f64| Job {
        name: name(scheme, down_mbps),
        seed: 1,
        cost: 1.0,
        work: Box::new(move |watch| {
            let mut found = Vec::new();
            for up_kbps in slow_uplink_up_kbps() {
                let transfers = [Transfer::download(scheme, Some(SHORT_BYTES))];
                let run = Pair { down_mbps, up_kbps }.setup().run(&transfers, RUN_MAX_S, 1, watch)?;
                found.push((utilization(up_kbps), run.downlink.utilization(down_mbps)));
                found.push((goodput(up_kbps), run.goodput_mbps(0)));
            }
            Ok(values(found))
        }),
    };
    BOTH.into_iter().flat_map(|scheme| slow_uplink_down_mbps().map(move |down| job(scheme, down))).collect()
}

fn name(scheme: CongestionName, down_mbps: f64) -> String {
    format!("Fig. 7 {scheme} down {down_mbps}")
}

fn utilization(up_kbps: f64) -> String {
    format!("utilization {up_kbps}")
}

fn goodput(up_kbps: f64) -> String {
    format!("goodput {up_kbps}")
}

/// Our choice of a threshold: the slowest uplink from which CUBIC reaches 95 % of its utilization over the fastest one.
const OF_PLATEAU: f64 = 0.95;

/// A downlink rate and its threshold.
struct Row {
    down_mbps: f64,
    threshold_kbps: f64,
    plateau: f64,
    /// For each uplink below the threshold: its rate, then utilization and goodput, each of CUBIC and of RRE.
    below: Vec<(f64, [f64; 2], [f64; 2])>,
}

fn rows(records: &Records) -> Vec<Row> {
    let of = |scheme, down, value: String| records.only(&name(scheme, down), &value);
    let row = |down_mbps: f64| {
        let cubic = |up| of(CongestionName::Cubic, down_mbps, utilization(up));
        let ups: Vec<f64> = slow_uplink_up_kbps().collect();
        let plateau = ups.last().map_or(f64::NAN, |up| cubic(*up));
        let slow = ups.iter().rev().find(|up| cubic(**up) < OF_PLATEAU * plateau);
        let threshold_kbps = slow.map_or(0.0, |slow| slow + 5.0);
        let both =
            |up: f64, value: &dyn Fn(f64) -> String| BOTH.map(|scheme| of(scheme, down_mbps, value(up)));
        let below = ups.iter().filter(|up| **up < threshold_kbps);
        let below = below.map(|up| (*up, both(*up, &utilization), both(*up, &goodput))).collect();
        Row { down_mbps, threshold_kbps, plateau, below }
    };
    slow_uplink_down_mbps().map(row).collect()
}

pub(super) fn show(records: &Records, _runs: u64, folder: &Path) -> Result<Shown> {
    let rows = rows(records);
    let pairs: Vec<_> = rows.iter().flat_map(|row| &row.below).collect();
    let [cubic, rre] = [0, 1].map(|n| sorted(pairs.iter().map(|pair| pair.1[n]).collect()));
    let gains = sorted(pairs.iter().map(|pair| pair.2[1] / pair.2[0]).collect());
    let falls = rows.windows(2).filter(|pair| pair[1].threshold_kbps < pair[0].threshold_kbps).count();
    let bounds = vec![
        Bound::at_most(
            "Fig. 7: downlink rates whose threshold is below that of a slower downlink",
            0.0,
            falls as f64,
        )
        .with_note("the threshold rises with the downlink's rate"),
        Bound::at_least(
            "Fig. 8: pairs in which RRE uses 75 % of the downlink from the first data byte, %",
            90.0,
            percent_of(&rre, |used| used >= 0.75),
        ),
    ];
    plots(records, &rows, &pairs.iter().map(|pair| pair.1).collect::<Vec<_>>(), folder)?;
    Ok(Shown {
        cells: cells(&rows, &cubic, &rre, &gains),
        bounds,
        sections: vec![section(&rows, pairs.len())],
    })
}

fn cells(rows: &[Row], cubic: &[f64], rre: &[f64], gains: &[f64]) -> Vec<Cell> {
    let last = rows.last().map_or(f64::NAN, |row| row.threshold_kbps);
    vec![
        cell(7, "threshold at 8 Mbit/s", "one for each downlink rate", last, "kbit/s"),
        cell(
            8,
            "RRE: exceeded in 90 % of the pairs",
            "close to 80 %",
            quantile(rre, 0.1) * 100.0,
            "% of the link",
        ),
        cell(
            8,
            "CUBIC: exceeded in 90 % of the pairs",
            "lower",
            quantile(cubic, 0.1) * 100.0,
            "% of the link",
        ),
        cell(8, "goodput, RRE over CUBIC: median of the pairs", "higher", quantile(gains, 0.5), ""),
        cell(
            8,
            "goodput, RRE over CUBIC: largest",
            "greatest far below the threshold",
            quantile(gains, 1.0),
            "",
        ),
    ]
}

fn section(rows: &[Row], pairs: usize) -> Section {
    let least = |row: &Row, n: usize| row.below.iter().map(|pair| pair.1[n]).fold(f64::NAN, f64::min) * 100.0;
    let shown = rows.iter().filter(|row| row.down_mbps.fract() == 0.0);
    let row = |row: &Row| {
        vec![
            number(row.down_mbps, 2),
            number(row.threshold_kbps, 0),
            number(row.plateau * 100.0, 1),
            number(least(row, 0), 1),
            number(least(row, 1), 1),
        ]
    };
    Section { rows: shown.map(row).collect(), ..Section::of("rre", "rre-fig-7-8") }.told("pairs", pairs)
}

fn plots(records: &Records, rows: &[Row], pairs: &[[f64; 2]], folder: &Path) -> Result<()> {
    let line = |(colour, down): (usize, f64)| Line {
        label: format!("{down} Mbit/s"),
        colour,
        points: slow_uplink_up_kbps()
            .filter_map(|up| {
                let used = records.values(&name(CongestionName::Cubic, down), 1, &utilization(up));
                Some((up, used.first()? * 100.0))
            })
            .collect(),
    };
    let lines = [1.0, 2.0, 4.0, 6.0, 8.0].into_iter().enumerate().map(line).collect();
    let mut panels = vec![Panel { title: "CUBIC's share of the downlink (%)".into(), lines }];
    let across = Across::Logarithm("uplink (kbit/s)");
    plot::write_across(&folder.join("rre-fig-7.svg"), "Fig. 7: a slow uplink", across, &panels)?;
    let thresholds = rows.iter().map(|row| (row.down_mbps, row.threshold_kbps)).collect();
    panels = vec![Panel {
        title: "pairs at or below (%)".into(),
        lines: BOTH
            .iter()
            .enumerate()
            .map(|(n, scheme)| {
                distribution(scheme.to_string(), n, pairs.iter().map(|pair| pair[n] * 100.0).collect())
            })
            .collect(),
    }];
    let across = Across::Logarithm("share of the downlink (%)");
    plot::write_across(&folder.join("rre-fig-8.svg"), "Fig. 8: pairs below the threshold", across, &panels)?;
    let threshold = Line { label: "threshold".into(), colour: 0, points: thresholds };
    panels = vec![Panel { title: "uplink (kbit/s)".into(), lines: vec![threshold] }];
    let across = Across::Logarithm("downlink (Mbit/s)");
    plot::write_across(&folder.join("rre-fig-7-thresholds.svg"), "Fig. 7: thresholds", across, &panels)
}
