//! Fig. 9: a download beside an upload that fills the uplink's buffer, at 1,920 points.

use std::path::Path;

use paceline_sim::reproduce::rre::experiments::{
    LONG_DOWNLOAD_S, Point, RUN_MAX_S, SCHEMES, SHORT_BYTES, delays_s, down_mbps, up_mbps,
};
use paceline_tcp::CongestionName;

use super::{Cell, Job, Records, Shown, cell, distribution, percent_of, quantile, sorted, values};
use crate::error::Result;
use crate::plot::{self, Across, Panel};
use crate::reproduce::report::{Bound, Section, number};

/// A job for each scheme, uplink and downlink, which covers all delays. Also long downloads of RRE.
pub(super) fn jobs(_runs: u64) -> Vec<Job<'static>> {
    let mut jobs = Vec::new();
    for (up_mbps, down_mbps) in links() {
        for scheme in SCHEMES {
            jobs.push(short(scheme, up_mbps, down_mbps));
        }
        jobs.push(long(up_mbps, down_mbps));
    }
    jobs
}

fn links() -> impl Iterator<Item = (f64, f64)> {
    up_mbps().flat_map(|up| down_mbps().map(move |down| (up, down)))
}

fn short(scheme: CongestionName, up_mbps: f64, down_mbps: f64) -> Job<'static> {
    Job {
        name: name(scheme, up_mbps, down_mbps),
        seed: 1,
        cost: 1.0,
        work: Box::new(move |watch| {
            let mut found = Vec::new();
            for delay_s in delays_s() {
                let point = Point { down_mbps, up_mbps, delay_s };
                let run =
                    point.setup().run(&point.transfers(scheme, Some(SHORT_BYTES)), RUN_MAX_S, 1, watch)?;
                found.push((format!("goodput {delay_s}"), run.goodput_mbps(0)));
                found.push((format!("utilization {delay_s}"), run.downlink.utilization(down_mbps)));
            }
            Ok(values(found))
        }),
    }
}

fn long(up_mbps: f64, down_mbps: f64) -> Job<'static> {
    Job {
        name: long_name(up_mbps, down_mbps),
        seed: 1,
        cost: 2.0 * down_mbps,
        work: Box::new(move |watch| {
            let (mut overflow, mut queue, mut used) = (0, 0.0f64, 0.0);
            for delay_s in delays_s() {
                let point = Point { down_mbps, up_mbps, delay_s };
                let transfers = point.transfers(CongestionName::Rre, None);
                let run = point.setup().run(&transfers, delay_s + LONG_DOWNLOAD_S, 1, watch)?;
                let waits = run.downlink.bins().iter().map(|bin| bin.wait.as_secs_f64());
                overflow += run.overflow();
                queue = queue.max(waits.fold(0.0, f64::max) * down_mbps / 8.0);
                used += run.downlink.utilization(down_mbps) / delays_s().count() as f64;
            }
            Ok(values([("overflow", overflow as f64), ("queue_mb", queue), ("utilization", used)]))
        }),
    }
}

fn name(scheme: CongestionName, up_mbps: f64, down_mbps: f64) -> String {
    format!("Fig. 9 {scheme} up {up_mbps} down {down_mbps}")
}

fn long_name(up_mbps: f64, down_mbps: f64) -> String {
    format!("Fig. 9 long download up {up_mbps} down {down_mbps}")
}

/// Returns one value of all points of a scheme, in the same order for every scheme.
fn points(records: &Records, scheme: CongestionName, value: &str) -> Vec<f64> {
    let of = |(up, down): (f64, f64)| {
        delays_s().map(move |delay| records.only(&name(scheme, up, down), &format!("{value} {delay}")))
    };
    links().flat_map(of).collect()
}

fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

/// Our choice: a sender starves with less than half of Reno's goodput. Late ACKs slow Reno down as much.
const STARVED: f64 = 0.5;

pub(super) fn show(records: &Records, _runs: u64, folder: &Path) -> Result<Shown> {
    let goodput = SCHEMES.map(|scheme| points(records, scheme, "goodput"));
    let of_data = SCHEMES.map(|scheme| points(records, scheme, "utilization"));
    let gains: Vec<(CongestionName, Vec<f64>)> =
        (1..SCHEMES.len()).map(|n| (SCHEMES[n], sorted(ratios(&goodput[0], &goodput[n])))).collect();
    let [reno, vegas] = [CongestionName::Reno, CongestionName::Vegas]
        .map(|scheme| SCHEMES.iter().position(|known| *known == scheme).unwrap_or(0));
    let starved = percent_of(&ratios(&goodput[vegas], &goodput[reno]), |share| share < STARVED);
    let long = |value: &str| -> Vec<f64> {
        links().flat_map(|(up, down)| records.values(&long_name(up, down), 1, value)).collect()
    };
    let mut bounds: Vec<Bound> = gains
        .iter()
        .filter(|(scheme, _)| *scheme != CongestionName::Vegas)
        .map(|(scheme, gains)| {
            let name = format!("Fig. 9: goodput, RRE over {scheme}: median");
            Bound::between(name, 2.0, 4.0, quantile(gains, 0.5))
        })
        .collect();
    bounds.push(
        Bound::between("Fig. 9: points in which Vegas is starved, %", 20.0, 40.0, starved)
            .with_note("less than half of Reno's goodput"),
    );
    let overflow: f64 = long("overflow").iter().sum();
    let queue = long("queue_mb").into_iter().fold(f64::NAN, f64::max);
    bounds.push(
        Bound::at_most(
            "Fig. 9: packets of long downloads that found the downlink's buffer full",
            0.0,
            overflow,
        )
        .with_note(format!("1,920 downloads of 60 s; at most {queue:.2} of 2.8 MB were used")),
    );
    plot(&gains, folder)?;
    let data_gains = (1..SCHEMES.len()).map(|n| sorted(ratios(&of_data[0], &of_data[n]))).collect::<Vec<_>>();
    let cells = cells(&gains, starved, long("utilization"), long("queue_mb"));
    Ok(Shown { cells, bounds, sections: vec![section(&gains, &data_gains)] })
}

fn cells(gains: &[(CongestionName, Vec<f64>)], starved: f64, used: Vec<f64>, queue: Vec<f64>) -> Vec<Cell> {
    let published = |scheme| match scheme {
        CongestionName::Vegas => "poor",
        _ => "2 to 4",
    };
    let mut cells: Vec<Cell> = gains
        .iter()
        .map(|(scheme, gains)| {
            cell(
                9,
                format!("goodput, RRE over {scheme}: median"),
                published(*scheme),
                quantile(gains, 0.5),
                "",
            )
        })
        .collect();
    cells.push(cell(9, "Vegas starved", "about 30 %", starved, "% of points"));
    let (used, queue) = (sorted(used), sorted(queue));
    cells.push(cell(
        9,
        "long download of RRE: median use of the link",
        "-",
        quantile(&used, 0.5) * 100.0,
        "%",
    ));
    cells.push(cell(
        9,
        "long download of RRE: largest queue, median of links",
        "-",
        quantile(&queue, 0.5),
        "MB",
    ));
    cells
}

fn section(gains: &[(CongestionName, Vec<f64>)], of_data: &[Vec<f64>]) -> Section {
    let row = |((scheme, gains), of_data): (&(CongestionName, Vec<f64>), &Vec<f64>)| {
        let mut row = vec![scheme.to_string().into()];
        row.extend([0.1, 0.25, 0.5, 0.75, 0.9].map(|fraction| number(quantile(gains, fraction), 2)));
        row.push(number(quantile(of_data, 0.5), 2));
        row
    };
    Section { rows: gains.iter().zip(of_data).map(row).collect(), ..Section::of("rre", "rre-fig-9") }
}

fn plot(gains: &[(CongestionName, Vec<f64>)], folder: &Path) -> Result<()> {
    let lines = gains
        .iter()
        .enumerate()
        .map(|(colour, (scheme, gains))| distribution(scheme.to_string(), colour, gains.clone()))
        .collect();
    let panel = Panel { title: "points at or below (%)".into(), lines };
    let across = Across::Logarithm("goodput of RRE over that of");
    plot::write_across(&folder.join("rre-fig-9.svg"), "Fig. 9: beside an upload", across, &[panel])
}
