//! Results of a run: plain structs that map one to one to the result schema of `paceline run --json`
//! (docs/reference/results-schema.md). Units are in the names.

use std::collections::BTreeMap;
use std::ops::Range;

use paceline_adhoc::AdHocCounters;
use paceline_gateway::Counters;
use paceline_path::Link;
use paceline_wire::{Duration, Instant};

use crate::measure::{Percentiles, Quantiles};

/// One scenario, executed with one seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// The seed.
    pub seed: u64,
    /// Time until the last flow ended.
    pub duration_s: f64,
    /// One entry for each transfer.
    pub flows: Vec<FlowResult>,
    /// By name and direction, such as `radio_down`.
    pub links: BTreeMap<String, LinkResult>,
    /// The gateway's results; `None` without a gateway.
    pub gateway: Option<GatewayResult>,
    /// Counters of the ad-hoc network, if there is one.
    pub ad_hoc: Option<AdHocCounters>,
    /// Delay of delivered downlink segments in the gateway and the last link's queue together.
    pub path_delay_ms: Percentiles,
    /// Number of events: packets that left a bottleneck, packets given to nodes, timers that were due.
    pub events: u64,
    /// Findings of the checker, if the scenario is checked, and senders with a wrong pipe. It should be empty.
    pub findings: Vec<String>,
}

/// Direction of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Towards the client.
    #[default]
    Down,
    /// Towards the server.
    Up,
}

/// One transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowResult {
    /// Name of the flow in the scenario.
    pub name: String,
    /// Number among the transfers of that name, from 0.
    pub index: u32,
    /// Direction of the data.
    pub direction: Direction,
    /// Start time, from the start of the run.
    pub start_s: f64,
    /// Payload that the receiving application read.
    pub bytes: u64,
    /// Payload over the time from the first SYN to the last byte. For a flow without a size, the time ends with the
    /// scenario's duration.
    pub goodput_mbps: f64,
    /// Time from the first SYN to the last byte; `None` unless completed. For a flow without a size, the end of the run
    /// completes it.
    pub completion_s: Option<f64>,
    /// Retransmitted segments.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub tail_loss_probes: u64,
    /// Fast recoveries of the sender.
    pub recoveries: u64,
    /// Recoveries that found the send buffer empty, because the application had not been woken.
    pub stalled_recoveries: u64,
    /// The sender's smoothed RTT, every 100 ms.
    pub rtt_ms: Percentiles,
    /// True if all data that was sent was read, and both ends closed in order.
    pub completed: bool,
    /// The longest time, in steps of 200 ms, in which the application read less than 10 % of the link's rate.
    pub longest_gap_s: f64,
    /// Why it did not complete.
    pub error: Option<String>,
}

/// One direction of a link, over the scenario's duration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkResult {
    /// Share of the link's capacity that carried packets; `None` for a link without limit.
    pub utilization: Option<f64>,
    /// Capacity of the link, as a rate.
    pub capacity_mbps: Option<f64>,
    /// Wait in the queue, per delivered packet.
    pub queue_delay_ms: Percentiles,
    /// Packets that never arrive.
    pub drops: u64,
    /// By cause: `queue`, `loss` and `outage` always; `aqm` and `policer` if they dropped a packet.
    pub drops_by_cause: BTreeMap<String, u64>,
    /// Packets that queue management marked instead of dropping (ECN).
    pub marks: u64,
    /// IP packets.
    pub delivered_packets: u64,
    /// IP bytes.
    pub delivered_bytes: u64,
}

/// Results of the gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GatewayResult {
    /// Time that new data spent in the gateway.
    pub sojourn_ms: Percentiles,
    /// The gateway's counters.
    pub counters: Counters,
}

impl LinkResult {
    /// Results of a link that ran during `time`.
    pub fn of(link: &Link, time: Range<Instant>, queue_delay: &Quantiles) -> Self {
        let counters = link.counters();
        let capacity = link.capacity_bytes(time.start, time.end);
        let span_s = time.end.saturating_since(time.start).as_secs_f64();
        LinkResult {
            utilization: capacity.map(|capacity| share(link.charged_bytes(counters.transmitted), capacity)),
            capacity_mbps: capacity.map(|capacity| capacity as f64 * 8.0 / 1e6 / span_s),
            queue_delay_ms: queue_delay.percentiles(),
            drops: counters.dropped().packets,
            drops_by_cause: counters
                .dropped_by_cause()
                .into_iter()
                .filter(|(cause, count)| count.packets > 0 || !matches!(*cause, "aqm" | "policer"))
                .map(|(cause, count)| (cause.to_string(), count.packets))
                .collect(),
            marks: counters.marked.packets,
            delivered_packets: counters.delivered.packets,
            delivered_bytes: counters.delivered.bytes,
        }
    }
}

/// Megabits per second; zero if `time` is zero.
pub(crate) fn mbps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / 1e6 / time.as_secs_f64() }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
