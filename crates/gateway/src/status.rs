//! What an operator sees of flows and subscribers: plain copies of their state.

use core::net::IpAddr;

use paceline_wire::{Duration, FlowKey, Instant, Rate};

use crate::auto::Reason;
use crate::config::FlowMode;

/// What a flow has done since it was first seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FlowTotals {
    /// Payload new to the client, each byte once: acknowledged by it, or of a split flow sent for the first time.
    pub downlink_bytes: u64,
    /// Payload that came from the client.
    pub uplink_bytes: u64,
    /// Packets that left for the client with data, without those sent again.
    pub departures: u64,
    /// The time that these had spent in the gateway, summed up.
    pub waited: Duration,
    /// Packets that the gateway sent again.
    pub retransmissions: u64,
    /// Their payload.
    pub retransmitted_bytes: u64,
    /// Packets that the server sent again.
    pub server_retransmissions: u64,
    /// Payload found lost.
    pub lost_bytes: u64,
    /// Timeouts of the gateway's own timer.
    pub timeouts: u64,
    /// The shortest round trip to the client that was measured.
    pub rtt_min: Option<Duration>,
}

impl FlowTotals {
    /// New data left for the client, having waited so long.
    pub(crate) fn on_departure(&mut self, sojourn: Duration) {
        self.departures += 1;
        self.waited += sojourn;
    }

    /// Data left for the client once more.
    pub(crate) fn on_retransmission(&mut self, bytes: u64) {
        self.retransmitted_bytes += bytes;
        self.retransmissions += 1;
    }

    /// The round trip to the client was measured.
    pub(crate) fn on_rtt(&mut self, rtt: Duration) {
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
    }
}

/// How far a flow is, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum FlowStage {
    /// Not both SYNs have passed.
    Opening,
    /// Data may pass.
    Open,
    /// Both ends have said all, and know it.
    Finished,
    /// One end has reset it.
    Reset,
    /// Forgotten because nothing came for long.
    Idle,
    /// Forgotten because a new connection has the same addresses and ports.
    Replaced,
}

/// One flow at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowStatus {
    /// Source is the client.
    pub key: FlowKey,
    /// How it is served.
    pub mode: FlowMode,
    /// Why, if it is `auto` that decided: the newest decision.
    pub reason: Option<Reason>,
    /// The prefix that names its subscriber.
    pub subscriber: IpAddr,
    /// How far it is.
    pub stage: FlowStage,
    /// When its first packet was seen.
    pub since: Instant,
    /// When the newest was.
    pub last_packet: Instant,
    /// Packets per round of the scheduler.
    pub weight: u32,
    /// Its windows are rescaled.
    pub rescaled: bool,
    /// The gateway has given up repairing it.
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
    /// Bytes that wait here.
    pub waiting: u64,
    /// Payload kept, in flight or waiting.
    pub buffered: u64,
    /// Delay added to acknowledgements.
    pub ack_delay: Duration,
    /// Since it was first seen.
    pub totals: FlowTotals,
}

impl FlowStatus {
    /// It is not over.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, FlowStage::Opening | FlowStage::Open)
    }
}

/// One subscriber at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubscriberStatus {
    /// The prefix that names it.
    pub prefix: IpAddr,
    /// Flows in the table.
    pub flows: u32,
    /// Packets per round of the scheduler.
    pub weight: u32,
    /// Bytes in flight of all its flows.
    pub outstanding: u64,
    /// What may be in flight; none without a bound or before the first estimate.
    pub limit: Option<u64>,
    /// What its link delivers, zero while unknown.
    pub rate: Rate,
    /// The shortest round trip of late.
    pub rtt_min: Option<Duration>,
    /// Bytes other than TCP that left for it, in all.
    pub other_downlink_bytes: u64,
    /// Bytes other than TCP that came from it.
    pub other_uplink_bytes: u64,
    /// Bytes other than TCP that wait for their turn.
    pub other_waiting: u64,
}

/// A part of a long list, so that no call takes long.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// What is in this part.
    pub items: alloc::vec::Vec<T>,
    /// Where the next part starts; none after the last.
    pub next: Option<usize>,
}
