//! Copies of the state of flows and subscribers, for an operator.

use core::net::IpAddr;

use paceline_wire::{Duration, FlowKey, Instant, Rate};

use crate::auto::Reason;
use crate::config::FlowMode;

/// Sums over the life of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FlowTotals {
    /// Payload new to the client: acknowledged, or sent for the first time if the flow is split. Each byte counts once.
    pub downlink_bytes: u64,
    /// Payload that came from the client.
    pub uplink_bytes: u64,
    /// Packets with new data that left for the client, without retransmissions.
    pub departures: u64,
    /// Time that these packets spent in the gateway, summed up.
    pub waited: Duration,
    /// Retransmissions of the gateway, in packets.
    pub retransmissions: u64,
    /// Their payload bytes.
    pub retransmitted_bytes: u64,
    /// Retransmissions of the server, in packets.
    pub server_retransmissions: u64,
    /// Payload bytes found lost.
    pub lost_bytes: u64,
    /// Timeouts of the gateway's own timer.
    pub timeouts: u64,
    /// The shortest round trip to the client.
    pub rtt_min: Option<Duration>,
}

impl FlowTotals {
    /// Counts a packet with new data that left for the client after waiting for `sojourn`.
    pub(crate) fn on_departure(&mut self, sojourn: Duration) {
        self.departures += 1;
        self.waited += sojourn;
    }

    /// Counts a retransmission to the client.
    pub(crate) fn on_retransmission(&mut self, bytes: u64) {
        self.retransmitted_bytes += bytes;
        self.retransmissions += 1;
    }

    /// Notes a measured round trip to the client.
    pub(crate) fn on_rtt(&mut self, rtt: Duration) {
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
    }
}

/// The stage of a flow, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum FlowStage {
    /// At least one SYN has not passed yet.
    Opening,
    /// Both SYNs have passed, and data may pass.
    Open,
    /// Both ends have sent a FIN, and both were acknowledged.
    Finished,
    /// One end has reset it.
    Reset,
    /// Forgotten because no packet came for too long.
    Idle,
    /// Forgotten because a new connection has the same addresses and ports.
    Replaced,
}

/// The state of one flow at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowStatus {
    /// Source is the client.
    pub key: FlowKey,
    /// Its mode.
    pub mode: FlowMode,
    /// The newest reason, if `auto` decided.
    pub reason: Option<Reason>,
    /// The prefix that names its subscriber.
    pub subscriber: IpAddr,
    /// Its stage.
    pub stage: FlowStage,
    /// Arrival time of its first packet.
    pub since: Instant,
    /// Arrival time of its newest packet.
    pub last_packet: Instant,
    /// Packets per round of the scheduler.
    pub weight: u32,
    /// True if its windows are rescaled.
    pub rescaled: bool,
    /// True if the gateway has given up repairing it.
    pub gave_up: bool,
    /// Smoothed round trip to the client.
    pub rtt: Option<Duration>,
    /// Round trip to the server, zero before it is known.
    pub server_rtt: Duration,
    /// Reception rate, zero before the first estimate.
    pub rate: Rate,
    /// The client's window in bytes.
    pub client_window: u64,
    /// Bytes in flight to the client.
    pub in_flight: u64,
    /// Bytes waiting in the gateway.
    pub waiting: u64,
    /// Payload bytes kept, in flight or waiting.
    pub buffered: u64,
    /// Delay added to acknowledgements.
    pub ack_delay: Duration,
    /// Sums since its first packet.
    pub totals: FlowTotals,
}

impl FlowStatus {
    /// True if it has not ended.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, FlowStage::Opening | FlowStage::Open)
    }
}

/// The state of one subscriber at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubscriberStatus {
    /// The prefix that names it.
    pub prefix: IpAddr,
    /// Number of flows in the table.
    pub flows: u32,
    /// Packets per round of the scheduler.
    pub weight: u32,
    /// Bytes in flight, of all its flows.
    pub outstanding: u64,
    /// The most bytes that may be in flight. None without a bound, or before the first estimate.
    pub limit: Option<u64>,
    /// Delivery rate of its link, zero while unknown.
    pub rate: Rate,
    /// The shortest recent round trip.
    pub rtt_min: Option<Duration>,
    /// Bytes other than TCP that left for it.
    pub other_downlink_bytes: u64,
    /// Bytes other than TCP that came from it.
    pub other_uplink_bytes: u64,
    /// Bytes other than TCP that wait in the gateway.
    pub other_waiting: u64,
}

/// A part of a long list. No call takes long, since each returns one part.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The items of this part.
    pub items: alloc::vec::Vec<T>,
    /// Start of the next part. None after the last.
    pub next: Option<usize>,
}
