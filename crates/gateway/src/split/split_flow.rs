//! A split flow: a connection with the server and one with the client, and the order of work between them.
//!
//! Each connection takes over the initial sequence number of the end that it stands in for, and goes on with that end's
//! timestamps. So a byte has the same number on both sides of the gateway: what passes it unchanged (a refusal, an ICMP message, a
//! FIN that comes again when the flow is forgotten) means the same to both ends as without a gateway, and nobody can guess more
//! than the ends let him. TIME-WAIT is where it is without a gateway, too: at the end that closed first.

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
    /// There is none before the server has answered.
    pub(super) client: Option<Leg>,
    /// Until then, what the client wants.
    pub(super) opening: Option<Box<Opening>>,
    pub(super) since: Instant,
    pub(super) last_packet: Instant,
    /// Why it is split, if it is `auto` that decided.
    pub(super) reason: Option<Reason>,
    /// What its client's packets wait on the uplink, for `auto`.
    pub(super) uplink: UplinkDelay,
    /// Once its client has sent more than a first flight.
    #[serde(default)]
    pub(super) upload: Option<Box<SplitUpload>>,
    /// Its place among its subscriber's flows.
    pub(super) place: u32,
    pub(super) bounds: Bounds,
    /// Those of what the server sends.
    #[serde(default)]
    pub(super) gaps: Gaps,
    /// When the server's bytes came: positions after the last byte of each arrival.
    pub(super) arrivals: VecDeque<(u64, Instant)>,
    /// How long what has left for the client had waited here, summed up.
    pub(super) waited: Duration,
    /// Timeouts of the client's leg that were told.
    pub(super) timeouts: u64,
    /// What the server may have on its way, as last counted among that of all flows.
    #[serde(rename = "promised")]
    pub(super) advertised: u64,
    /// What it keeps, as last counted among that of all flows.
    pub(super) counted: u64,
    /// It may have something to send.
    #[serde(skip)]
    pub(super) ready: bool,
    #[serde(skip)]
    pub(super) links: Links,
    /// Its timer.
    pub(super) armed: Option<Instant>,
}

/// How much of the server's data may be here or on its way, and in flight to the client.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Bounds {
    /// How long data may wait here.
    pub(super) target: Duration,
    /// Its part of what the subscriber may have outstanding.
    pub(super) in_flight: u64,
    /// What may wait for a burst of ACKs.
    #[serde(default)]
    pub(super) at_once: u64,
    /// The largest window that is shown to the server; zero where the receive buffer alone says it.
    pub(super) window: u64,
}

/// A packet that left for the client with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Payload bytes.
    pub(super) bytes: u64,
    /// Since they came from the server.
    pub(super) sojourn: Duration,
    pub(super) retransmission: bool,
}

/// One of the two connections of a split flow.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Leg {
    pub(super) connection: Connection,
    /// Of packets of the other end that go the same way. The hop limit stays as it is: bridges do not lower it, and a router
    /// that hands packets to the gateway does so itself.
    pub(super) marks: PathMarks,
    /// IPv4 identification of the next packet.
    id: u16,
    /// The other end's packets come as super-packets: then the device takes such, too.
    super_packets: bool,
    /// The smallest MTU on the way that was told and believed.
    #[serde(default)]
    pub(super) path_mtu: PathMtu,
}

/// Our choice: more are kept as one, as old as the oldest of them. Full-sized segments of 6 MB.
const ARRIVALS_MAX: usize = 4096;

impl SplitFlow {
    /// The flow that `syn` asks for: a SYN of the same kind leaves for the server.
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
            place: 0,
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

    /// A packet of the client, once the server has answered, on its subscriber's path.
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

    /// A packet of the server, once the client is being answered.
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

    /// Does what is due.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.server.connection.handle_timeout(now);
        if let Some(client) = &mut self.client {
            client.connection.handle_timeout(now);
        }
        self.relay(now);
    }

    /// The next packet to send, and where, without what has to wait for the client's link.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<(PortId, Packet, Option<Sent>)> {
        self.next_packet(now).or_else(|| {
            // What has left makes room for more.
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

    /// The next packet to the client, of what its link has room for, and of no more than `most` segments.
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

    /// How long the byte at `position` was here. A byte has the same position on both sides.
    fn sojourn(&mut self, now: Instant, position: u64) -> Duration {
        while self.arrivals.len() > 1 && self.arrivals.front().is_some_and(|&(end, _)| end <= position) {
            self.arrivals.pop_front();
        }
        let sojourn = self.arrivals.front().map_or(Duration::ZERO, |&(_, at)| now.saturating_since(at));
        self.waited += sojourn;
        sojourn
    }

    /// The server has answered and the client has not: until then the server hears nothing either, so that who floods the client's
    /// side with SYNs gets no further with the server than without a gateway.
    pub(super) fn awaits_client(&self) -> bool {
        let is_answering = |leg: &Leg| leg.connection.state() == State::SynReceived;
        self.client.as_ref().is_some_and(is_answering)
    }

    /// Nothing will come of it any more; what its ends may still say can pass.
    pub(super) fn is_over(&self) -> bool {
        let is_done = |leg: &Leg| matches!(leg.connection.state(), State::Closed | State::TimeWait);
        is_done(&self.server) && self.client.as_ref().is_none_or(is_done)
    }

    /// It was idle for too long: both ends are told, because it cannot go on without the gateway.
    pub(super) fn expire(&mut self) {
        self.server.connection.abort();
        if let Some(client) = &mut self.client {
            client.connection.abort();
        }
    }

    /// When [`on_timeout`](Self::on_timeout) has something to do next.
    pub(super) fn timeout(&self, idle_timeout_s: u64) -> Instant {
        let server = if self.awaits_client() { None } else { self.server.connection.poll_timeout() };
        let client = self.client.as_ref().and_then(|leg| leg.connection.poll_timeout());
        [server, client].into_iter().flatten().fold(self.expires_at(idle_timeout_s), Ord::min)
    }

    pub(super) fn expires_at(&self, idle_timeout_s: u64) -> Instant {
        self.last_packet + Duration::from_secs(idle_timeout_s)
    }

    /// The smoothed RTT of its client's leg; zero before the first sample.
    pub(super) fn srtt(&self) -> Duration {
        self.client.as_ref().map_or(Duration::ZERO, |client| client.connection.srtt())
    }

    /// Only its turn is missing for its client's leg to send.
    pub(super) fn is_held(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.connection.is_held())
    }

    /// Payload of a full-sized segment to the client; never zero.
    pub(super) fn segment(&self) -> u64 {
        self.client.as_ref().map_or(1, |client| client.connection.segment().max(1))
    }

    /// What it may still send is not even a packet of `quantum`, nor its next one: cut there it would cost as much as a whole one.
    pub(super) fn would_be_cut(&self, quantum: u64) -> bool {
        let client = self.client.as_ref().map(|client| &client.connection);
        client.is_some_and(|client| client.next_piece().min(quantum) > client.allowance())
    }

    /// Its client's leg may send so many bytes.
    pub(super) fn allow(&mut self, bytes: u64) {
        if let Some(client) = &mut self.client {
            client.connection.set_allowance(bytes);
        }
    }

    /// Bytes of payload that it keeps, and what small pieces cost beyond that.
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

    /// The next packet, of up to `most` segments, on the way that those of the other end take.
    fn poll(&mut self, now: Instant, most: u32) -> Option<Packet> {
        let mut packet = match self.super_packets {
            true => self.connection.poll_super_packet(now, most)?,
            false => self.connection.poll_transmit(now)?,
        };
        let is_reset = packet.tcp().is_some_and(|tcp| tcp.flags().contains(Flags::RST));
        if self.connection.is_closed() && !is_reset {
            // Nobody is there to hear that its last bytes were read.
            return None;
        }
        packet.set_path_marks(&self.marks, self.id);
        self.id = self.id.wrapping_add(segments(&packet) as u16);
        Some(packet)
    }
}

/// Packets on the wire.
pub(super) fn segments(packet: &Packet) -> usize {
    packet.gso_size().map_or(1, |size| packet.payload().len().div_ceil(usize::from(size)))
}
