//! Printed output: a table of modes, a histogram, bounds, and the worst points.

use serde::Serialize;

use super::bounds::{Verdict, median};
use super::judge::Cell;
use super::outcome::Outcome;
use super::point::{Kind, Load, PROFILES};
use crate::output::say;
use crate::table::new_table;

/// Upper ends of the ratios' bins, with their names.
pub(super) const BINS: [(f64, &str); 13] = [
    (0.5, "below .50"),
    (0.7, ".50 to .70"),
    (0.8, ".70 to .80"),
    (0.9, ".80 to .90"),
    (0.95, ".90 to .95"),
    (0.98, ".95 to .98"),
    (1.0, ".98 to 1.00"),
    (1.02, "1.00 to 1.02"),
    (1.1, "1.02 to 1.10"),
    (1.5, "1.10 to 1.50"),
    (2.0, "1.5 to 2"),
    (5.0, "2 to 5"),
    (f64::INFINITY, "5 and more"),
];
/// The number of worst points that are shown.
const WORST: usize = 10;
const WIDTH: usize = 100;
/// Length of the longest bar.
const BAR: usize = 22;
/// Points are counted if their delay's p95 exceeds that without gateway by this much.
const DELAY_MORE_MS: [f64; 2] = [30.0, 200.0];

/// Summary of a mode over all points.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Counts {
    pub(super) points: usize,
    pub(super) mean: f64,
    pub(super) median: f64,
    pub(super) least: f64,
    /// The number of points with low ratios, by their first runs and by the runs that judge them.
    pub(super) below_098_first: usize,
    pub(super) below_098: usize,
    pub(super) below_090_first: usize,
    pub(super) below_090: usize,
    /// Points where the delay's p95 exceeds that without gateway by 30 ms and by 200 ms.
    pub(super) delay_30ms: usize,
    pub(super) delay_200ms: usize,
    /// Points where the packets sent into the radio exceed 1.1 times those delivered or lost by chance.
    pub(super) storms: usize,
    /// Points where a flow received nothing, but received data without gateway.
    pub(super) silent: usize,
    #[serde(skip)]
    pub(super) bins: [usize; BINS.len()],
}

impl Counts {
    pub(super) fn of(cells: &[&Cell<'_>]) -> Counts {
        let early: Vec<f64> = cells.iter().map(|cell| cell.ratio(&cell.first).value).collect();
        let late: Vec<f64> = cells.iter().map(|cell| cell.ratio(&cell.judged).value).collect();
        let below = |ratios: &[f64], bound: f64| ratios.iter().filter(|ratio| **ratio < bound).count();
        let count = |of: &dyn Fn(&Cell<'_>) -> bool| cells.iter().filter(|cell| of(cell)).count();
        let more = |cell: &Cell<'_>| cell.judged.difference(|run| run.delay_p95_ms).value;
        let mut bins = [0; BINS.len()];
        for ratio in &late {
            let place = BINS.iter().position(|(to, _)| ratio < to).unwrap_or(BINS.len() - 1);
            bins[place] += 1;
        }
        Counts {
            points: cells.len(),
            mean: late.iter().sum::<f64>() / late.len().max(1) as f64,
            median: median(late.clone()),
            least: late.iter().copied().fold(f64::INFINITY, f64::min),
            below_098_first: below(&early, 0.98),
            below_098: below(&late, 0.98),
            below_090_first: below(&early, 0.90),
            below_090: below(&late, 0.90),
            delay_30ms: count(&|cell| more(cell) > DELAY_MORE_MS[0]),
            delay_200ms: count(&|cell| more(cell) > DELAY_MORE_MS[1]),
            storms: count(&|cell| is_storm(&cell.judged.on)),
            silent: count(&|cell| cell.judged.difference(|run| run.silent).value > 0.0),
            bins,
        }
    }
}

/// True if the packets sent into the radio exceed 1.1 times those delivered or lost by chance.
fn is_storm(runs: &[&Outcome]) -> bool {
    let sum = |value: fn(&Outcome) -> f64| runs.iter().map(|run| value(run)).sum::<f64>();
    sum(|run| run.sent) > 1.1 * sum(|run| run.delivered + run.losses)
}

/// The points with a ratio below 1, worst first.
pub(super) fn worst<'a, 'b>(cells: &[&'a Cell<'b>]) -> Vec<&'a Cell<'b>> {
    let mut sorted: Vec<&Cell<'_>> =
        cells.iter().copied().filter(|cell| cell.ratio(&cell.judged).value < 1.0).collect();
    sorted.sort_by(|a, b| a.ratio(&a.judged).value.total_cmp(&b.ratio(&b.judged).value));
    sorted.truncate(WORST);
    sorted
}

pub(super) fn print(kind: Kind, seed: u64, cells: &[Cell<'_>], verdicts: &[Verdict], seconds: f64) {
    let modes: Vec<(&str, Vec<&Cell<'_>>)> = PROFILES[1..]
        .iter()
        .map(|mode| (*mode, cells.iter().filter(|cell| cell.mode == *mode).collect::<Vec<_>>()))
        .filter(|(_, cells)| !cells.is_empty())
        .collect();
    let Some((_, first)) = modes.first() else { return };
    let points = first.len();
    say!(
        "{}: {points} points of seed {seed}, {:.2} s of processor time each",
        kind.name(),
        seconds / points as f64
    );
    say!("Ratio: throughput in parts of that without gateway; of objects, how soon half of them come.");
    let counts: Vec<(&str, Counts)> = modes.iter().map(|(mode, cells)| (*mode, Counts::of(cells))).collect();
    say!("{}", totals(&counts));
    let alone = first.iter().filter(|cell| is_storm(&cell.judged.off)).count();
    say!(
        "+30 ms: p95 of the delay so much above that without gateway; storm: sent > 1.1 x kept by the radio,"
    );
    say!("which is so without gateway at {alone} points.\n");
    say!("{}", histogram(&counts));
    say!(
        "Points in percent; `first`: by the first runs; `mean`: by all that judge; `held`: by their intervals"
    );
    say!("{}", bounds(verdicts));
    for (mode, cells) in &modes {
        say!(
            "\n{mode}, the worst: point, ratio (runs), p95 of the delay without and with, sent / kept by the radio"
        );
        worst(cells).iter().for_each(|cell| say!("{}", line(cell)));
    }
    say!();
}

fn totals(counts: &[(&str, Counts)]) -> String {
    let header = [
        "mode", "mean", "median", "least", "<.98", "first", "<.90", "first", "+30 ms", "+200 ms", "storm",
        "silent",
    ];
    let mut table = new_table(1, &header);
    for (mode, counts) in counts {
        table.add_row([
            mode.to_string(),
            format!("{:.3}", counts.mean),
            format!("{:.3}", counts.median),
            format!("{:.3}", counts.least),
            counts.below_098.to_string(),
            counts.below_098_first.to_string(),
            counts.below_090.to_string(),
            counts.below_090_first.to_string(),
            counts.delay_30ms.to_string(),
            counts.delay_200ms.to_string(),
            counts.storms.to_string(),
            counts.silent.to_string(),
        ]);
    }
    table.to_string()
}

fn histogram(counts: &[(&str, Counts)]) -> String {
    let most = counts.iter().flat_map(|(_, counts)| counts.bins).max().unwrap_or(1).max(1);
    let mut text = format!("{:<14}", "ratio");
    counts.iter().for_each(|(mode, _)| text += &format!("{mode:<28}"));
    let mut lines = vec![text];
    for (place, (_, name)) in BINS.iter().enumerate() {
        let mut text = format!("{name:<14}");
        for (_, counts) in counts {
            let count = counts.bins[place];
            let bar = "#".repeat((count * BAR).div_ceil(most));
            text += &format!("{count:>4} {bar:<23}");
        }
        lines.push(text);
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn bounds(verdicts: &[Verdict]) -> String {
    let mut table = new_table(2, &["mode", "bound", "points", "first", "mean", "held", "wanted", ""]);
    for verdict in verdicts {
        table.add_row([
            verdict.mode.to_string(),
            verdict.measure.to_string(),
            verdict.points.to_string(),
            format!("{:.2}", verdict.first),
            format!("{:.2}", verdict.raw),
            format!("{:.2}", verdict.held),
            format!("{}", verdict.wanted),
            if verdict.holds() { String::new() } else { "MISSED".into() },
        ]);
    }
    table.to_string()
}

/// Formats a point, with its description wrapped.
fn line(cell: &Cell<'_>) -> String {
    let pairs = &cell.judged;
    let ratio = cell.ratio(pairs);
    let delay = |run: &Outcome| run.delay_p95_ms;
    let kept = pairs.mean_on(|run| run.delivered + run.losses).max(1.0);
    let objects = if cell.point.load == Load::Objects { " objects" } else { "" };
    let head = format!(
        "{:>6} {:.3} ({}{}) {:.0} -> {:.0} ms, {:.2}{objects}:",
        cell.point.index,
        ratio.value,
        pairs.on.len(),
        if cell.again() { " more" } else { "" },
        pairs.mean_off(delay),
        pairs.mean_on(delay),
        pairs.mean_on(|run| run.sent) / kept,
    );
    let mut lines = vec![head];
    for word in cell.point.label.split(' ') {
        let fits = lines.last().is_some_and(|line| line.chars().count() + word.chars().count() < WIDTH);
        match lines.last_mut() {
            Some(line) if fits => *line += &format!(" {word}"),
            _ => lines.push(format!("       {word}")),
        }
    }
    lines.join("\n")
}
