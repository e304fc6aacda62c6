//! Figs. 3 to 5, and a run with and without Hack 1: plots and their data.

use std::path::Path;

use paceline_sim::reproduce::linux::LinuxRow;
use paceline_sim::reproduce::or::{
    Cell, RttTrace, SenderRow, SenderSetup, SenderTrace, Setup, SetupLoss, Variant,
};
use paceline_sim::run_watched;
use paceline_tcp::{CongestionName, DetectionName, ReductionName};
use serde_json::Value;

use super::{Job, Records, cost, values};
use crate::error::{Error, Result};
use crate::files::write_whole;
use crate::interrupt;
use crate::plot::{self, Across, Line, Panel};
use crate::reproduce::pool::not_simulated;
use crate::reproduce::report::{Bound, Section, number};

type Drawn = (Vec<Section>, Vec<Bound>);

/// Loss in percent, from 0.001 to 10, as in Fig. 3.
const LOSSES: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
const DETECTIONS: [DetectionName; 2] = [DetectionName::Fack, DetectionName::RackTlp];

pub(super) fn jobs(runs: u64) -> Vec<Job<'static>> {
    let of = |(loss, detection): (f64, DetectionName)| {
        (1..=runs).map(move |seed| Job {
            name: name(loss, detection),
            seed,
            cost: cost(20.0, 200.0),
            work: Box::new(move |watch| {
                let sender = SenderSetup { detection, ..SenderSetup::default() };
                let setup = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(loss) };
                let result = run_watched(&setup.scenario(&sender, seed), Vec::new(), watch)?;
                Ok(values(&[("goodput_mbps", result.flows[0].goodput_mbps)]))
            }),
        })
    };
    LOSSES.into_iter().flat_map(|loss| DETECTIONS.map(|detection| (loss, detection))).flat_map(of).collect()
}

fn name(loss_percent: f64, detection: DetectionName) -> String {
    format!("Fig. 3 cubic prr loss {loss_percent} % {detection}")
}

/// Draws all figures into `folder`.
pub(super) fn draw(records: &Records, runs: u64, folder: &Path) -> Result<Drawn> {
    let traces = downloads()?;
    let (rtt_section, rtt_bounds) = rtt_after(&traces, folder)?;
    let (hack1_section, hack1_bounds) = hack1(folder)?;
    let sections = vec![
        loss_figure(records, runs, folder)?,
        window_figure(&traces, folder)?,
        rtt_section,
        hack1_section,
    ];
    Ok((sections, rtt_bounds.into_iter().chain(hack1_bounds).collect()))
}

/// Fig. 3, left: goodput over loss. The paper compares its module with the kernel's own PRR. We compare both loss
/// detections with Linux 6.1 and the published cells.
fn loss_figure(records: &Records, runs: u64, folder: &Path) -> Result<Section> {
    let mean =
        |loss: f64, detection: DetectionName| records.mean(&name(loss, detection), runs, "goodput_mbps");
    let mut lines: Vec<Line> = DETECTIONS
        .iter()
        .enumerate()
        .map(|(colour, detection)| Line {
            label: format!("ours, {detection}"),
            colour,
            points: LOSSES.iter().map(|loss| (*loss, mean(*loss, *detection))).collect(),
        })
        .collect();
    let linux = LinuxRow::all().into_iter().filter(|row| row.congestion == CongestionName::Cubic);
    let linux = linux.map(|row| (row.loss_percent, row.goodput_mbps.mean())).collect();
    lines.push(Line { label: "Linux 6.1".into(), colour: 2, points: linux });
    let published = Cell::all()
        .into_iter()
        .filter(|cell| cell.table == 6 && cell.congestion_control == "CUBIC" && cell.loss_recovery == "PRR");
    let published = published.map(|cell| (cell.axis_value, cell.published)).collect();
    lines.push(Line { label: "published, Table 6".into(), colour: 3, points: published });
    let panel = Panel { title: "goodput (Mbit/s)".into(), lines };
    let title = "Fig. 3, left: CUBIC with PRR over random loss, 20 Mbit/s, 100 ms";
    plot::write_across(&folder.join("fig-3-loss.svg"), title, Across::Logarithm("loss (%)"), &[panel])?;
    let row = |loss: f64| -> Vec<Value> {
        let means = DETECTIONS.map(|detection| number(mean(loss, detection), 3));
        std::iter::once(number(loss, 3)).chain(means).collect()
    };
    let section = Section { rows: LOSSES.map(row).to_vec(), ..Section::of("or", "fig-3-loss") };
    write_csv(
        &folder.join("fig-3-loss.csv"),
        &["loss_percent", "fack_mbps", "rack_tlp_mbps"],
        &section.rows,
    )?;
    Ok(section)
}

/// A download of 50 MB with five drops, and its sender.
struct Download {
    reduction: ReductionName,
    variant: Variant,
    detection: DetectionName,
    trace: RttTrace,
}

fn downloads() -> Result<Vec<Download>> {
    let mut senders = Vec::new();
    for reduction in [ReductionName::Rh, ReductionName::Prr, ReductionName::Qarr, ReductionName::Barr] {
        for variant in [Variant::Original, Variant::Optimized] {
            senders.push((reduction, variant, DetectionName::Fack));
        }
    }
    senders.push((ReductionName::Prr, Variant::Original, DetectionName::RackTlp));
    let record = |(reduction, variant, detection)| {
        if interrupt::requested() {
            return Err(Error::interrupted());
        }
        let sender = SenderSetup { reduction, variant, detection, ..SenderSetup::default() };
        let trace = RttTrace::record(&sender).map_err(|error| not_simulated("", &error))?;
        Ok(Download { reduction, variant, detection, trace })
    };
    senders.into_iter().map(record).collect()
}

impl Download {
    fn is(&self, reduction: ReductionName, variant: Variant, detection: DetectionName) -> bool {
        self.reduction == reduction && self.variant == variant && self.detection == detection
    }

    fn cwnd(&self) -> Vec<(f64, f64)> {
        self.trace.sender.rows.iter().map(|row| (row.at_s, f64::from(row.cwnd_packets))).collect()
    }
}

/// Fig. 3, right: cwnd with five drops.
fn window_figure(downloads: &[Download], folder: &Path) -> Result<Section> {
    let prr = downloads
        .iter()
        .filter(|download| download.reduction == ReductionName::Prr && download.variant == Variant::Original);
    let of = |(colour, download): (usize, &Download)| Line {
        label: format!("PRR, {}", download.detection),
        colour,
        points: download.cwnd(),
    };
    let panel = Panel { title: "cwnd (packets)".into(), lines: prr.enumerate().map(of).collect() };
    let title = "Fig. 3, right: a download of 50 MB with five drops, CUBIC with PRR";
    plot::write(&folder.join("fig-3-cwnd.svg"), title, &[panel])?;
    Ok(Section { ..Section::of("or", "fig-3-cwnd") })
}

/// Figs. 4 and 5: the round-trip time after the repair of a drop.
fn rtt_after(downloads: &[Download], folder: &Path) -> Result<(Section, Vec<Bound>)> {
    let mut files = Vec::new();
    for (figure, reduction) in [(4, ReductionName::Prr), (5, ReductionName::Qarr)] {
        files.extend(rtt_figure(figure, reduction, downloads, folder)?);
    }
    let with_fack = downloads.iter().filter(|download| download.detection == DetectionName::Fack);
    let row = |download: &Download| {
        let after = &download.trace.after;
        vec![
            download.reduction.to_string().into(),
            download.variant.name().into(),
            number(after.before_ms, 1),
            number(after.after_ms, 1),
            number(after.growth() * 100.0, 1),
        ]
    };
    let section =
        Section { rows: with_fack.map(row).collect(), files, ..Section::of("or", "rtt-after-recovery") };
    let growth = |reduction, variant| {
        let of = downloads.iter().find(|download| download.is(reduction, variant, DetectionName::Fack));
        of.map_or(f64::NAN, |download| download.trace.after.growth() * 100.0)
    };
    let found = |reduction| growth(reduction, Variant::Original);
    let optimized =
        [ReductionName::Prr, ReductionName::Qarr].map(|reduction| growth(reduction, Variant::Optimized));
    let bounds = vec![
        Bound::near("Fig. 4: RTT after recovery, PRR as found, %", 50.0, 10.0, found(ReductionName::Prr)),
        Bound::near("Fig. 5: RTT after recovery, QARR as found, %", 80.0, 10.0, found(ReductionName::Qarr)),
        Bound::at_most("Figs. 4, 5: RTT after recovery, optimised, %", 5.0, optimized[0].max(optimized[1])),
    ];
    Ok((section, bounds))
}

fn rtt_figure(
    figure: u32,
    reduction: ReductionName,
    downloads: &[Download],
    folder: &Path,
) -> Result<Vec<String>> {
    let pair: Vec<&Download> = downloads
        .iter()
        .filter(|download| download.reduction == reduction && download.detection == DetectionName::Fack)
        .collect();
    let lines = |of: &dyn Fn(&Download) -> Vec<(f64, f64)>| {
        let line = |(colour, download): (usize, &&Download)| Line {
            label: if download.variant == Variant::Original { "as found" } else { "optimised" }.into(),
            colour,
            points: of(download),
        };
        pair.iter().enumerate().map(line).collect::<Vec<Line>>()
    };
    let panels = [
        Panel {
            title: "RTT (ms), longest of 50 ms".into(),
            lines: lines(&|download| download.trace.rtt_ms.clone()),
        },
        Panel { title: "cwnd (packets)".into(), lines: lines(&Download::cwnd) },
    ];
    let name = format!("fig-{figure}-rtt");
    let upper = reduction.to_string().to_uppercase();
    let title = format!("Fig. {figure}: a download of 50 MB with five drops, CUBIC with {upper}");
    plot::write(&folder.join(format!("{name}.svg")), &title, &panels)?;
    let rows: Vec<Vec<Value>> = pair
        .iter()
        .flat_map(|download| {
            let row = |(at_s, rtt_ms): &(f64, f64)| {
                vec![download.variant.name().into(), number(*at_s, 2), number(*rtt_ms, 3)]
            };
            download.trace.rtt_ms.iter().map(row)
        })
        .collect();
    write_csv(&folder.join(format!("{name}.csv")), &["variant", "time_s", "rtt_ms"], &rows)?;
    Ok(vec![format!("{name}.svg"), format!("{name}.csv")])
}

/// Round-trip time of the traced cell of Table 14.
const HACK1_RTT_MS: f64 = 100.0;

/// One run of Table 14, QARR, with and without Hack 1.
fn hack1(folder: &Path) -> Result<(Section, Vec<Bound>)> {
    let mut traces = Vec::new();
    for variant in [Variant::Optimized, Variant::OptimizedHack1] {
        if interrupt::requested() {
            return Err(Error::interrupted());
        }
        let cell = Cell::all().into_iter().find(|cell| {
            cell.table == 14
                && cell.axis_value == HACK1_RTT_MS
                && cell.loss_recovery == "QARR"
                && cell.variant == variant
        });
        let cell = cell.ok_or_else(|| Error::failed("Table 14 has no cell to trace"))?;
        let mut trace = SenderTrace::default();
        cell.run(1, DetectionName::Fack, &mut trace).map_err(|error| not_simulated("", &error))?;
        traces.push((variant, trace));
    }
    draw_hack1(&traces, folder)?;
    let row = |(variant, trace): &(Variant, SenderTrace)| {
        let last = trace.rows.last().copied().unwrap_or_default();
        vec![
            variant.name().into(),
            number(last.read_bytes as f64 * 8.0 / 1e6 / last.at_s, 2),
            last.recoveries.into(),
            last.timeouts.into(),
            last.hack1.into(),
        ]
    };
    let section = Section { rows: traces.iter().map(row).collect(), ..Section::of("or", "hack1") };
    let timeouts = |at: usize| {
        traces.get(at).and_then(|(_, trace)| trace.rows.last()).map_or(f64::NAN, |row| row.timeouts as f64)
    };
    let measured = timeouts(1) - timeouts(0);
    let bound = Bound::new(
        "the traced run: timeouts with Hack 1 less those without",
        "< 0".into(),
        measured,
        measured < 0.0,
    );
    Ok((section, vec![bound]))
}

fn draw_hack1(traces: &[(Variant, SenderTrace)], folder: &Path) -> Result<()> {
    let lines = |of: &dyn Fn(&SenderRow) -> f64| -> Vec<Line> {
        let line = |(colour, (variant, trace)): (usize, &(Variant, SenderTrace))| Line {
            label: if *variant == Variant::Optimized { "without Hack 1" } else { "with Hack 1" }.into(),
            colour,
            points: trace.rows.iter().map(|row| (row.at_s, of(row))).collect(),
        };
        traces.iter().enumerate().map(line).collect()
    };
    let panels = [
        Panel { title: "cwnd (packets)".into(), lines: lines(&|row| f64::from(row.cwnd_packets)) },
        Panel { title: "timeouts so far".into(), lines: lines(&|row| row.timeouts as f64) },
        Panel { title: "resent by Hack 1 so far".into(), lines: lines(&|row| row.hack1 as f64) },
        Panel { title: "received (MB)".into(), lines: lines(&|row| row.read_bytes as f64 / 1e6) },
    ];
    let title = "Table 14, CUBIC with QARR, optimised, 100 Mbit/s, 100 ms, 0.5 % loss";
    plot::write(&folder.join("hack1.svg"), title, &panels)?;
    let rows: Vec<Vec<Value>> = traces
        .iter()
        .flat_map(|(variant, trace)| {
            let row = |row: &SenderRow| -> Vec<Value> {
                vec![
                    variant.name().into(),
                    number(row.at_s, 1),
                    row.cwnd_packets.into(),
                    row.in_flight_packets.into(),
                    number(row.srtt_ms, 3),
                    row.read_bytes.into(),
                    row.recoveries.into(),
                    row.timeouts.into(),
                    row.hack1.into(),
                ]
            };
            trace.rows.iter().map(row)
        })
        .collect();
    let header = [
        "variant", "time_s", "cwnd_packets", "in_flight_packets", "srtt_ms", "read_bytes", "recoveries",
        "timeouts", "hack1_retransmissions",
    ];
    write_csv(&folder.join("hack1.csv"), &header, &rows)
}

fn write_csv(path: &Path, header: &[&str], rows: &[Vec<Value>]) -> Result<()> {
    let mut text = header.join(",") + "\n";
    for row in rows {
        let cells: Vec<String> =
            row.iter().map(|cell| cell.as_str().map_or_else(|| cell.to_string(), Into::into)).collect();
        text += &(cells.join(",") + "\n");
    }
    write_whole(path, &text)
}
