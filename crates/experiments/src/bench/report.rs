//! Medians over the runs, ratios of consecutive runs, and their tables.

use paceline_judge::distinct;
use serde::Serialize;
use serde_json::{Map, Value};

use super::forwarder::Kind;
use crate::output::say;
use crate::percentiles::Percentiles;
use crate::scenario::Statistic;
use crate::table::{Column, table_of};

/// One run of one kind of forwarding with one number of flows. As in every result, `variant` and `seed` name the run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Run {
    pub(super) variant: String,
    pub(super) seed: u64,
    pub(super) duration_s: f64,
    #[serde(skip)]
    pub(super) kind: Kind,
    #[serde(skip)]
    pub(super) flow_count: u32,
    /// The sum over all flows.
    pub(super) goodput_mbps: f64,
    /// Flows that received nothing during the measurement.
    pub(super) starved_flows: u64,
    pub(super) retransmitted_segments: u64,
    /// Packets in both directions. A super-packet counts as one.
    pub(super) packets: u64,
    /// Mean length of the packets from the server on arrival, and of those that left for the client.
    pub(super) packet_bytes_in: Option<f64>,
    pub(super) packet_bytes_out: Option<f64>,
    /// Processor time of the forwarding process.
    pub(super) cpu_us_per_packet: Option<f64>,
    pub(super) cpu_user_us_per_packet: Option<f64>,
    /// Processor time for 10^9 bits of payload. This is also the number of busy processors at 1 Gbit/s.
    pub(super) cpu_s_per_gbit: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) gateway: Gateway,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Gateway {
    pub(super) counters: Map<String, Value>,
}

/// The round trips of one byte in one run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Idle {
    pub(super) forwarding: Kind,
    pub(super) seed: u64,
    pub(super) round_trip_ms: Percentiles,
}

/// All measurements.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) schema: u32,
    pub(super) program: String,
    pub(super) scenario: &'static str,
    pub(super) on: &'static str,
    pub(super) machine: Machine,
    pub(super) summary: Vec<Row>,
    pub(super) latency: Vec<LatencyRow>,
    pub(super) memory_per_flow_bytes: Spread,
    pub(super) runs: Vec<Run>,
    pub(super) idle: Vec<Idle>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    pub(super) processors: usize,
    pub(super) kernel: String,
    pub(super) mtu_bytes: u32,
    pub(super) wire_size_packets: bool,
    pub(super) client_addresses: u8,
    /// The sum over all flows; null if the flows take all that passes.
    pub(super) offered_mbps: Option<f64>,
}

/// Median, least and greatest value; null where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) median: Option<f64>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

/// All runs of one kind with one number of flows.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) forwarding: Kind,
    pub(super) flows: u32,
    pub(super) goodput_mbps: Spread,
    pub(super) starved_flows: Spread,
    /// Ratio of the throughputs, run by run.
    pub(super) ratio_to_null: Spread,
    pub(super) ratio_to_kernel: Spread,
    pub(super) cpu_us_per_packet: Spread,
    pub(super) cpu_user_us_per_packet: Spread,
    pub(super) cpu_s_per_gbit: Spread,
    pub(super) packet_bytes_in: Spread,
    pub(super) packet_bytes_out: Spread,
    pub(super) resident_mb: Spread,
    pub(super) retransmitted_segments: Spread,
}

/// Medians over the runs.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct LatencyRow {
    pub(super) forwarding: Kind,
    pub(super) round_trip_p50_us: Spread,
    pub(super) round_trip_p99_us: Spread,
    /// The difference to kernel forwarding, run by run.
    pub(super) added_p50_us: Spread,
}

impl Spread {
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let values: Vec<f64> = values.into_iter().collect();
        let statistic = |kind| crate::result::statistic(kind, &values);
        Spread {
            median: statistic(Statistic::Median),
            min: statistic(Statistic::Smallest),
            max: statistic(Statistic::Largest),
        }
    }
}

pub(super) fn summarize(runs: &[Run]) -> Vec<Row> {
    let mut cells = distinct(runs.iter().map(|run| (run.kind, run.flow_count)));
    cells.sort_by_key(|&(_, flows)| flows);
    cells.into_iter().map(|(kind, flows)| row(runs, kind, flows)).collect()
}

fn row(runs: &[Run], kind: Kind, flows: u32) -> Row {
    let own = || runs.iter().filter(move |run| run.kind == kind && run.flow_count == flows);
    let ratio = |base: Kind| {
        let of = move |run: &Run| {
            let base = runs.iter().find(|b| b.kind == base && b.flow_count == flows && b.seed == run.seed)?;
            Some(run.goodput_mbps / base.goodput_mbps)
        };
        Spread::of(own().filter_map(of))
    };
    let spread = |value: fn(&Run) -> Option<f64>| Spread::of(own().filter_map(value));
    Row {
        forwarding: kind,
        flows,
        goodput_mbps: spread(|run| Some(run.goodput_mbps)),
        starved_flows: spread(|run| Some(run.starved_flows as f64)),
        ratio_to_null: ratio(Kind::Null),
        ratio_to_kernel: ratio(Kind::Kernel),
        cpu_us_per_packet: spread(|run| run.cpu_us_per_packet),
        cpu_user_us_per_packet: spread(|run| run.cpu_user_us_per_packet),
        cpu_s_per_gbit: spread(|run| run.cpu_s_per_gbit),
        packet_bytes_in: spread(|run| run.packet_bytes_in),
        packet_bytes_out: spread(|run| run.packet_bytes_out),
        resident_mb: spread(|run| run.resident_bytes.map(|bytes| bytes as f64 / 1e6)),
        retransmitted_segments: spread(|run| Some(run.retransmitted_segments as f64)),
    }
}

pub(super) fn latency(idle: &[Idle]) -> Vec<LatencyRow> {
    let of = |kind: Kind| idle.iter().filter(move |idle| idle.forwarding == kind);
    let us = |ms: Option<f64>| ms.map(|ms| ms * 1e3);
    let added = |own: &Idle| {
        let base = of(Kind::Kernel).find(|base| base.seed == own.seed)?;
        Some(us(own.round_trip_ms.p50)? - us(base.round_trip_ms.p50)?)
    };
    let row = |kind: Kind| LatencyRow {
        forwarding: kind,
        round_trip_p50_us: Spread::of(of(kind).filter_map(|idle| us(idle.round_trip_ms.p50))),
        round_trip_p99_us: Spread::of(of(kind).filter_map(|idle| us(idle.round_trip_ms.p99))),
        added_p50_us: Spread::of(of(kind).filter_map(added)),
    };
    Kind::ALL.map(row).to_vec()
}

/// The kinds that have a bound, the bound, and the least ratio to the null forwarder over all numbers of flows. Empty
/// if the servers' rate is limited, because ratios then say nothing.
pub(super) fn least_ratios(report: &Report) -> Vec<(Kind, f64, f64)> {
    if report.machine.offered_mbps.is_some() { Vec::new() } else { least_of(&report.summary) }
}

pub(super) fn least_of(rows: &[Row]) -> Vec<(Kind, f64, f64)> {
    let least = |kind: Kind| {
        let ratios = rows.iter().filter(|row| row.forwarding == kind);
        ratios.filter_map(|row| row.ratio_to_null.median).min_by(f64::total_cmp)
    };
    Kind::ALL.into_iter().filter_map(|kind| Some((kind, kind.bound()?, least(kind)?))).collect()
}

/// The most that a packet may cost with many flows, as a multiple of its cost with ten flows.
pub(super) const COST_BOUND: f64 = 1.3;

/// For each kind that has a bound: the worst number of flows above ten, with its cost per packet relative to ten flows.
pub(super) fn worst_costs(rows: &[Row]) -> Vec<(Kind, u32, f64)> {
    let cost = |row: &Row| row.cpu_us_per_packet.median;
    let worst = |kind: Kind| {
        let of = || rows.iter().filter(move |row| row.forwarding == kind);
        let ten = of().find(|row| row.flows == 10).and_then(cost)?;
        let ratios =
            of().filter(|row| row.flows > 10).filter_map(|row| Some((kind, row.flows, cost(row)? / ten)));
        ratios.max_by(|a, b| a.2.total_cmp(&b.2))
    };
    Kind::ALL.into_iter().filter(|kind| kind.bound().is_some()).filter_map(worst).collect()
}

pub(super) fn print(report: &Report) {
    say!("{}", table_of(1, &THROUGHPUT, &report.summary));
    say!("{}", table_of(1, &LATENCY, &report.latency));
    if let Some(bytes) = report.memory_per_flow_bytes.median {
        say!("Memory of the gateway per open flow: {:.1} kB.", bytes / 1e3);
    }
    for (kind, bound, ratio) in least_ratios(report) {
        let verdict = if ratio >= bound { "kept" } else { "missed" };
        say!(
            "Bound: {} passes at least {bound} of what the null forwarder does: {ratio:.2}, {verdict}.",
            kind.name()
        );
    }
    for (kind, flows, ratio) in worst_costs(&report.summary) {
        let verdict = if ratio <= COST_BOUND { "kept" } else { "missed" };
        say!(
            "Bound: {} takes at most {COST_BOUND} times the processor time of 10 flows for a packet: {ratio:.2} with {flows}, {verdict}.",
            kind.name()
        );
    }
}

const THROUGHPUT: [Column<Row>; 12] = [
    ("forwarding", |row| row.forwarding.name().to_string()),
    ("flows", |row| row.flows.to_string()),
    ("Gbit/s (least-most)", |row| gbit(row.goodput_mbps)),
    ("of null", |row| number(row.ratio_to_null.median, 2)),
    ("of kernel", |row| number(row.ratio_to_kernel.median, 2)),
    ("CPU us/packet", |row| number(row.cpu_us_per_packet.median, 2)),
    ("in program", |row| number(row.cpu_user_us_per_packet.median, 2)),
    ("CPU s/Gbit", |row| number(row.cpu_s_per_gbit.median, 3)),
    ("bytes/packet in", |row| number(row.packet_bytes_in.median, 0)),
    ("out", |row| number(row.packet_bytes_out.median, 0)),
    ("memory MB", |row| number(row.resident_mb.median, 1)),
    ("starved", |row| number(row.starved_flows.max, 0)),
];

const LATENCY: [Column<LatencyRow>; 4] = [
    ("forwarding", |row| row.forwarding.name().to_string()),
    ("idle round trip us p50", |row| number(row.round_trip_p50_us.median, 0)),
    ("p99", |row| number(row.round_trip_p99_us.median, 0)),
    ("added", |row| number(row.added_p50_us.median, 0)),
];

/// Formats median, least and greatest rate.
fn gbit(rate: Spread) -> String {
    let gbit = |mbps: Option<f64>| number(mbps.map(|mbps| mbps / 1e3), 2);
    format!("{} ({}-{})", gbit(rate.median), gbit(rate.min), gbit(rate.max))
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}
