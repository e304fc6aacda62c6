//! The results of a run in the simulator or in the lab: schema 1. docs/reference/results-schema.md documents each
//! field.

mod metric;
mod store;
mod summary;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::percentiles::Percentiles;
use crate::scenario::{Direction, EventAction, IpVersion, Protocol};

pub(crate) use metric::{check_all as check_bounds, statistic, values};
pub(crate) use store::{RunFiles, Store};
pub(crate) use summary::{bounds_table, flow_rows, links_table, summary_table};

/// Increases when a field changes its meaning or is removed. New fields do not increase it.
pub(crate) const SCHEMA: u32 = 1;

/// The one object that `--json` prints.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Results {
    pub(crate) schema: u32,
    pub(crate) program: String,
    pub(crate) scenario: String,
    /// `lab`: real packets between kernel sockets; `sim`: the simulator.
    pub(crate) on: String,
    pub(crate) runs: Vec<Run>,
}

/// The results of one variant with one seed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Run {
    pub(crate) variant: String,
    pub(crate) seed: u64,
    pub(crate) duration_s: f64,
    pub(crate) flows: Vec<FlowResult>,
    /// `wired_down`, `wired_up`, `radio_down`, `radio_up`.
    pub(crate) links: BTreeMap<String, LinkResult>,
    /// Empty without a gateway.
    pub(crate) gateway: GatewayResult,
    /// Delay of delivered downlink packets in the radio link's queue and the gateway together.
    pub(crate) path_delay_ms: Percentiles,
    /// Fairness between bulk downloads while all of them were active; absent with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fairness: Option<Fairness>,
    /// Changes of the radio downlink's schedule, and how soon the run followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<Change>,
    /// The slowest of `changes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate_settled_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delay_settled_s: Option<f64>,
    /// What an ideal sender could reach on the radio downlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) oracle: Option<OracleResult>,
}

/// One transfer.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct FlowResult {
    /// The name in the scenario.
    pub(crate) name: String,
    /// Counts from 0 among flows of the same name.
    pub(crate) index: u32,
    pub(crate) protocol: Protocol,
    pub(crate) direction: Direction,
    pub(crate) ip: IpVersion,
    /// Since the start of the run.
    pub(crate) start_s: f64,
    /// Payload that the receiver got.
    pub(crate) bytes: u64,
    /// Rate of the payload, from the first SYN to the last byte.
    pub(crate) goodput_mbps: f64,
    /// From the first SYN to the last byte; null unless completed. For a flow without size, the end of the run completes it.
    pub(crate) completion_s: Option<f64>,
    pub(crate) retransmitted_segments: u64,
    pub(crate) timeouts: u64,
    pub(crate) tail_loss_probes: u64,
    /// As the sender's kernel measured it.
    pub(crate) rtt_ms: Percentiles,
    pub(crate) completed: bool,
    /// True if the received bytes have the hash of the bytes to be sent.
    pub(crate) sha256_ok: bool,
    /// The longest time in which less than 10 % of the link's rate arrived.
    pub(crate) longest_gap_s: f64,
    /// Time from when a paused reader returns until the radio link delivers to it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resumed_s: Option<f64>,
    /// Why the flow did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct LinkResult {
    /// Share of the link's capacity that carried packets; null for a link without limit.
    pub(crate) utilization: Option<f64>,
    /// The rate that the rate process could have carried.
    pub(crate) capacity_mbps: Option<f64>,
    pub(crate) queue_delay_ms: Percentiles,
    pub(crate) drops: u64,
    pub(crate) drops_by_cause: BTreeMap<String, u64>,
    /// Packets marked by queue management; absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) marks: u64,
    pub(crate) delivered_packets: u64,
    pub(crate) delivered_bytes: u64,
}

/// The gateway's own results.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct GatewayResult {
    /// Time that packets spent in the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sojourn_ms: Option<Percentiles>,
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) counters: serde_json::Map<String, serde_json::Value>,
    /// Events of the gateway's life, and how long the flows stood still after each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<EventResult>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct EventResult {
    pub(crate) at_s: f64,
    pub(crate) action: EventAction,
    /// Time until data arrived again.
    pub(crate) gap_s: Option<f64>,
}

/// A change of the radio downlink's rate or round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Change {
    pub(crate) at_s: f64,
    /// Time until the begin of half a second in which 95 % of the new rate arrived. If there is none, time until the
    /// next change; null without a limit.
    pub(crate) rate_settled_s: Option<f64>,
    /// Time until the path's delay stayed below 200 ms.
    pub(crate) delay_settled_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct OracleResult {
    /// Rate of the payload, from the first SYN on.
    pub(crate) goodput_mbps: f64,
    pub(crate) path_delay_p95_ms: f64,
}

/// Jain's index of the flows' throughputs, averaged over windows of three lengths, and the flows' shares.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Fairness {
    pub(crate) jain_1s: f64,
    pub(crate) jain_100ms: f64,
    pub(crate) jain_10ms: f64,
    /// Bytes per weight of each flow, relative to the first flow.
    pub(crate) ratios: Vec<f64>,
    /// Begin of the time in which all flows were active.
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
