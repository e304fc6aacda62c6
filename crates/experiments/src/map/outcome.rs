//! The stored results of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::{FlowResult, Run, statistic};
use crate::scenario::{Direction, Protocol, Statistic};

/// Flows of these names are sequences of objects.
const OBJECTS: [&str; 2] = ["object", "web"];
/// An object that did not complete counts as one that took this long.
const NEVER_S: f64 = 1_000.0;

/// The results of one profile at one point, with one seed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Outcome {
    /// Goodput of all bulk downloads together.
    pub(super) down_mbps: f64,
    /// Goodput of all uploads together.
    pub(super) up_mbps: f64,
    /// Delay in the radio downlink's queue and the gateway together.
    pub(super) delay_p50_ms: f64,
    pub(super) delay_p95_ms: f64,
    pub(super) delay_p99_ms: f64,
    /// Packets that the radio downlink's full buffer or queue management dropped.
    pub(super) drops: f64,
    /// Packets that its queue management marked.
    pub(super) marks: f64,
    /// Packets that arrived at the radio downlink: delivered packets and all dropped ones.
    pub(super) sent: f64,
    pub(super) delivered: f64,
    /// Packets that the radio downlink lost by chance or in outages.
    pub(super) losses: f64,
    /// Segments that the gateway retransmitted.
    pub(super) repairs: f64,
    pub(super) objects: f64,
    pub(super) object_p50_s: f64,
    pub(super) object_p95_s: f64,
    /// Jain's index of the bulk downloads, over windows of a second.
    pub(super) jain: Option<f64>,
    /// Retransmission timeouts of all senders.
    pub(super) timeouts: f64,
    /// Payload that arrived, over all flows. Throughput that one flow gives up to datagrams is not lost.
    pub(super) bytes: f64,
    /// TCP flows that received nothing. Objects are not counted, because the last one may have just begun.
    pub(super) silent: f64,
    /// TCP flows that did not complete.
    pub(super) unfinished: f64,
    /// Reasons of the gateway's decisions and passed flows, with their counts; also the number of split flows.
    pub(super) reasons: BTreeMap<String, u64>,
}

impl Outcome {
    pub(super) fn of(run: &Run) -> Outcome {
        let tcp: Vec<&FlowResult> = run.flows.iter().filter(|flow| flow.protocol == Protocol::Tcp).collect();
        let is_object = |flow: &FlowResult| OBJECTS.contains(&flow.name.as_str());
        let mbps = |direction: Direction| {
            let bulk = tcp.iter().filter(|flow| flow.direction == direction && !is_object(flow));
            // `sum` of no flow would be -0.
            bulk.map(|flow| flow.goodput_mbps).fold(0.0, |sum, mbps| sum + mbps)
        };
        let mut times: Vec<f64> = tcp
            .iter()
            .filter(|flow| is_object(flow))
            .map(|flow| flow.completion_s.filter(|_| flow.completed).unwrap_or(NEVER_S))
            .collect();
        times.sort_by(f64::total_cmp);
        let p50 = statistic(Statistic::Median, &times).unwrap_or(0.0);
        let p95 = times.get((times.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0);
        let radio = run.links.get("radio_down").cloned().unwrap_or_default();
        let cause = |name: &str| radio.drops_by_cause.get(name).copied().unwrap_or(0) as f64;
        let count =
            |name: &str| run.gateway.counters.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
        let told =
            |name: &str| name.starts_with("auto_") || name.starts_with("passed_") || name == "flows_split";
        let reasons = run.gateway.counters.keys().filter(|name| told(name) && count(name) > 0);
        let losses = cause("loss") + cause("outage");
        Outcome {
            down_mbps: mbps(Direction::Down),
            up_mbps: mbps(Direction::Up),
            delay_p50_ms: run.path_delay_ms.p50.unwrap_or(0.0),
            delay_p95_ms: run.path_delay_ms.p95.unwrap_or(0.0),
            delay_p99_ms: run.path_delay_ms.p99.unwrap_or(0.0),
            drops: cause("queue") + cause("aqm"),
            marks: radio.marks as f64,
            sent: (radio.delivered_packets + radio.drops) as f64,
            delivered: radio.delivered_packets as f64,
            losses,
            repairs: count("local_retransmissions") as f64,
            objects: times.len() as f64,
            object_p50_s: p50,
            object_p95_s: p95,
            jain: run.fairness.as_ref().map(|fairness| fairness.jain_1s),
            timeouts: tcp.iter().map(|flow| flow.timeouts as f64).sum(),
            bytes: run.flows.iter().map(|flow| flow.bytes as f64).sum(),
            silent: tcp.iter().filter(|flow| flow.bytes == 0 && !is_object(flow)).count() as f64,
            unfinished: tcp.iter().filter(|flow| !flow.completed).count() as f64,
            reasons: reasons.map(|name| (name.clone(), count(name))).collect(),
        }
    }

    /// Goodput of downloads and uploads together.
    pub(super) fn mbps(&self) -> f64 {
        self.down_mbps + self.up_mbps
    }
}
