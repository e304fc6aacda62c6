//! Over which rates and round trips Fig. 9a is as the text tells.

use serde_json::Value;

use super::cells::{CellResult, Figure};
use crate::reproduce::report::{Section, number};

/// A shortest timeout, a rate and a round trip.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) rto_min_ms: u64,
    pub(super) mbps: f64,
    pub(super) rtt_ms: f64,
    /// What each sender keeps at 15 %: its share of what errors leave, over that without errors, or over nearly all of the link where that is more.
    pub(super) kept: Vec<(&'static str, f64)>,
}

/// Of its value without errors: where a curve counts as flat.
pub(super) const FLAT: f64 = 0.85;
const ERROR_PERCENT: f64 = 15.0;
/// Our choice: a sender that cannot fill the link without errors is set beside one that nearly does, or its curve would seem flat.
const FULL: f64 = 0.95;

impl Point {
    pub(super) fn of(cells: &[CellResult]) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        let grid: Vec<&CellResult> = cells.iter().filter(|cell| cell.figure == Figure::Grid).collect();
        for cell in grid.iter().filter(|cell| cell.x == ERROR_PERCENT) {
            let Some(rtt_ms) = cell.rtt_ms else { continue };
            let without = grid
                .iter()
                .find(|other| other.x == 0.0 && (other.scheme, place(other)) == (cell.scheme, place(cell)));
            let kept =
                (cell.scheme, without.map_or(f64::NAN, |without| cell.share / without.share.max(FULL)));
            let (rto_min_ms, mbps, _) = place(cell);
            let here = |point: &&mut Point| {
                (point.rto_min_ms, point.mbps, point.rtt_ms) == (rto_min_ms, mbps, rtt_ms)
            };
            match points.iter_mut().find(here) {
                Some(point) => point.kept.push(kept),
                None => points.push(Point { rto_min_ms, mbps, rtt_ms, kept: vec![kept] }),
            }
        }
        points
    }

    pub(super) fn kept_by(&self, scheme: &str) -> f64 {
        self.kept.iter().find(|(name, _)| *name == scheme).map_or(f64::NAN, |(_, kept)| *kept)
    }

    /// The best of those that the paper says collapse.
    pub(super) fn best_comparator(&self) -> (&'static str, f64) {
        let others = self.kept.iter().filter(|(name, _)| !name.starts_with("ncl") && *name != "westwood");
        others.copied().fold(("none", f64::NAN), |best, one| if best.1 >= one.1 { best } else { one })
    }
}

fn place(cell: &CellResult) -> (u64, f64, Option<f64>) {
    (cell.rto_min_ms, cell.mbps, cell.rtt_ms)
}

pub(super) fn section(cells: &[CellResult]) -> Option<Section> {
    let points = Point::of(cells);
    let first = points.first()?;
    let columns = ["least RTO, ms", "rate, Mbit/s", "RTT, ms"]
        .into_iter()
        .chain(first.kept.iter().map(|(name, _)| *name));
    let row = |point: &Point| -> Vec<Value> {
        let kept = point.kept.iter().map(|(_, kept)| number(*kept, 3));
        let place = [number(point.rto_min_ms as f64, 0), number(point.mbps, 2), number(point.rtt_ms, 0)];
        place.into_iter().chain(kept).collect()
    };
    Some(Section {
        name: "ncl-fig-9a-grid",
        title: "Fig. 9a over rates and round trips: what 15 % of errors leave".into(),
        text: format!(
            "Goodput at 15 % over 0.85 of that without errors: 1 is a flat curve, {FLAT} and more counts as one. The wireless hop is the \
             bottleneck, has a queue of 50 packets and loses data, not ACKs. One packet in 1/p^2 is lost twice and waits for a \
             timeout, so a curve can be flat only where few packets fit into the time of one; with a second RD it is one in 1/p^3. A \
             retransmission that meets a single packet in the queue comes back later than tau_CD, the shortest RTT, so a window \
             that fills the link is answered as congested; that is why longer round trips are worse."
        ),
        columns: columns.collect(),
        rows: points.iter().map(row).collect(),
        files: Vec::new(),
    })
}
