//! Flows and subscribers as JSON, for `paceline flows`, `paceline top` and flow records. docs/reference/metrics.md
//! documents each field.

use std::net::{IpAddr, SocketAddr};

use paceline_gateway::config::{FlowMode, SharingConfig};
use paceline_gateway::{FlowStage, FlowStatus, SubscriberStatus};
use paceline_wire::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Increased when a field changes its meaning or is removed, but not for new fields.
pub const SCHEMA: u32 = 1;

/// A running gateway's answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the operator's guide documents each field")]
pub struct Report {
    pub schema: u32,
    pub program: String,
    pub wan: String,
    pub radio: String,
    pub uptime_s: f64,
    /// Why the gateway is not in place, or `None` if it is.
    #[serde(default)]
    pub absent: Option<String>,
    pub flows: Vec<FlowRow>,
    pub subscribers: Vec<SubscriberRow>,
}

/// One flow.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the operator's guide documents each field")]
pub struct FlowRow {
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub subscriber: String,
    pub mode: String,
    /// Reason of the newest decision, if the mode `auto` decided.
    #[serde(default)]
    pub reason: Option<String>,
    pub stage: String,
    pub age_s: f64,
    pub idle_s: f64,
    pub weight: u32,
    pub rescaled: bool,
    pub gave_up: bool,
    pub rtt_ms: Option<f64>,
    pub rtt_min_ms: Option<f64>,
    pub server_rtt_ms: Option<f64>,
    pub rate_mbps: Option<f64>,
    pub client_window_bytes: u64,
    pub in_flight_bytes: u64,
    pub waiting_bytes: u64,
    pub buffered_bytes: u64,
    pub ack_delay_ms: f64,
    #[serde(flatten)]
    pub totals: FlowTotalsRow,
}

/// What has passed in one flow, and what it cost.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the operator's guide documents each field")]
pub struct FlowTotalsRow {
    pub downlink_bytes: u64,
    pub uplink_bytes: u64,
    pub mean_wait_ms: f64,
    pub retransmissions: u64,
    pub retransmitted_bytes: u64,
    pub server_retransmissions: u64,
    pub lost_bytes: u64,
    pub timeouts: u64,
}

/// One subscriber.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the operator's guide documents each field")]
pub struct SubscriberRow {
    pub subscriber: String,
    pub flows: u32,
    pub weight: u32,
    pub in_flight_bytes: u64,
    pub limit_bytes: Option<u64>,
    pub rate_mbps: Option<f64>,
    pub rtt_min_ms: Option<f64>,
    #[serde(default)]
    pub other_downlink_bytes: u64,
    #[serde(default)]
    pub other_uplink_bytes: u64,
    #[serde(default)]
    pub other_waiting_bytes: u64,
}

/// A flow that has ended: one line of a file of records.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Record {
    pub(crate) schema: u32,
    /// Seconds since 1970.
    pub(crate) start_unix_s: f64,
    pub(crate) end_unix_s: f64,
    #[serde(flatten)]
    pub(crate) flow: FlowRow,
}

/// Lengths of subscriber prefixes, for output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefixes {
    v4: u8,
    v6: u8,
}

impl Prefixes {
    pub(crate) fn new(sharing: &SharingConfig) -> Self {
        Prefixes { v4: sharing.subscriber_prefix_v4, v6: sharing.subscriber_prefix_v6 }
    }

    /// Formats a prefix. A single address has no length.
    fn show(self, prefix: IpAddr) -> String {
        match (prefix, prefix.is_ipv4()) {
            (address, true) if self.v4 >= 32 => address.to_string(),
            (address, false) if self.v6 >= 128 => address.to_string(),
            (address, is_v4) => format!("{address}/{}", if is_v4 { self.v4 } else { self.v6 }),
        }
    }
}

impl FlowRow {
    pub(crate) fn new(now: Instant, status: &FlowStatus, prefixes: Prefixes) -> FlowRow {
        let totals = &status.totals;
        let known = |time: Duration| (time > Duration::ZERO).then(|| ms(time));
        let departures = totals.departures.max(1) as f64;
        FlowRow {
            client: status.key.src,
            server: status.key.dst,
            subscriber: prefixes.show(status.subscriber),
            mode: if status.mode == FlowMode::Split { "split" } else { "transparent" }.into(),
            reason: status.reason.map(|reason| reason.to_string()),
            stage: stage(status.stage).into(),
            age_s: seconds(now.saturating_since(status.since)),
            idle_s: seconds(now.saturating_since(status.last_packet)),
            weight: status.weight,
            rescaled: status.rescaled,
            gave_up: status.gave_up,
            rtt_ms: status.rtt.map(ms),
            rtt_min_ms: totals.rtt_min.map(ms),
            server_rtt_ms: known(status.server_rtt),
            rate_mbps: mbps(status.rate),
            client_window_bytes: status.client_window,
            in_flight_bytes: status.in_flight,
            waiting_bytes: status.waiting,
            buffered_bytes: status.buffered,
            ack_delay_ms: ms(status.ack_delay),
            totals: FlowTotalsRow {
                downlink_bytes: totals.downlink_bytes,
                uplink_bytes: totals.uplink_bytes,
                mean_wait_ms: round(totals.waited.as_secs_f64() * 1e3 / departures),
                retransmissions: totals.retransmissions,
                retransmitted_bytes: totals.retransmitted_bytes,
                server_retransmissions: totals.server_retransmissions,
                lost_bytes: totals.lost_bytes,
                timeouts: totals.timeouts,
            },
        }
    }
}

impl SubscriberRow {
    pub(crate) fn new(status: &SubscriberStatus, prefixes: Prefixes) -> SubscriberRow {
        SubscriberRow {
            subscriber: prefixes.show(status.prefix),
            flows: status.flows,
            weight: status.weight,
            in_flight_bytes: status.outstanding,
            limit_bytes: status.limit,
            rate_mbps: mbps(status.rate),
            rtt_min_ms: status.rtt_min.map(ms),
            other_downlink_bytes: status.other_downlink_bytes,
            other_uplink_bytes: status.other_uplink_bytes,
            other_waiting_bytes: status.other_waiting,
        }
    }
}

fn stage(stage: FlowStage) -> &'static str {
    match stage {
        FlowStage::Opening => "opening",
        FlowStage::Open => "open",
        FlowStage::Finished => "finished",
        FlowStage::Reset => "reset",
        FlowStage::Idle => "idle",
        FlowStage::Replaced => "replaced",
    }
}

fn mbps(rate: paceline_wire::Rate) -> Option<f64> {
    (rate > paceline_wire::Rate::ZERO).then(|| round(rate.as_mbps()))
}

fn ms(time: Duration) -> f64 {
    round(time.as_secs_f64() * 1e3)
}

fn seconds(time: Duration) -> f64 {
    round(time.as_secs_f64())
}

/// Three digits after the point: a microsecond, or a kilobit per second.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

#[cfg(test)]
pub(crate) mod tests {
    use paceline_gateway::FlowTotals;
    use paceline_wire::{FlowKey, Rate};

    use super::*;

    pub(crate) fn status() -> FlowStatus {
        FlowStatus {
            key: FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: "192.0.2.1:443".parse().unwrap() },
            mode: FlowMode::Transparent,
            subscriber: "10.0.0.2".parse().unwrap(),
            stage: FlowStage::Open,
            since: Instant::from_nanos(1_000_000_000),
            last_packet: Instant::from_nanos(2_000_000_000),
            weight: 1,
            rescaled: true,
            gave_up: false,
            reason: None,
            rtt: Some(Duration::from_micros(101_500)),
            server_rtt: Duration::ZERO,
            rate: Rate::from_mbps(7.2),
            client_window: 65_536,
            in_flight: 60_000,
            waiting: 3_000,
            buffered: 63_000,
            ack_delay: Duration::ZERO,
            totals: FlowTotals {
                downlink_bytes: 1_000_000,
                departures: 10,
                waited: Duration::from_millis(25),
                ..FlowTotals::default()
            },
        }
    }

    pub(crate) fn subscriber() -> SubscriberStatus {
        SubscriberStatus {
            prefix: "10.0.0.2".parse().unwrap(),
            flows: 2,
            weight: 1,
            outstanding: 120_000,
            limit: Some(150_000),
            rate: Rate::from_mbps(9.6),
            rtt_min: Some(Duration::from_millis(100)),
            other_downlink_bytes: 7_000,
            other_uplink_bytes: 500,
            other_waiting: 0,
        }
    }

    #[test]
    fn a_row_says_what_is_known_and_nothing_else() {
        let prefixes = Prefixes::new(&SharingConfig::default());
        let row = FlowRow::new(Instant::from_nanos(3_000_000_000), &status(), prefixes);
        assert_eq!((row.age_s, row.idle_s), (2.0, 1.0));
        assert_eq!((row.rtt_ms, row.server_rtt_ms), (Some(101.5), None));
        assert_eq!((row.rate_mbps, row.totals.mean_wait_ms), (Some(7.2), 2.5));
        assert_eq!(row.subscriber, "10.0.0.2");
        let row = SubscriberRow::new(&subscriber(), prefixes);
        assert_eq!((row.rate_mbps, row.rtt_min_ms, row.limit_bytes), (Some(9.6), Some(100.0), Some(150_000)));
        assert_eq!(prefixes.show("2001:db8::".parse().unwrap()), "2001:db8::/64");
    }
}
