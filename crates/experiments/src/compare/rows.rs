//! A row for each scheme, with means over its runs.

use paceline_judge::{Sample, distinct};
use serde::Serialize;

use super::schemes::DIMENSIONS;
use crate::percentiles::Percentiles;
use crate::result::{FlowResult, Run};
use crate::scenario::{Direction, Protocol};

/// The results of one scheme in one cell of the scenario.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// The scenario's own variant; empty if it has none.
    pub(super) cell: String,
    pub(super) sender: String,
    pub(super) receiver: String,
    pub(super) gateway: String,
    pub(super) runs: usize,
    /// The sum of all downloads, or of all uploads if there is no download.
    pub(super) throughput_mbps: f64,
    /// Half the width of Student's 95 % interval; null with one run.
    pub(super) throughput_ci95: Option<f64>,
    /// Delay per delivered packet in the last link's queue and the gateway together.
    pub(super) delay_ms: Percentiles,
    /// Share of the sent segments.
    pub(super) retransmitted_share: f64,
    pub(super) timeouts: f64,
    /// Jain's index over windows of a second; null with fewer than two bulk downloads.
    pub(super) jain: Option<f64>,
    /// The number of transfers that did not complete, over all runs.
    pub(super) failed: usize,
}

impl Row {
    pub(super) fn scheme(&self) -> String {
        format!("{}, {}, {}", self.sender, self.receiver, self.gateway)
    }
}

/// The rows, in the order of the runs.
pub(super) fn of(runs: &[Run]) -> Vec<Row> {
    let names = distinct(runs.iter().map(|run| run.variant.as_str()));
    let of_name = |name: &&str| runs.iter().filter(|run| run.variant == **name).collect::<Vec<&Run>>();
    names.iter().filter_map(|name| row(name, &of_name(name))).collect()
}

fn row(name: &str, runs: &[&Run]) -> Option<Row> {
    let parts: Vec<&str> = name.split(',').collect();
    let (cell, scheme) = parts.split_at(parts.len().checked_sub(DIMENSIONS)?);
    let [sender, receiver, gateway] = scheme else { return None };
    let mean = |of: &dyn Fn(&Run) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let throughput = runs.iter().map(|run| throughput(run)).collect::<Sample>().estimate();
    Some(Row {
        cell: cell.join(","),
        sender: sender.to_string(),
        receiver: receiver.to_string(),
        gateway: gateway.to_string(),
        runs: runs.len(),
        throughput_mbps: throughput.mean,
        throughput_ci95: Some(throughput.half_width).filter(|width| width.is_finite()),
        delay_ms: Percentiles {
            p50: mean(&|run| run.path_delay_ms.p50),
            p95: mean(&|run| run.path_delay_ms.p95),
            p99: mean(&|run| run.path_delay_ms.p99),
        },
        retransmitted_share: mean(&|run| Some(retransmitted_share(run))).unwrap_or(0.0),
        timeouts: mean(&|run| Some(run.flows.iter().map(|flow| flow.timeouts as f64).sum())).unwrap_or(0.0),
        jain: mean(&|run| run.fairness.as_ref().map(|fairness| fairness.jain_1s)),
        failed: runs.iter().flat_map(|run| &run.flows).filter(|flow| !flow.completed).count(),
    })
}

/// The goodput of all downloads together, or of all uploads if there is no download.
pub(crate) fn throughput(run: &Run) -> f64 {
    let of = |direction: Direction| -> f64 {
        let flows = run.flows.iter().filter(|flow| is_tcp(flow) && flow.direction == direction);
        flows.map(|flow| flow.goodput_mbps).sum()
    };
    let down = of(Direction::Down);
    if down > 0.0 { down } else { of(Direction::Up) }
}

fn retransmitted_share(run: &Run) -> f64 {
    let again: u64 = run.flows.iter().map(|flow| flow.retransmitted_segments).sum();
    let bytes: u64 = run.flows.iter().filter(|flow| is_tcp(flow)).map(|flow| flow.bytes).sum();
    again as f64 / (again as f64 + bytes as f64 / SEGMENT_BYTES).max(1.0)
}

fn is_tcp(flow: &FlowResult) -> bool {
    flow.protocol == Protocol::Tcp
}

/// Payload of a full-sized segment with timestamps.
const SEGMENT_BYTES: f64 = 1_448.0;

/// For each row: true if no other row is better in throughput or delay without being worse in the other.
pub(super) fn undominated(rows: &[&Row]) -> Vec<bool> {
    let delay = |row: &Row| row.delay_ms.p95.unwrap_or(f64::INFINITY);
    let better = |row: &Row, other: &Row| {
        let (rate, time) = (other.throughput_mbps - row.throughput_mbps, delay(row) - delay(other));
        rate >= 0.0 && time >= 0.0 && (rate > 0.0 || time > 0.0)
    };
    rows.iter().map(|row| !rows.iter().any(|other| better(row, other))).collect()
}

/// The row with the least delay among those with at least 95 % of the highest throughput.
pub(super) fn pick<'a>(rows: &[&'a Row]) -> Option<&'a Row> {
    let most = rows.iter().map(|row| row.throughput_mbps).fold(0.0, f64::max);
    let enough = rows.iter().copied().filter(|row| row.throughput_mbps >= 0.95 * most);
    enough.min_by(|a, b| {
        let [a, b] = [a, b].map(|row| row.delay_ms.p95.unwrap_or(f64::INFINITY));
        a.total_cmp(&b)
    })
}

#[cfg(test)]
pub(super) fn example(sender: &str, gateway: &str, mbps: f64, p95: f64) -> Row {
    Row {
        cell: String::new(),
        sender: sender.into(),
        receiver: "autotuned".into(),
        gateway: gateway.into(),
        runs: 1,
        throughput_mbps: mbps,
        throughput_ci95: None,
        delay_ms: Percentiles { p50: Some(p95 / 2.0), p95: Some(p95), p99: Some(p95 * 1.2) },
        retransmitted_share: 0.01,
        timeouts: 0.0,
        jain: None,
        failed: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worse_in_both_is_dominated_and_the_pick_has_little_delay() {
        let rows = [("cubic", 10.0, 900.0), ("bbr", 9.8, 80.0), ("vegas", 6.0, 20.0), ("reno", 9.7, 800.0)]
            .map(|(name, mbps, p95)| example(name, "none", mbps, p95));
        let rows: Vec<&Row> = rows.iter().collect();
        assert_eq!(undominated(&rows), [true, true, true, false]);
        assert_eq!(pick(&rows).map(|row| row.sender.as_str()), Some("bbr"));
    }

    #[test]
    fn rows_are_means_over_runs_and_know_their_cell() {
        let run = |goodput_mbps, p95| Run {
            variant: "rate=5mbit,cubic,autotuned,none".into(),
            flows: vec![FlowResult {
                goodput_mbps,
                bytes: 144_800,
                retransmitted_segments: 100,
                ..FlowResult::default()
            }],
            path_delay_ms: Percentiles { p50: None, p95: Some(p95), p99: None },
            ..Run::default()
        };
        let rows = of(&[run(4.0, 100.0), run(5.0, 200.0)]);
        let row = &rows[0];
        assert_eq!(
            (rows.len(), row.cell.as_str(), row.sender.as_str(), row.runs),
            (1, "rate=5mbit", "cubic", 2)
        );
        assert!((row.throughput_mbps - 4.5).abs() < 1e-9 && row.delay_ms.p95 == Some(150.0));
        assert!((row.retransmitted_share - 0.5).abs() < 1e-9 && row.delay_ms.p50.is_none());
    }
}
