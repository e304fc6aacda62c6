//! The bounds of the points, and the percentage of points that must satisfy each.

use std::fmt;

use super::judge::{Cell, Pairs};
use super::outcome::Outcome;
use super::point::{Kind, Load};

/// A row of the table of bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    kinds: &'static [Kind],
    modes: &'static [&'static str],
    measure: Measure,
    /// The percentage of the points with this bound that must satisfy it. For a median, 100.
    percent: f64,
}

/// The measured quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measure {
    /// Throughput of downloads and uploads together, relative to no gateway: at least `least`. It need only be at least
    /// `short` if the gateway cuts the p95 of the path delay below a third.
    Throughput {
        least: f64,
        short: f64,
    },
    /// The same for all payload, datagrams included. Each web object begins after the previous one, so faster objects
    /// mean more objects. They take throughput from the downloads.
    Payload {
        least: f64,
        short: f64,
    },
    /// Increase of the path delay's p95: at most `more_ms`. Links below 3 Mbit/s may add `segments` segments per
    /// download.
    Delay {
        more_ms: f64,
        segments: f64,
    },
    /// Drops at the radio's buffer: at most `times` the number without gateway, plus `more`.
    Drops {
        times: f64,
        more: f64,
    },
    /// Packets sent into the radio: at most `times` the number of packets delivered or lost by chance.
    Storm {
        times: f64,
    },
    /// Completion time of objects, relative to no gateway.
    ObjectMedian {
        times: f64,
    },
    ObjectP95 {
        times: f64,
    },
    /// The median over all points of the throughput ratio.
    Median {
        least: f64,
    },
}

const BOTH: &[&str] = &["full", "auto"];
const ALL: &[&str] = &["full", "auto", "split"];
const PATH: &[Kind] = &[Kind::Path];
const MIXED: &[Kind] = &[Kind::Mixed, Kind::MixedDown];
const CLIENTS: &[Kind] = &[Kind::Clients];
/// A full-sized segment with its headers.
const SEGMENT_BITS: f64 = 1500.0 * 8.0;
/// Below this rate a few segments cause most of the delay.
const SLOW_MBPS: f64 = 3.0;

const fn bound(
    kinds: &'static [Kind],
    modes: &'static [&'static str],
    measure: Measure,
    percent: f64,
) -> Bound {
    Bound { kinds, modes, measure, percent }
}

pub(super) const TABLE: &[Bound] = &[
    bound(PATH, BOTH, Measure::Throughput { least: 0.98, short: 0.95 }, 99.0),
    bound(PATH, BOTH, Measure::Throughput { least: 0.90, short: 0.90 }, 100.0),
    bound(PATH, BOTH, Measure::Delay { more_ms: 30.0, segments: 0.0 }, 99.0),
    bound(PATH, BOTH, Measure::ObjectMedian { times: 1.02 }, 99.0),
    bound(PATH, BOTH, Measure::ObjectP95 { times: 1.05 }, 99.0),
    bound(PATH, &["split"], Measure::Throughput { least: 0.98, short: 0.98 }, 97.0),
    bound(PATH, &["split"], Measure::Throughput { least: 0.85, short: 0.85 }, 100.0),
    bound(MIXED, ALL, Measure::Throughput { least: 0.98, short: 0.95 }, 97.0),
    bound(MIXED, ALL, Measure::Payload { least: 0.98, short: 0.95 }, 97.0),
    bound(MIXED, ALL, Measure::Drops { times: 1.5, more: 50.0 }, 100.0),
    bound(MIXED, ALL, Measure::Storm { times: 1.1 }, 100.0),
    bound(MIXED, ALL, Measure::Delay { more_ms: 30.0, segments: 4.0 }, 100.0),
    bound(MIXED, ALL, Measure::ObjectMedian { times: 1.02 }, 97.0),
    bound(MIXED, ALL, Measure::ObjectP95 { times: 1.05 }, 97.0),
    bound(CLIENTS, ALL, Measure::Throughput { least: 0.98, short: 0.98 }, 99.0),
    bound(CLIENTS, BOTH, Measure::Median { least: 1.26 }, 100.0),
    bound(CLIENTS, &["split"], Measure::Median { least: 1.15 }, 100.0),
];

/// Whether a point satisfies a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Held {
    /// By the mean.
    pub(super) raw: bool,
    /// By the end of the interval that is closer to the bound.
    pub(super) by_interval: bool,
}

/// The result of a bound for a mode.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) kind: Kind,
    pub(super) mode: &'static str,
    pub(super) measure: Measure,
    pub(super) wanted: f64,
    /// The number of points to which the bound applies.
    pub(super) points: usize,
    /// By the first runs alone, in percent of the points. For a median, the median itself.
    pub(super) first: f64,
    /// By the means of the runs that judge the points.
    pub(super) raw: f64,
    /// By the intervals of these runs. This value decides.
    pub(super) held: f64,
}

/// True if the cell's first runs miss any of its bounds.
pub(super) fn misses(cell: &Cell<'_>) -> bool {
    of(cell.point.kind, cell.mode)
        .any(|bound| bound.measure.at(cell, &cell.first).is_some_and(|held| !held.raw))
}

pub(super) fn verdicts(kind: Kind, cells: &[Cell<'_>]) -> Vec<Verdict> {
    let verdict = |bound: &Bound, mode: &'static str| {
        let of_mode: Vec<&Cell<'_>> = cells.iter().filter(|cell| cell.mode == mode).collect();
        let common = Verdict {
            kind,
            mode,
            measure: bound.measure,
            wanted: bound.percent,
            points: of_mode.len(),
            first: 0.0,
            raw: 0.0,
            held: 0.0,
        };
        if let Measure::Median { least } = bound.measure {
            let ratio = |of: for<'b> fn(&'b Cell<'b>) -> &'b Pairs<'b>| {
                median(of_mode.iter().map(|cell| cell.ratio(of(cell)).value).collect())
            };
            let held = ratio(|cell| &cell.judged);
            return Verdict { wanted: least, first: ratio(|cell| &cell.first), raw: held, held, ..common };
        }
        let early = of_mode.iter().filter_map(|cell| bound.measure.at(cell, &cell.first));
        let early: Vec<Held> = early.collect();
        let late = of_mode.iter().filter_map(|cell| bound.measure.at(cell, &cell.judged));
        let late: Vec<Held> = late.collect();
        let percent = |held: &[Held], of: fn(&Held) -> bool| {
            100.0 * held.iter().filter(|held| of(held)).count() as f64 / held.len().max(1) as f64
        };
        Verdict {
            points: late.len(),
            first: percent(&early, |held| held.raw),
            raw: percent(&late, |held| held.raw),
            held: percent(&late, |held| held.by_interval),
            ..common
        }
    };
    let present = |mode: &&'static str| cells.iter().any(|cell| cell.mode == *mode);
    let modes = ALL.iter().filter(|mode| present(mode));
    modes
        .flat_map(|mode| of(kind, mode).map(move |bound| verdict(bound, mode)))
        .filter(|verdict| verdict.points > 0)
        .collect()
}

fn of(kind: Kind, mode: &str) -> impl Iterator<Item = &'static Bound> {
    TABLE.iter().filter(move |bound| bound.kinds.contains(&kind) && bound.modes.contains(&mode))
}

pub(super) fn median(values: Vec<f64>) -> f64 {
    crate::result::statistic(crate::scenario::Statistic::Median, &values).unwrap_or(f64::NAN)
}

impl Measure {
    /// Returns `None` if the cell has no data for this measure.
    pub(super) fn at(self, cell: &Cell<'_>, pairs: &Pairs<'_>) -> Option<Held> {
        // Judges a value that must be at most `most`. It is no miss if its interval reaches `most`.
        let below = |value: f64, half_width: f64, most: f64| Held {
            raw: value <= most,
            by_interval: value - half_width <= most,
        };
        let objects = |value: fn(&Outcome) -> f64, times: f64| {
            let ratio = pairs.ratio(value);
            (pairs.mean_off(|run| run.objects) > 0.0).then(|| below(ratio.value, ratio.half_width, times))
        };
        let at_least = |value: fn(&Outcome) -> f64, least: f64, short: f64| {
            let ratio = pairs.ratio(value);
            let wait = pairs.ratio(|run| run.delay_p95_ms).value;
            let least = if wait < 1.0 / 3.0 { short } else { least };
            below(-ratio.value, ratio.half_width, -least)
        };
        match self {
            Measure::Throughput { least, short } => {
                (cell.point.load == Load::Bulk).then(|| at_least(Outcome::mbps, least, short))
            }
            Measure::Payload { least, short } => Some(at_least(|run| run.bytes, least, short)),
            Measure::Delay { more_ms, segments } => {
                let slow = cell.point.radio_mbps < SLOW_MBPS;
                let segments = if slow { segments * f64::from(cell.point.downloads) } else { 0.0 };
                let most = more_ms + segments * SEGMENT_BITS / (cell.point.radio_mbps * 1000.0);
                let more = pairs.difference(|run| run.delay_p95_ms);
                Some(below(more.value, more.half_width, most))
            }
            Measure::Drops { times, more } => {
                let beyond =
                    pairs.difference(|run| run.drops).value + pairs.mean_off(|run| run.drops) * (1.0 - times);
                let width = pairs.difference(|run| run.drops).half_width;
                Some(below(beyond, width, more))
            }
            Measure::Storm { times } => {
                let kept = pairs.mean_on(|run| run.delivered + run.losses);
                Some(below(pairs.mean_on(|run| run.sent), 0.0, times * kept))
            }
            Measure::ObjectMedian { times } => objects(|run| run.object_p50_s, times),
            Measure::ObjectP95 { times } => objects(|run| run.object_p95_s, times),
            Measure::Median { .. } => None,
        }
    }
}

impl Verdict {
    pub(super) fn holds(&self) -> bool {
        self.held >= self.wanted
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Throughput { least, short } if least == short => write!(f, "throughput >= {least}"),
            Measure::Throughput { least, short } => write!(f, "throughput >= {least} ({short} if p95 < 1/3)"),
            Measure::Payload { least, short } => write!(f, "all payload >= {least} ({short} if p95 < 1/3)"),
            Measure::Delay { more_ms, segments: 0.0 } => write!(f, "delay p95 <= +{more_ms} ms"),
            Measure::Delay { more_ms, segments } => {
                write!(f, "delay p95 <= +{more_ms} ms, {segments} segments if slow")
            }
            Measure::Drops { times, more } => write!(f, "radio's drops <= {times} x + {more}"),
            Measure::Storm { times } => write!(f, "sent into radio <= {times} x delivered, lost"),
            Measure::ObjectMedian { times } => write!(f, "objects, median <= {times}"),
            Measure::ObjectP95 { times } => write!(f, "objects, p95 <= {times}"),
            Measure::Median { least } => write!(f, "median of throughput >= {least}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}: {}: {:.2}, wanted {}",
            self.kind.name(),
            self.mode,
            self.measure,
            self.held,
            self.wanted
        )
    }
}
