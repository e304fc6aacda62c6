//! Builds the result from the measurements of hosts, links and gateway.

use std::collections::BTreeMap;

use paceline_lab::Reports;
use paceline_lab::emulator::{DirectionReport, EmulatorReport, Series};
use paceline_lab::endpoint::{TrafficReport, TransferReport, UdpReport};
use paceline_path::{LinkConfig, Oracle, OraclePath};
use paceline_wire::{Duration, Instant, Rate};
use serde_json::Value;

use super::fairness;
use super::hosts::{Plan, Planned, SAMPLE_INTERVAL};
use super::settling;
use super::traces::{Traces, TransferTrace};
use crate::percentiles::Percentiles;
use crate::result::{Change, EventResult, FlowResult, GatewayResult, LinkResult, OracleResult, Run};
use crate::scenario::{Direction, Protocol, Scenario};

/// All measurements of one run.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) start: Instant,
    pub(super) traffic: TrafficReport,
    pub(super) links: Reports,
    /// The statistics of each gateway process that ended in order.
    pub(super) gateway: Vec<Value>,
    /// The radio downlink as emulated.
    pub(super) downlink: LinkConfig,
}

pub(super) fn result(
    variant: &str,
    seed: u64,
    scenario: &Scenario,
    plan: &Plan,
    measured: &Measured,
    traces: &Traces,
) -> Run {
    let planned = plan.planned.iter().zip(&traces.transfers);
    let flows: Vec<FlowResult> = planned
        .map(|(planned, trace)| flow(planned, scenario, measured, trace))
        .filter(|result| !ran_alone(result, scenario))
        .collect();
    let run = Run {
        variant: variant.into(),
        seed,
        duration_s: round(measured.links.last.duration.as_secs_f64()),
        links: measured
            .links
            .at_end
            .directions
            .iter()
            .map(|d| (d.name.clone(), link_result(d, measured.links.at_end.duration)))
            .collect(),
        gateway: gateway(scenario, measured),
        path_delay_ms: measured
            .links
            .at_end
            .path_delay
            .as_ref()
            .map(|p| Percentiles::of(&p.delays))
            .unwrap_or_default(),
        flows,
        ..Run::default()
    };
    judged(run, scenario, &measured.downlink, traces)
}

/// Adds results that follow from the time series, and the ideal sender's results.
pub(super) fn judged(run: Run, scenario: &Scenario, downlink: &LinkConfig, traces: &Traces) -> Run {
    let changes = settling::changes(scenario, downlink, traces);
    let slowest = |of: &dyn Fn(&Change) -> Option<f64>| changes.iter().filter_map(of).reduce(f64::max);
    Run {
        rate_settled_s: slowest(&|change| change.rate_settled_s),
        delay_settled_s: slowest(&|change| change.delay_settled_s),
        oracle: oracle(scenario, downlink),
        fairness: fairness::between(scenario, traces),
        changes,
        ..run
    }
}

/// The results of an ideal flow with full-sized packets over the whole duration; `None` if the link has no limit.
fn oracle(scenario: &Scenario, downlink: &LinkConfig) -> Option<OracleResult> {
    let rtt = scenario.wired.rtt.to_wire() + scenario.radio.rtt.to_wire();
    let path = OraclePath { rtt, packet_bytes: MTU, from: Duration::ZERO, to: scenario.duration.to_wire() };
    let oracle = Oracle::new(&downlink.rate, &path)?;
    let payload = MTU - 40 - if scenario.client.timestamps { 12 } else { 0 };
    Some(OracleResult {
        goodput_mbps: round(oracle.throughput.as_mbps() * payload as f64 / MTU as f64),
        path_delay_p95_ms: round(oracle.queue_delay_p95.as_secs_f64() * 1e3),
    })
}

fn flow(planned: &Planned, scenario: &Scenario, measured: &Measured, trace: &TransferTrace) -> FlowResult {
    let spec = &scenario.flows[planned.flow];
    let common = FlowResult {
        name: spec.name.clone(),
        index: planned.index,
        protocol: spec.protocol,
        direction: spec.direction,
        ip: spec.ip,
        ..FlowResult::default()
    };
    match spec.protocol {
        Protocol::Tcp => {
            let transfer = &measured.traffic.transfers[planned.place];
            tcp_flow(common, planned, transfer, scenario, measured, trace.delivered.as_ref())
        }
        Protocol::Ping => common,
        Protocol::Udp => udp_flow(common, &measured.traffic.streams[planned.place], spec.start.seconds()),
    }
}

/// True if a transfer began only after the flows without size had ended. This happens if a sequence takes longer than
/// the run. Such a transfer says nothing about the scenario.
pub(super) fn ran_alone(result: &FlowResult, scenario: &Scenario) -> bool {
    result.start_s >= scenario.duration.seconds() && scenario.flows.iter().any(|flow| flow.size.is_none())
}

fn tcp_flow(
    common: FlowResult,
    planned: &Planned,
    transfer: &TransferReport,
    scenario: &Scenario,
    measured: &Measured,
    delivered: Option<&Series>,
) -> FlowResult {
    let since_start = |at: Instant| round(at.saturating_since(measured.start).as_secs_f64());
    let down = common.direction == Direction::Down;
    let end = scenario.duration.to_wire();
    let gap = delivered.map_or(0.0, |series| longest_gap_s(series, down, &measured.links.at_end, end));
    let open_ended = scenario.flows[planned.flow].size.is_none();
    let goodput = if open_ended { goodput_until(end, transfer, measured.start) } else { transfer.goodput() };
    FlowResult {
        start_s: transfer.began.map_or(0.0, since_start),
        bytes: transfer.received_bytes,
        goodput_mbps: round(goodput.as_mbps()),
        completion_s: transfer.completion().map(|time| round(time.as_secs_f64())),
        retransmitted_segments: transfer.retransmitted_segments,
        timeouts: transfer.timeouts,
        tail_loss_probes: transfer.tail_loss_probes.unwrap_or_else(|| shared_probes(planned, measured)),
        rtt_ms: Percentiles::of(&transfer.rtt),
        completed: transfer.completed,
        sha256_ok: transfer.sha256_ok.unwrap_or(false),
        longest_gap_s: gap,
        resumed_s: delivered.filter(|_| down).and_then(|series| settling::resumed_s(scenario, series)),
        error: transfer.failure.clone(),
        ..common
    }
}

/// Goodput of the bytes that the application had read at `end`. Bytes still in queues and buffers do not count, because
/// they would favour the flow that fills them most.
fn goodput_until(end: Duration, transfer: &TransferReport, start: Instant) -> Rate {
    let bins = (end.as_nanos() / SAMPLE_INTERVAL.as_nanos()) as usize;
    let received = transfer.received_bins.iter().take(bins).sum();
    let began = transfer.began.map_or(Duration::ZERO, |began| began.saturating_since(start));
    Rate::from_bytes_in(received, end.saturating_sub(began))
}

/// Returns the probes of a transfer whose own count is unknown, because the kernel counts probes per namespace. The
/// first of these transfers gets all of them, so that the sum is right.
fn shared_probes(planned: &Planned, measured: &Measured) -> u64 {
    let ambiguous = measured.traffic.transfers.iter().position(|t| t.tail_loss_probes.is_none());
    if ambiguous != Some(planned.place) {
        return 0;
    }
    let samples = &measured.traffic.server_mib;
    let all = match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.counters.since(&first.counters).tail_loss_probes,
        _ => 0,
    };
    let told: u64 = measured.traffic.transfers.iter().filter_map(|t| t.tail_loss_probes).sum();
    all.saturating_sub(told)
}

fn udp_flow(common: FlowResult, stream: &UdpReport, start_s: f64) -> FlowResult {
    FlowResult {
        start_s,
        bytes: stream.received_ip_bytes,
        goodput_mbps: round(stream.throughput.as_mbps()),
        completed: stream.failure.is_none(),
        sha256_ok: true,
        error: stream.failure.clone(),
        ..common
    }
}

/// The result of one link direction, observed for `duration`.
pub(crate) fn link_result(direction: &DirectionReport, duration: Duration) -> LinkResult {
    let seconds = duration.as_secs_f64().max(1e-9);
    let causes = [
        ("queue", direction.dropped_by_queue),
        ("loss", direction.dropped_by_loss),
        ("outage", direction.dropped_by_outage),
    ];
    let others = [("aqm", direction.dropped_by_aqm), ("policer", direction.dropped_by_policer)];
    LinkResult {
        utilization: direction.utilization().map(round),
        capacity_mbps: direction.capacity_bytes.map(|bytes| round(bytes as f64 * 8e-6 / seconds)),
        queue_delay_ms: Percentiles::of(&direction.queue_delay),
        drops: direction.drops(),
        drops_by_cause: causes
            .into_iter()
            .chain(others.into_iter().filter(|(_, count)| *count > 0))
            .map(|(cause, count)| (cause.to_string(), count))
            .collect::<BTreeMap<_, _>>(),
        marks: direction.marked,
        delivered_packets: direction.delivered_packets,
        delivered_bytes: direction.delivered_bytes,
    }
}

/// Counters summed over all processes, and the sojourn times of the last one.
fn gateway(scenario: &Scenario, measured: &Measured) -> GatewayResult {
    let mut result = GatewayResult::default();
    for stats in &measured.gateway {
        if let Some(sojourn) = stats.get("sojourn_ms") {
            result.sojourn_ms = serde_json::from_value(sojourn.clone()).ok();
        }
        for (name, value) in stats["counters"].as_object().into_iter().flatten() {
            let sum =
                result.counters.get(name).and_then(Value::as_u64).unwrap_or(0) + value.as_u64().unwrap_or(0);
            result.counters.insert(name.clone(), sum.into());
        }
    }
    if scenario.gateway.profile != crate::profile::Profile::Off {
        result.events = events(scenario, measured);
    }
    result
}

/// For each event: the longest silence of all TCP flows together, from the event to the next event.
fn events(scenario: &Scenario, measured: &Measured) -> Vec<EventResult> {
    let mut total: Vec<u64> = Vec::new();
    for flow in &measured.links.last.flows {
        add(&mut total, &flow.series);
    }
    let bin = |at: Duration| (at.as_nanos() / Series::BIN.as_nanos()) as usize;
    let events = &scenario.gateway.events;
    let gap_after = |index: usize| {
        let from = bin(events[index].at.to_wire()).min(total.len());
        let until = events.get(index + 1).map_or(total.len(), |next| bin(next.at.to_wire()).min(total.len()));
        longest_run(&total[from..until.max(from)], |bytes| bytes == 0)
    };
    let result = |index: usize| EventResult {
        at_s: events[index].at.seconds(),
        action: events[index].action,
        gap_s: (!total.is_empty()).then(|| round(gap_after(index) as f64 * Series::BIN.as_secs_f64())),
    };
    (0..events.len()).map(result).collect()
}

/// The longest time before `end` in which less than a tenth of the link's capacity arrived. On a link without limit,
/// the longest silence.
fn longest_gap_s(series: &Series, down: bool, report: &EmulatorReport, end: Duration) -> f64 {
    let name = if down { "radio_down" } else { "radio_up" };
    let capacity = report.directions.iter().find(|d| d.name == name).and_then(|d| d.capacity_bytes);
    let share = GAP_WINDOW.as_secs_f64() / report.duration.as_secs_f64().max(1e-9);
    let little = capacity.map_or(0, |bytes| (bytes as f64 * share * 0.1) as u64);
    let per_window = (GAP_WINDOW.as_nanos() / Series::BIN.as_nanos()) as usize;
    let last = (end.as_nanos() / Series::BIN.as_nanos()) as usize;
    let within = last.saturating_sub(series.first()).min(series.values().len());
    let windows: Vec<u64> = series.values()[..within]
        .chunks_exact(per_window)
        .map(|bins| bins.iter().map(|bytes| u64::from(*bytes)).sum())
        .collect();
    round(longest_run(&windows, |bytes| bytes <= little) as f64 * GAP_WINDOW.as_secs_f64())
}

pub(super) fn add(total: &mut Vec<u64>, series: &Series) {
    let length = series.first() + series.values().len();
    if total.len() < length {
        total.resize(length, 0);
    }
    for (sum, bytes) in total[series.first()..].iter_mut().zip(series.values()) {
        *sum += u64::from(*bytes);
    }
}

fn longest_run(values: &[u64], counts: impl Fn(u64) -> bool) -> usize {
    let (mut longest, mut run) = (0, 0);
    for value in values {
        run = if counts(*value) { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Rounds to microseconds or bits per second, which is more precise than any of these numbers.
pub(super) fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Our choice: two round trips of the scenarios. A window-limited flow's bursts, one each round trip, then count as one
/// stream.
const GAP_WINDOW: Duration = Duration::from_millis(200);
/// IP bytes of a full-sized packet in the lab.
const MTU: u64 = 1500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_silence_is_found() {
        assert_eq!(longest_run(&[0, 5, 0, 0, 0, 7, 0], |bytes| bytes == 0), 3);
        assert_eq!(longest_run(&[], |_| true), 0);
    }
}
