//! A split flow: a connection with the server, one with the client, and the steps that move data between them.
//!
//! Each connection uses the initial sequence number and the timestamps of the end that it stands in for. So a byte has
//! the same number on both sides of the gateway. Some packets pass unchanged: a refusal, an ICMP message, a FIN
//! repeated after the flow is forgotten. Both ends read them as without a gateway. The numbers are as hard to guess as
//! those of the ends. TIME-WAIT, too, stays at the end that closed first.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use paceline_tcp::{Connection, State};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, PathMarks, PortId};

use super::SenderConfig;
use super::gaps::Gaps;
use super::opening::Opening;
use super::upload::SplitUpload;
use crate::auto::{Reason, UplinkDelay};
use crate::config::GatewayConfig;
use crate::flow::PathMtu;
use crate::ids::{EntryId, SplitFlowId};
use crate::path_estimate::PathEstimate;
use crate::pool::PIECE_MIN;
use crate::ring::Links;
use crate::{RADIO, WAN};

/// One split flow: a leg to each end.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct SplitFlow {
    /// Source is the client.
    pub(super) key: FlowKey,
    /// Packets per round of the scheduler.
    pub(super) weight: u32,
    pub(super) server: Leg,
    /// None before the server has answered.
    pub(super) client: Option<Leg>,
    /// The client's request, until the server has answered.
    pub(super) opening: Option<Box<Opening>>,
    pub(super) since: Instant,
    pub(super) last_packet: Instant,
    /// Why it is split, if `auto` decided.
    pub(super) reason: Option<Reason>,
    /// Delay of its client's packets on the uplink, for `auto`.
    pub(super) uplink: UplinkDelay,
    /// State of its upload. None until its client has sent more than a first flight.
    #[serde(default)]
    pub(super) upload: Option<Box<SplitUpload>>,
    /// Its place in the table.
    pub(super) place: EntryId,
    pub(super) bounds: Bounds,
    /// Gaps in the server's data.
    #[serde(default)]
    pub(super) gaps: Gaps,
    /// Arrival times of the server's bytes. Each position is after the last byte of an arrival.
    pub(super) arrivals: VecDeque<(u64, Instant)>,
    /// Time that data waited here before it left for the client, summed up.
    pub(super) waited: Duration,
    /// Timeouts of the client's leg that were reported.
    pub(super) timeouts: u64,
    /// Bytes that the server may send, as last counted in the sum over all flows.
    #[serde(rename = "promised")]
    pub(super) advertised: u64,
    /// Bytes that it keeps, as last counted in the sum over all flows.
    pub(super) counted: u64,
    /// True if it may have unscheduled output.
    #[serde(skip)]
    pub(super) ready: bool,
    #[serde(skip)]
    pub(super) links: Links<SplitFlowId>,
    /// Its timer in the heap.
    pub(super) armed: Option<Instant>,
}

/// Limits on the server's data here or in flight, and on data in flight to the client.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Bounds {
    /// How long data may wait here.
    pub(super) target: Duration,
    /// Its part of the bytes that the subscriber may have outstanding.
    pub(super) in_flight: u64,
    /// Bytes that may wait for a burst of ACKs.
    #[serde(default)]
    pub(super) at_once: u64,
    /// The largest window shown to the server. Zero if only the receive buffer limits it.
    pub(super) window: u64,
}

/// A packet that left for the client with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Payload bytes.
    pub(super) bytes: u64,
    /// Time since they came from the server.
    pub(super) sojourn: Duration,
    pub(super) retransmission: bool,
}

/// One of the two connections of a split flow.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Leg {
    pub(super) connection: Connection,
    /// Marks of the other end's packets, which take the same path. The hop limit stays as it is: bridges do not lower
    /// it, and a router that hands packets to the gateway does so itself.
    pub(super) marks: PathMarks,
    /// IPv4 identification of the next packet.
    id: u16,
    /// True if the other end's packets come as super-packets. Then the device takes super-packets, too.
    super_packets: bool,
    /// The smallest path MTU that was told and believed.
    #[serde(default)]
    pub(super) path_mtu: PathMtu,
}

/// The most arrivals kept. Our choice: full-sized segments of 6 MB. Further arrivals join the newest entry and keep its
/// time.
const ARRIVALS_MAX: usize = 4096;

impl SplitFlow {
    /// Opens the flow that `syn` requests. A SYN of the same kind leaves for the server.
    pub(super) fn open(
        key: FlowKey,
        config: &GatewayConfig,
        sender: SenderConfig,
        weight: u32,
        syn: &Packet,
        now: Instant,
    ) -> Option<SplitFlow> {
        let (opening, server) = Opening::begin(key, config, sender, syn, now)?;
        Some(SplitFlow {
            key,
            weight,
            server,
            client: None,
            opening: Some(Box::new(opening)),
            since: now,
            last_packet: now,
            reason: None,
            uplink: UplinkDelay::default(),
            upload: None,
            place: EntryId::default(),
            bounds: Bounds {
                target: Duration::from_millis(config.virtual_window.target_ms),
                in_flight: u64::MAX,
                at_once: u64::MAX,
                window: 0,
            },
            gaps: Gaps::default(),
            arrivals: VecDeque::new(),
            waited: Duration::ZERO,
            timeouts: 0,
            advertised: 0,
            counted: 0,
            ready: false,
            links: Links::default(),
            armed: None,
        })
    }

    /// Handles a packet of the client after the server has answered. `path` is the path of its subscriber.
    pub(super) fn on_client_packet(&mut self, now: Instant, packet: &Packet, path: &PathEstimate) {
        if let Some((value, _)) = packet.tcp().and_then(|tcp| tcp.timestamps()) {
            self.uplink.on_timestamp(now, value, path.uploaded, path.uplink.of_late(now));
        }
        if let Some(client) = &mut self.client {
            client.connection.handle_packet(now, packet);
        }
        if let Some(marks) = packet.path_marks() {
            self.server.marks = marks;
        }
        self.server.super_packets |= packet.gso_size().is_some();
        self.relay(now);
    }

    /// Handles a packet of the server after its answer.
    pub(super) fn on_server_packet(&mut self, now: Instant, packet: &Packet) {
        self.server.connection.handle_packet(now, packet);
        let server = &self.server.connection;
        self.gaps.on_arrival(now, server.received(), server.highest_received(), server.round_trip());
        self.note_arrival(now);
        if let (Some(client), Some(marks)) = (&mut self.client, packet.path_marks()) {
            client.marks = marks;
            client.super_packets |= packet.gso_size().is_some();
        }
        self.relay(now);
    }

    /// Handles timers that are due.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.server.connection.handle_timeout(now);
        if let Some(client) = &mut self.client {
            client.connection.handle_timeout(now);
        }
        self.relay(now);
    }

    /// Returns the next packet that needs no turn, and its port.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<(PortId, Packet, Option<Sent>)> {
        self.next_packet(now).or_else(|| {
            // Data that left made room for more.
            self.relay(now);
            self.next_packet(now)
        })
    }

    fn next_packet(&mut self, now: Instant) -> Option<(PortId, Packet, Option<Sent>)> {
        if let Some((packet, sent)) = self.next_to_client(now, u32::MAX) {
            return Some((RADIO, packet, sent));
        }
        if self.awaits_client() {
            return None;
        }
        self.server.poll(now, u32::MAX).map(|packet| (WAN, packet, None))
    }

    /// Returns the next packet to the client, within the allowance of its turn and of at most `most` segments.
    pub(super) fn transmit_to_client(&mut self, now: Instant, most: u32) -> Option<(Packet, Option<Sent>)> {
        self.next_to_client(now, most).or_else(|| {
            self.relay(now);
            self.next_to_client(now, most)
        })
    }

    fn next_to_client(&mut self, now: Instant, most: u32) -> Option<(Packet, Option<Sent>)> {
        let client = self.client.as_mut()?;
        let before = client.connection.sent();
        let packet = client.poll(now, most)?;
        let bytes = packet.payload().len() as u64;
        let retransmission = client.connection.sent() == before;
        let sojourn = if bytes > 0 && !retransmission { self.sojourn(now, before) } else { Duration::ZERO };
        Some((packet, (bytes > 0).then_some(Sent { bytes, sojourn, retransmission })))
    }

    fn note_arrival(&mut self, now: Instant) {
        let received = self.server.connection.received();
        let full = self.arrivals.len() >= ARRIVALS_MAX;
        match self.arrivals.back_mut() {
            Some((end, _)) if *end == received => {}
            Some((end, at)) if *at == now || full => *end = received,
            _ => self.arrivals.push_back((received, now)),
        }
    }

    /// Returns how long the byte at `position` was here. A byte has the same position on both sides.
    fn sojourn(&mut self, now: Instant, position: u64) -> Duration {
        while self.arrivals.len() > 1 && self.arrivals.front().is_some_and(|&(end, _)| end <= position) {
            self.arrivals.pop_front();
        }
        let sojourn = self.arrivals.front().map_or(Duration::ZERO, |&(_, at)| now.saturating_since(at));
        self.waited += sojourn;
        sojourn
    }

    /// True if the server has answered and the client has not. Until then the server gets no further packet. So a flood
    /// of SYNs from the client's side gets no further with the server than without a gateway.
    pub(super) fn awaits_client(&self) -> bool {
        let is_answering = |leg: &Leg| leg.connection.state() == State::SynReceived;
        self.client.as_ref().is_some_and(is_answering)
    }

    /// True if both legs are over. Packets that its ends may still send can pass.
    pub(super) fn is_over(&self) -> bool {
        let is_done = |leg: &Leg| matches!(leg.connection.state(), State::Closed | State::TimeWait);
        is_done(&self.server) && self.client.as_ref().is_none_or(is_done)
    }

    /// Ends a flow that was idle for too long. Both ends are told, because it cannot go on without the gateway.
    pub(super) fn expire(&mut self) {
        self.server.connection.abort();
        if let Some(client) = &mut self.client {
            client.connection.abort();
        }
    }

    /// Returns when [`on_timeout`](Self::on_timeout) next has something to do.
    pub(super) fn timeout(&self, idle_timeout_s: u64) -> Instant {
        let server = if self.awaits_client() { None } else { self.server.connection.poll_timeout() };
        let client = self.client.as_ref().and_then(|leg| leg.connection.poll_timeout());
        [server, client].into_iter().flatten().fold(self.expires_at(idle_timeout_s), Ord::min)
    }

    pub(super) fn expires_at(&self, idle_timeout_s: u64) -> Instant {
        self.last_packet + Duration::from_secs(idle_timeout_s)
    }

    /// Returns the smoothed RTT of its client's leg. Zero before the first sample.
    pub(super) fn srtt(&self) -> Duration {
        self.client.as_ref().map_or(Duration::ZERO, |client| client.connection.srtt())
    }

    /// True if its client's leg would send and only waits for its turn.
    pub(super) fn is_held(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.connection.is_held())
    }

    /// Returns the payload of a full-sized segment to the client. Never zero.
    pub(super) fn segment(&self) -> u64 {
        self.client.as_ref().map_or(1, |client| client.connection.segment().max(1))
    }

    /// True if its allowance would cut its next packet, of at most `quantum` bytes. A cut packet costs as much as a
    /// whole one.
    pub(super) fn would_be_cut(&self, quantum: u64) -> bool {
        let client = self.client.as_ref().map(|client| &client.connection);
        client.is_some_and(|client| client.next_piece().min(quantum) > client.allowance())
    }

    /// Lets its client's leg send `bytes`.
    pub(super) fn allow(&mut self, bytes: u64) {
        if let Some(client) = &mut self.client {
            client.connection.set_allowance(bytes);
        }
    }

    /// Returns the bytes of payload that it keeps, and the cost of small pieces beyond that.
    pub(super) fn buffered(&self) -> u64 {
        let legs = [Some(&self.server), self.client.as_ref()].into_iter().flatten();
        let (bytes, pieces) = legs.fold((0, 0), |(bytes, pieces), leg| {
            (bytes + leg.connection.buffered(), pieces + leg.connection.pieces() as u64)
        });
        bytes.max(pieces * PIECE_MIN) + self.upload.as_ref().map_or(0, |_| SplitUpload::MEMORY)
    }
}

impl Leg {
    pub(super) fn new(connection: Connection, marks: PathMarks) -> Leg {
        Leg { connection, marks, id: 0, super_packets: false, path_mtu: PathMtu::default() }
    }

    /// Returns the next packet, of up to `most` segments, with the path marks of the other end's packets.
    fn poll(&mut self, now: Instant, most: u32) -> Option<Packet> {
        let mut packet = match self.super_packets {
            true => self.connection.poll_super_packet(now, most)?,
            false => self.connection.poll_transmit(now)?,
        };
        let is_reset = packet.tcp().is_some_and(|tcp| tcp.flags().contains(Flags::RST));
        if self.connection.is_closed() && !is_reset {
            // The connection is over, and nobody waits for an ACK of its last bytes.
            return None;
        }
        packet.set_path_marks(&self.marks, self.id);
        self.id = self.id.wrapping_add(segments(&packet) as u16);
        Some(packet)
    }
}

/// Number of packets on the wire.
pub(super) fn segments(packet: &Packet) -> usize {
    packet.gso_size().map_or(1, |size| packet.payload().len().div_ceil(usize::from(size)))
}
