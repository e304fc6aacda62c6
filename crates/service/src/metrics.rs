//! The gateway's metrics in the text format of OpenMetrics, as Prometheus reads it.

#[cfg(test)]
pub(super) mod tests;

use paceline_gateway::auto::Reason;
use std::fmt;
use std::fs;
use std::sync::Arc;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use paceline_linux::PortCounters;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::status::{Snapshot, Status};
use super::totals::{BOUNDS_S, Histogram};

/// Names and limits that the metrics show besides counters.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    /// The devices, in the order of their counters.
    pub(super) ports: Vec<String>,
    /// The interfaces whose own counters are shown.
    pub(super) interfaces: Vec<String>,
    pub(super) packet_memory_limit_bytes: usize,
}

/// All exported metrics.
#[derive(Debug)]
pub(super) struct Metrics(Registry);

impl Metrics {
    pub(super) fn new(status: Arc<Status>, labels: Labels) -> Metrics {
        let mut registry = Registry::default();
        let gateway = registry.sub_registry_with_prefix("paceline");
        gateway.register_collector(Box::new(GatewayMetrics { status, labels }));
        registry.register_collector(Box::new(ProcessMetrics));
        Metrics(registry)
    }

    /// Returns all metrics as text.
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let mut out = String::with_capacity(16 << 10);
        text::encode(&mut out, &self.0)?;
        Ok(out)
    }
}

#[derive(Debug)]
struct GatewayMetrics {
    status: Arc<Status>,
    labels: Labels,
}

impl Collector for GatewayMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Encoder(encoder);
        to.info("build", "The running program", &[("version", env!("CARGO_PKG_VERSION"))])?;
        let Some(now) = self.status.snapshot() else { return Ok(()) };
        flows(&mut to, &now)?;
        repairs(&mut to, &now)?;
        passed(&mut to, &now)?;
        other(&mut to, &now)?;
        times(&mut to, &now)?;
        memory(&mut to, &now, &self.labels)?;
        ports(&mut to, &now, &self.labels.ports)?;
        interfaces(&mut to, &self.labels.interfaces)
    }
}

fn flows(to: &mut Encoder<'_>, now: &Snapshot) -> fmt::Result {
    let (counters, totals) = (&now.counters, &now.totals);
    let in_place = i64::from(now.absence.is_none());
    to.gauge(
        "in_place",
        "1 while the gateway forwards, 0 while its interfaces are not as it needs them",
        None,
        in_place,
    )?;
    to.gauge("flows", "Flows in the table", None, now.flows as i64)?;
    to.gauge("split_flows", "Of those, split ones", None, now.split_flows as i64)?;
    to.gauge("subscribers", "Subscribers that have flows", None, now.subscribers as i64)?;
    to.counter(
        "flows_accelerated",
        "Flows seen from their SYN and accelerated",
        None,
        counters.flows_accelerated,
    )?;
    to.counter("flows_split", "Flows split into two connections", None, counters.flows_split)?;
    to.counter(
        "flows_split_refused",
        "Flows that were to be split, and that an end refused or gave up before",
        None,
        counters.split_refused,
    )?;
    to.counter(
        "flows_split_let_go",
        "Split flows of an earlier process that could not be taken over",
        None,
        counters.split_let_go,
    )?;
    to.counter("flows_rescaled", "Flows whose windows are rescaled", None, counters.flows_rescaled)?;
    to.counter(
        "half_open_dropped",
        "Half-open flows forgotten to make room for others",
        None,
        counters.half_open_dropped,
    )?;
    to.counter("flows_resumed", "Flows taken up after a restart", None, counters.flows_resumed)?;
    let ended = [
        ([("reason", "finished")], totals.finished),
        ([("reason", "reset")], totals.reset),
        ([("reason", "idle")], totals.idle),
        ([("reason", "replaced")], totals.replaced),
    ];
    to.counters("flows_ended", "Flows that are over", None, &ended)?;
    let reloads = [([("result", "done")], now.reloads.done), ([("result", "refused")], now.reloads.refused)];
    to.counters("config_reloads", "Times that the configuration was read again", None, &reloads)
}

fn repairs(to: &mut Encoder<'_>, now: &Snapshot) -> fmt::Result {
    let (counters, totals) = (&now.counters, &now.totals);
    let server = counters.server_retransmissions_absorbed + counters.server_retransmissions_passed;
    let here = counters.local_retransmissions + totals.split_retransmissions;
    let by = [([("by", "gateway")], here), ([("by", "server")], server)];
    to.counters("retransmissions", "Packets with data sent again", None, &by)?;
    to.counter(
        "server_retransmissions_absorbed",
        "Packets that the server sent again and that did not go to the client",
        None,
        counters.server_retransmissions_absorbed,
    )?;
    to.counter(
        "proactive_retransmissions",
        "Packets sent again because the client must have discarded them",
        None,
        counters.proactive_retransmissions,
    )?;
    let bytes = Some(Unit::Bytes);
    to.counter(
        "downlink_payload",
        "Payload that clients acknowledged (of split flows: that was sent), each byte once",
        bytes.clone(),
        totals.downlink_bytes,
    )?;
    to.counter(
        "retransmitted_payload",
        "Payload that the gateway sent again",
        bytes.clone(),
        totals.retransmitted_bytes,
    )?;
    to.counter("lost_payload", "Payload found lost on the radio link", bytes, totals.lost_bytes)?;
    to.counter("timeouts", "Timeouts of the gateway's own timers", None, counters.local_timeouts)?;
    to.counter("tail_probes", "Probes for a lost tail", None, counters.tail_probes)?;
    to.counter("window_probes", "Probes of a closed window", None, counters.window_probes)?;
    to.counter(
        "duplicate_acks_withheld",
        "Duplicate ACKs that did not go to the server",
        None,
        counters.duplicate_acks_withheld,
    )?;
    to.counter(
        "sack_blocks_removed",
        "SACK blocks that did not go to the server",
        None,
        counters.sack_blocks_removed,
    )?;
    to.counter(
        "differing_copies",
        "Packets of servers whose bytes differ from those sent before in their place",
        None,
        counters.differing_copies,
    )?;
    to.counter(
        "stale_promises_dropped",
        "Packets of servers dropped because too much waited and the window could not say so",
        None,
        counters.stale_promises_dropped,
    )?;
    to.counter(
        "stale_promises_marked",
        "Packets of servers marked by ECN for that",
        None,
        counters.stale_promises_marked,
    )?;
    to.counter("clients_reneged", "Clients that dropped data they had reported", None, counters.reneged)
}

fn passed(to: &mut Encoder<'_>, now: &Snapshot) -> fmt::Result {
    let counters = &now.counters;
    let reasons = [
        ([("reason", "not-tcp")], counters.passed_not_tcp),
        ([("reason", "mid-flow")], counters.passed_mid_flow),
        ([("reason", "table-full")], counters.passed_table_full),
        ([("reason", "authenticated")], counters.passed_authenticated),
        ([("reason", "mptcp")], counters.passed_mptcp),
        ([("reason", "no-option-room")], counters.passed_no_option_room),
        ([("reason", "rule")], counters.passed_rule),
        ([("reason", "bad-checksum")], counters.passed_bad_checksum),
        ([("reason", "buffer-full")], counters.passed_buffer_full),
        ([("reason", "gave-up")], counters.passed_gave_up),
        ([("reason", "unacceptable")], counters.passed_unacceptable),
        ([("reason", "too-many-flows")], counters.passed_too_many_flows),
    ];
    to.counters("passed", "Packets or flows that passed unedited, by reason", None, &reasons)?;
    let decisions = Reason::ALL.map(|reason| ([("reason", reason.as_str())], counters.decisions(reason)));
    to.counters("auto_decisions", "Decisions of the mode `auto`, by reason", None, &decisions)
}

fn other(to: &mut Encoder<'_>, now: &Snapshot) -> fmt::Result {
    let counters = &now.counters;
    let down = [("direction", "downlink")];
    let up = [("direction", "uplink")];
    let packets = [(down, counters.other_downlink_packets), (up, counters.other_uplink_packets)];
    to.counters("other_packets", "Packets other than TCP that came to the gateway", None, &packets)?;
    let bytes = [(down, counters.other_downlink_bytes), (up, counters.other_uplink_bytes)];
    to.counters("other", "Their bytes", Some(Unit::Bytes), &bytes)?;
    to.counter(
        "quic",
        "Of these, bytes of UDP to and from port 443",
        Some(Unit::Bytes),
        counters.quic_bytes,
    )?;
    to.counter("other_queued_packets", "Packets other than TCP that waited", None, counters.other_queued)?;
    let dropped = counters.other_dropped;
    to.counter("other_dropped_packets", "Packets other than TCP beyond their share, dropped", None, dropped)
}

fn times(to: &mut Encoder<'_>, now: &Snapshot) -> fmt::Result {
    let totals = &now.totals;
    to.histogram("radio_rtt", "Round trips between gateway and client", &totals.radio_rtt)?;
    to.histogram(
        "radio_queueing",
        "Round trips between gateway and client, less the shortest of late",
        &totals.radio_queueing,
    )?;
    to.histogram("gateway_queueing", "Time that new data spent in the gateway", &totals.gateway_queueing)?;
    to.histogram(
        "server_rtt",
        "Round trip between gateway and server, of each flow at its end",
        &totals.server_rtt,
    )
}

fn memory(to: &mut Encoder<'_>, now: &Snapshot, labels: &Labels) -> fmt::Result {
    let bytes = Some(Unit::Bytes);
    to.gauge("buffered", "Payload kept for flows", bytes.clone(), now.buffered_bytes as i64)?;
    to.gauge("packet_memory", "Packet memory in use", bytes.clone(), now.packet_memory_bytes as i64)?;
    let limit = labels.packet_memory_limit_bytes as i64;
    to.gauge("packet_memory_limit", "Packet memory that may be used", bytes, limit)?;
    let lowered = now.counters.path_mtus_lowered;
    to.counter("path_mtus_lowered", "Flows whose kept packets leave as smaller ones", None, lowered)?;
    let split = [
        ([("reason", "no-memory")], now.counters.split_drops_no_memory),
        ([("reason", "bad-checksum")], now.counters.split_bad_checksums),
    ];
    to.counters("split_dropped_packets", "Packets of split flows dropped", None, &split)?;
    to.gauge("uptime", "Time since the start", Some(Unit::Seconds), {
        now.taken.saturating_since(now.started).as_millis() as i64 / 1000
    })
}

fn ports(to: &mut Encoder<'_>, now: &Snapshot, names: &[String]) -> fmt::Result {
    let each = |value: fn(&PortCounters) -> u64| -> Vec<([(&str, &str); 1], u64)> {
        names
            .iter()
            .zip(&now.ports)
            .map(|(name, counters)| ([("port", name.as_str())], value(counters)))
            .collect()
    };
    let bytes = Some(Unit::Bytes);
    to.counters("received_packets", "Packets read", None, &each(|c| c.received_packets))?;
    to.counters("received", "IP bytes read", bytes.clone(), &each(|c| c.received_ip_bytes))?;
    to.counters("sent_packets", "Packets written", None, &each(|c| c.out.sent_packets))?;
    to.counters("sent", "IP bytes written", bytes, &each(|c| c.out.sent_ip_bytes))?;
    to.counters("receive_errors", "Errors of reading that passed", None, &each(|c| c.receive_errors))?;
    let mut drops = Vec::new();
    for (name, c) in names.iter().zip(&now.ports) {
        for (reason, value) in [
            ("kernel", c.kernel_drops),
            ("no-memory", c.pool_exhausted),
            ("malformed", c.malformed),
            ("too-long", c.too_long),
            ("stale", c.stale),
            ("outbox-full", c.out.dropped_full),
            ("refused", c.out.dropped_refused),
        ] {
            drops.push(([("port", name.as_str()), ("reason", reason)], value));
        }
    }
    to.counters("dropped_packets", "Packets dropped, by reason", None, &drops)
}

/// Exports the bytes on the interfaces, whether they pass the gateway or bypass it.
fn interfaces(to: &mut Encoder<'_>, names: &[String]) -> fmt::Result {
    // Unlike /sys, this is of the thread's own network namespace.
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let (mut received, mut sent) = (Vec::new(), Vec::new());
    for name in names {
        if let Some((rx, tx)) = interface_bytes(&table, name) {
            received.push(([("interface", name.as_str())], rx));
            sent.push(([("interface", name.as_str())], tx));
        }
    }
    let bytes = Some(Unit::Bytes);
    to.counters(
        "interface_received",
        "Bytes that came by an interface, past the gateway too",
        bytes.clone(),
        &received,
    )?;
    to.counters("interface_sent", "Bytes that left by an interface, past the gateway too", bytes, &sent)
}

fn interface_bytes(table: &str, name: &str) -> Option<(u64, u64)> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    Some((*numbers.first()?, *numbers.get(8)?))
}

/// Metrics of the process, with the names that Prometheus' own clients use.
#[derive(Debug)]
struct ProcessMetrics;

impl Collector for ProcessMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Encoder(encoder);
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            let cpu = ConstCounter::new(us as f64 / 1e6);
            let unit = Unit::Seconds;
            let metric = to.0.encode_descriptor(
                "process_cpu",
                "Processor time used",
                Some(&unit),
                MetricType::Counter,
            )?;
            cpu.encode(metric)?;
        }
        let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        if let Some(pages) = pages.split(' ').nth(1).and_then(|pages| pages.parse::<i64>().ok()) {
            let bytes = pages * page_bytes();
            to.gauge("process_resident_memory", "Memory in use", Some(Unit::Bytes), bytes)?;
        }
        Ok(())
    }
}

#[allow(clippy::useless_conversion, reason = "c_long has 32 bits on some targets")]
fn page_bytes() -> i64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().map_or(4096, i64::from)
}

struct Encoder<'a>(DescriptorEncoder<'a>);

impl Encoder<'_> {
    fn counter(&mut self, name: &str, help: &str, unit: Option<Unit>, value: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        series: &[([(&str, &str); N], u64)],
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        for (labels, value) in series {
            ConstCounter::new(*value).encode(metric.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, value: i64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str); 1]) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Info)?;
        prometheus_client::metrics::info::Info::new(*labels).encode(metric)
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) -> fmt::Result {
        let unit = Unit::Seconds;
        let mut metric = self.0.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
        let bounds = BOUNDS_S.into_iter().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(histogram.counts).collect();
        metric.encode_histogram::<[(&str, &str); 0]>(histogram.sum_s, histogram.count(), &buckets, None)
    }
}
