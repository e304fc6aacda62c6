//! Over which windows, rates and round trips Figs. 9a and 9c are as the text tells.

use serde_json::Value;

use super::cells::{CellResult, Figure};
use crate::reproduce::report::{Section, number};

/// A window, a rate and a round trip.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) window_max: Option<u32>,
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
            // What the window lets through of the link, or nearly all of it.
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

    /// The best of those that the paper says collapse.
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
    Some(Section {
        name: "ncl-fig-9a-grid",
        title: "Fig. 9a over windows, rates and round trips: what 15 % of errors leave".into(),
        text: format!(
            "Goodput at 15 % over 0.85 of that without errors: 1 is a flat curve, {FLAT} and more counts as one. The window has at most so \
             many packets (20: ns-2's default). The wireless hop has a queue of 50 packets and loses data, not ACKs. At 15 % one \
             retransmission in seven is lost: an answer to congestion and a timeout for every 44 packets. The answers alone keep a \
             window near sqrt(1.5) / 0.15 = 8 packets. One packet of 44 waits for a timeout, of ten packets' time and more. That takes \
             a fifth of the goodput. A sender that answers every loss has a window of 3. So the text's sender is flat only where \
             the timeout or the path holds few packets, and there every sender keeps more than half. The tau_CD of ncl-adaptive \
             does not take a packet's time in the queue for congestion, and it has a second RD timer. It is flat on some paths of three \
             to four packets, where the others are below half."
        ),
        columns: columns.collect(),
        rows: points.iter().map(row).collect(),
        files: Vec::new(),
    })
}

/// Fig. 9c over the rest of the path.
pub(super) fn rests(cells: &[CellResult]) -> Option<Section> {
    let of: Vec<&CellResult> = cells.iter().filter(|cell| cell.figure == Figure::Rest).collect();
    let mut schemes: Vec<&'static str> = Vec::new();
    let mut rests: Vec<f64> = Vec::new();
    for cell in &of {
        if !schemes.contains(&cell.scheme) {
            schemes.push(cell.scheme);
        }
        if let Some(rest) = cell.rtt_ms.filter(|rest| !rests.contains(rest)) {
            rests.push(rest);
        }
    }
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
        name: "ncl-fig-9c-rest",
        title: "Fig. 9c where the rest of the path is shorter".into(),
        text: "Goodput in Mbit/s is the mean over longest delays of 100, 300, 500 and 700 ms. Rows are the RTT of the rest of the path. An RTT that \
               grows at once by more than beta times tau_CD beyond tau_RD is never learnt (Section IV-A says so). From then on every \
               packet is sent twice, and every window is answered with half of it. That lasts until the delay falls again. The shorter the rest \
               of the path, the more jumps are too large for it."
            .into(),
        columns: std::iter::once("rest, ms").chain(schemes.iter().copied()).collect(),
        rows: rests.iter().map(row).collect(),
        files: Vec::new(),
    })
}
