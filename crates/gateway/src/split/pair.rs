//! A split flow: a connection with the server and one with the client, and the order of work between them.
//!
//! Each connection takes over the initial sequence number of the end that it stands in for, and goes on with that end's
//! timestamps. So a byte has the same number on both sides of the gateway: what passes it unchanged (a refusal, an ICMP message, a
//! FIN that comes again when the flow is forgotten) means the same to both ends as without a gateway, and nobody can guess more
//! than the ends let him. TIME-WAIT is where it is without a gateway, too: at the end that closed first.

use alloc::boxed::Box;

use paceline_tcp::{Connection, State};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, PathMarks, PortId};

use super::SenderConfig;
use super::opening::Opening;
use crate::auto::Reason;
use crate::config::GatewayConfig;
use crate::ring::Links;
use crate::{RADIO, WAN};

/// One flow.
#[derive(Debug)]
pub(super) struct Pair {
    /// Source is the client.
    pub(super) key: FlowKey,
    pub(super) server: Side,
    /// There is none before the server has answered.
    pub(super) client: Option<Side>,
    /// Until then, what the client wants.
    pub(super) opening: Option<Box<Opening>>,
    pub(super) since: Instant,
    pub(super) last_packet: Instant,
    /// Why it is split, if it is `auto` that decided.
    pub(super) reason: Option<Reason>,
    /// How long data may wait here.
    pub(super) target: Duration,
    /// What it keeps, as last counted among that of all flows.
    pub(super) counted: u64,
    /// It may have something to send.
    pub(super) ready: bool,
    pub(super) links: Links,
    /// Its timer.
    pub(super) armed: Option<Instant>,
}

/// One of the two connections.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) connection: Connection,
    /// Of packets of the other end that go the same way. The hop limit stays as it is: bridges do not lower it, and a router
    /// that hands packets to the gateway does so itself.
    pub(super) marks: PathMarks,
    /// IPv4 identification of the next packet.
    id: u16,
}

impl Pair {
    /// The flow that `syn` asks for: a SYN of the same kind leaves for the server.
    pub(super) fn open(
        key: FlowKey,
        config: &GatewayConfig,
        sender: SenderConfig,
        syn: &Packet,
        now: Instant,
    ) -> Option<Pair> {
        let (opening, server) = Opening::begin(key, config, sender, syn, now)?;
        Some(Pair {
            key,
            server,
            client: None,
            opening: Some(Box::new(opening)),
            since: now,
            last_packet: now,
            reason: None,
            target: Duration::from_millis(config.virtual_window.target_ms),
            counted: 0,
            ready: false,
            links: Links::default(),
            armed: None,
        })
    }

    /// A packet of the client, once the server has answered.
    pub(super) fn on_client_packet(&mut self, now: Instant, packet: &Packet) {
        if let Some(client) = &mut self.client {
            client.connection.handle_packet(now, packet);
        }
        if let Some(marks) = packet.path_marks() {
            self.server.marks = marks;
        }
        self.relay(now, self.target);
    }

    /// A packet of the server, once the client is being answered.
    pub(super) fn on_server_packet(&mut self, now: Instant, packet: &Packet) {
        self.server.connection.handle_packet(now, packet);
        if let (Some(client), Some(marks)) = (&mut self.client, packet.path_marks()) {
            client.marks = marks;
        }
        self.relay(now, self.target);
    }

    /// Does what is due.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.server.connection.handle_timeout(now);
        if let Some(client) = &mut self.client {
            client.connection.handle_timeout(now);
        }
        self.relay(now, self.target);
    }

    /// The next packet to send, and where.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.next_packet(now).or_else(|| {
            // What has left makes room for more.
            self.relay(now, self.target);
            self.next_packet(now)
        })
    }

    fn next_packet(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        if let Some(packet) = self.client.as_mut().and_then(|client| client.poll(now)) {
            return Some((RADIO, packet));
        }
        if self.awaits_client() {
            return None;
        }
        self.server.poll(now).map(|packet| (WAN, packet))
    }

    /// The server has answered and the client has not: until then the server hears nothing either, so that who floods the client's
    /// side with SYNs gets no further with the server than without a gateway.
    fn awaits_client(&self) -> bool {
        let is_answering = |side: &Side| side.connection.state() == State::SynReceived;
        self.client.as_ref().is_some_and(is_answering)
    }

    /// Nothing will come of it any more; what its ends may still say can pass.
    pub(super) fn is_over(&self) -> bool {
        let is_done = |side: &Side| matches!(side.connection.state(), State::Closed | State::TimeWait);
        is_done(&self.server) && self.client.as_ref().is_none_or(is_done)
    }

    /// It was idle for too long: both ends are told, because it cannot go on without the gateway.
    pub(super) fn expire(&mut self, now: Instant) {
        self.server.connection.abort(now);
        if let Some(client) = &mut self.client {
            client.connection.abort(now);
        }
    }

    /// When [`on_timeout`](Self::on_timeout) has something to do next.
    pub(super) fn timeout(&self, idle_timeout_s: u64) -> Instant {
        let server = if self.awaits_client() { None } else { self.server.connection.poll_timeout() };
        let client = self.client.as_ref().and_then(|side| side.connection.poll_timeout());
        [server, client].into_iter().flatten().fold(self.expires_at(idle_timeout_s), Ord::min)
    }

    pub(super) fn expires_at(&self, idle_timeout_s: u64) -> Instant {
        self.last_packet + Duration::from_secs(idle_timeout_s)
    }

    /// Bytes of payload that it keeps.
    pub(super) fn buffered(&self) -> u64 {
        self.server.connection.buffered() + self.client.as_ref().map_or(0, |side| side.connection.buffered())
    }
}

impl Side {
    pub(super) fn new(connection: Connection, marks: PathMarks) -> Side {
        Side { connection, marks, id: 0 }
    }

    /// The next packet, on the way that those of the other end take.
    fn poll(&mut self, now: Instant) -> Option<Packet> {
        let mut packet = self.connection.poll_transmit(now)?;
        let is_reset = packet.tcp().is_some_and(|tcp| tcp.flags().contains(Flags::RST));
        if self.connection.is_closed() && !is_reset {
            // Nobody is there to hear that its last bytes were read.
            return None;
        }
        packet.set_path_marks(&self.marks, self.id);
        let segments = packet.gso_size().map_or(1, |size| packet.payload().len().div_ceil(usize::from(size)));
        self.id = self.id.wrapping_add(segments as u16);
        Some(packet)
    }
}
