//! Shows for which windows, rates and round-trip times Figs. 9a and 9c match the paper's text.

use paceline_judge::distinct;
use serde_json::Value;

use super::cells::{CellResult, Figure};
use crate::reproduce::report::{Section, number};

/// A window, a rate and a round-trip time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) window_max: Option<u32>,
    pub(super) mbps: f64,
    pub(super) rtt_ms: f64,
    /// The goodput share that each sender keeps at 15 % errors. It is relative to the larger of its share without
    /// errors and nearly the whole link.
    pub(super) kept: Vec<(&'static str, f64)>,
}

/// A curve counts as flat if it keeps this part of its value without errors.
pub(super) const FLAT: f64 = 0.85;
const ERROR_PERCENT: f64 = 15.0;
/// Our choice: a sender that cannot fill the link without errors is compared with one that nearly can. Otherwise its
/// curve would seem flat.
const FULL: f64 = 0.95;
const PACKET_BITS: f64 = 12_000.0;

impl Point {
    pub(super) fn of(cells: &[CellResult]) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        let grid: Vec<&CellResult> = cells.iter().filter(|cell| cell.figure == Figure::Grid).collect();
        for cell in grid.iter().filter(|cell| cell.x == ERROR_PERCENT) {
            let Some(rtt_ms) = cell.rtt_ms else { continue };
            let without = grid
                .iter()
                .find(|other| other.x == 0.0 && (other.scheme, place(other)) == (cell.scheme, place(cell)));
            // The share of the link that the window allows, times `FULL`.
            let (window, rtt_s) = (f64::from(cell.window_max.unwrap_or(u32::MAX)), rtt_ms / 1e3);
            let full = (window * PACKET_BITS / (cell.mbps * 1e6 * rtt_s + PACKET_BITS)).min(1.0) * FULL;
            let kept =
                (cell.scheme, without.map_or(f64::NAN, |without| cell.share / without.share.max(full)));
            let (window_max, mbps, _) = place(cell);
            let here = |point: &&mut Point| {
                (point.window_max, point.mbps, point.rtt_ms) == (window_max, mbps, rtt_ms)
            };
            match points.iter_mut().find(here) {
                Some(point) => point.kept.push(kept),
                None => points.push(Point { window_max, mbps, rtt_ms, kept: vec![kept] }),
            }
        }
        points
    }

    pub(super) fn kept_by(&self, scheme: &str) -> f64 {
        self.kept.iter().find(|(name, _)| *name == scheme).map_or(f64::NAN, |(_, kept)| *kept)
    }

    /// In words.
    pub(super) fn name(&self) -> String {
        let window = self.window_max.unwrap_or_default();
        format!("{} Mbit/s, {} ms, a window of {window}", self.mbps, self.rtt_ms)
    }

    /// The best of the senders that collapse according to the paper.
    pub(super) fn best_comparator(&self) -> (&'static str, f64) {
        let others = self.kept.iter().filter(|(name, _)| !name.starts_with("ncl") && *name != "westwood");
        others.copied().fold(("none", f64::NAN), |best, one| if best.1 >= one.1 { best } else { one })
    }
}

fn place(cell: &CellResult) -> (Option<u32>, f64, Option<f64>) {
    (cell.window_max, cell.mbps, cell.rtt_ms)
}

pub(super) fn section(cells: &[CellResult]) -> Option<Section> {
    let points = Point::of(cells);
    let first = points.first()?;
    let columns =
        ["window", "rate, Mbit/s", "RTT, ms"].into_iter().chain(first.kept.iter().map(|(name, _)| *name));
    let row = |point: &Point| -> Vec<Value> {
        let kept = point.kept.iter().map(|(_, kept)| number(*kept, 3));
        let place = [point.window_max.into(), number(point.mbps, 2), number(point.rtt_ms, 0)];
        place.into_iter().chain(kept).collect()
    };
    Some(
        Section {
            columns: columns.collect(),
            rows: points.iter().map(row).collect(),
            ..Section::of("ncl", "ncl-fig-9a-grid")
        }
        .told("flat", FLAT),
    )
}

/// Fig. 9c for other lengths of the rest of the path.
pub(super) fn rests(cells: &[CellResult]) -> Option<Section> {
    let of: Vec<&CellResult> = cells.iter().filter(|cell| cell.figure == Figure::Rest).collect();
    let schemes = distinct(of.iter().map(|cell| cell.scheme));
    let rests = distinct(of.iter().filter_map(|cell| cell.rtt_ms));
    if of.is_empty() {
        return None;
    }
    let row = |rest: &f64| -> Vec<Value> {
        let mean = |scheme: &&'static str| {
            let of = of.iter().filter(|cell| cell.scheme == *scheme && cell.rtt_ms == Some(*rest));
            let all: Vec<f64> = of.map(|cell| cell.goodput_mbps).collect();
            number(all.iter().sum::<f64>() / all.len() as f64, 3)
        };
        std::iter::once(number(*rest, 0)).chain(schemes.iter().map(mean)).collect()
    };
    Some(Section {
        columns: std::iter::once("rest, ms").chain(schemes.iter().copied()).collect(),
        rows: rests.iter().map(row).collect(),
        ..Section::of("ncl", "ncl-fig-9c-rest")
    })
}
