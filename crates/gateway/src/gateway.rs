//! The gateway: a [`Node`] between a port towards the servers and one towards the radio link.
//!
//! Control flow: a packet finds its flow; the flow decides what it means; then the scheduler asks subscribers and flows
//! in turn for what may leave. Everything else forwards unchanged, and is counted.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use paceline_wire::{Flags, FlowKey, Instant, Node, Packet, PortId, Seq, Tcp};

use crate::config::{GatewayConfig, RetransmissionMode, VirtualWindowMode};
use crate::counters::{Counters, PassReason};
use crate::flow::{Context, Flow, LinkReport, Phase};
use crate::handshake::Shifts;
use crate::icmp;
use crate::mode::Mode;
use crate::observe::{Event, Observer};
use crate::pool::Holdings;
use crate::share::Share;
use crate::split::Split;
use crate::table::Table;

/// The port towards the servers.
pub const WAN: PortId = PortId(0);
/// The port towards the clients.
pub const RADIO: PortId = PortId(1);

/// An accelerator, transparent or split.
pub struct Gateway {
    table: Table,
    split: Split,
    shared: Shared,
}

/// What every flow uses.
struct Shared {
    config: GatewayConfig,
    counters: Counters,
    observer: Box<dyn Observer + Send>,
    out: VecDeque<(PortId, Packet)>,
    /// Payload bytes kept for all flows.
    buffered: u64,
    /// Bytes that servers may have on their way, for all flows.
    promised: u64,
}

impl Shared {
    fn context(&mut self, now: Instant) -> Context<'_> {
        Context {
            now,
            config: &self.config,
            counters: &mut self.counters,
            observer: &mut *self.observer,
            out: &mut self.out,
            buffered: &mut self.buffered,
            promised: &mut self.promised,
            subscriber: Holdings::default(),
        }
    }

    fn forward(&mut self, from: PortId, packet: Packet) {
        let to = if from == WAN { RADIO } else { WAN };
        self.out.push_back((to, packet));
    }

    fn repairs(&self) -> bool {
        self.config.retransmission.mode != RetransmissionMode::None
    }
}

impl Gateway {
    /// A gateway without flows. The configuration should have passed [`GatewayConfig::check`].
    pub fn new(config: GatewayConfig) -> Self {
        Gateway::with_observer(config, Box::new(()))
    }

    /// A gateway that tells `observer` of everything.
    pub fn with_observer(config: GatewayConfig, observer: Box<dyn Observer + Send>) -> Self {
        let table = Table::new(&config);
        let counters = Counters::default();
        Gateway {
            table,
            split: Split::default(),
            shared: Shared { config, counters, observer, out: VecDeque::new(), buffered: 0, promised: 0 },
        }
    }

    /// Takes up a flow that was open before a restart, so that its windows go on being rescaled.
    pub fn resume(&mut self, now: Instant, client_to_server: FlowKey, shifts: Shifts) {
        let share = self.shared.config.share(&client_to_server);
        let interval = self.shared.config.schedule.ack_interval;
        let make =
            |subscriber| Flow::new(client_to_server, subscriber, share.weight, interval, now).resumed(shifts);
        if self.table.insert(&self.shared.config, client_to_server, Share::new(&share), make).is_some() {
            self.shared.counters.flows_resumed += 1;
        }
    }

    /// A flow was split before a restart: its ends are told, each with its next packet.
    pub fn end(&mut self, client_to_server: FlowKey) {
        self.split.lapsed.add(client_to_server);
    }

    /// Counts since the start.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Flows in the table.
    pub fn flows(&self) -> usize {
        self.table.len() + self.split.len()
    }

    /// Of those, split ones.
    pub fn split_flows(&self) -> usize {
        self.split.len()
    }

    /// Payload bytes kept.
    pub fn buffered_bytes(&self) -> u64 {
        self.shared.buffered
    }

    /// The window scale that a client's SYN should have: the least that can show the largest virtual window.
    fn shift_wanted(&self) -> Option<u8> {
        let window = &self.shared.config.virtual_window;
        let raises = matches!(window.mode, VirtualWindowMode::Fixed | VirtualWindowMode::Sized);
        if !window.add_window_scale || !raises {
            return None;
        }
        (0..=14).find(|&shift| 65_535u64 << shift >= window.max_bytes)
    }

    /// A new connection, or another try of one that is known.
    fn on_syn(&mut self, now: Instant, from: PortId, key: FlowKey, packet: Packet) {
        let Some(tcp) = packet.tcp() else { return };
        let (isn, flags) = (tcp.seq().0, tcp.flags());
        if flags.intersects(Flags::RST | Flags::FIN) {
            self.shared.counters.pass(PassReason::Unacceptable);
            return self.shared.forward(from, packet);
        }
        let known = self.table.find(&key);
        if let Some(id) = known
            && !self.belongs(id, from, tcp)
        {
            return self.on_strange_syn(now, from, id, packet);
        }
        let known = known.filter(|&id| self.is_same(id, from, isn, flags));
        let id = match known {
            Some(id) => id,
            None => match self.admit(now, from, &key, &packet) {
                Ok(Admitted::Split) => return,
                Ok(Admitted::Transparent(id)) => id,
                Err(reason) => {
                    self.shared.counters.pass(reason);
                    return self.shared.forward(from, packet);
                }
            },
        };
        let shift = self.shift_wanted();
        let (flow, mut ctx) = (self.table.flow_mut(id), self.shared.context(now));
        if from == WAN {
            flow.on_server_syn(&mut ctx, packet)
        } else {
            flow.on_client_syn(&mut ctx, packet, shift)
        }
        self.after(id, now, 0, LinkReport::default());
    }

    /// Whether a SYN may change the flow that is known by its addresses and ports. While that flow is open, only the
    /// SYNs that opened it may (RFC 5961, Section 4), and an answer must acknowledge the SYN that it answers.
    fn belongs(&self, id: u32, from: PortId, tcp: Tcp<'_>) -> bool {
        let flow = self.table.flow(id);
        let (seen, other) =
            if from == WAN { (flow.server_isn, flow.client_isn) } else { (flow.client_isn, flow.server_isn) };
        if tcp.flags().contains(Flags::ACK) {
            return seen.is_none_or(|isn| isn == tcp.seq().0)
                && other.is_some_and(|isn| {
                    tcp.ack().distance(Seq(isn)) > 0 && tcp.ack().distance(Seq(isn)) <= 1_500
                });
        }
        matches!(flow.phase, Phase::Closed | Phase::Opening) || seen.is_none_or(|isn| isn == tcp.seq().0)
    }

    /// A SYN beside an open flow passes. If it is a new connection of a client that has forgotten the old one, the server answers,
    /// and the old one is over; else the server asks the client (RFC 5961, Section 4.2).
    fn on_strange_syn(&mut self, now: Instant, from: PortId, id: u32, packet: Packet) {
        self.shared.counters.pass(PassReason::Unacceptable);
        let Some(tcp) = packet.tcp() else { return };
        let flow = self.table.flow_mut(id);
        if !tcp.flags().contains(Flags::ACK) {
            flow.pending_syn = Some(tcp.seq().add(tcp.seq_len()));
        } else if from == WAN && flow.pending_syn == Some(tcp.ack()) {
            self.remove(now, id);
        }
        self.shared.forward(from, packet);
    }

    /// A SYN that was seen before, or the answer to one. A new initial sequence number is a new connection, except for
    /// an answer: an old duplicate must not end a flow (RFC 9293, Section 3.10.7.4).
    fn is_same(&self, id: u32, from: PortId, isn: u32, flags: Flags) -> bool {
        let flow = self.table.flow(id);
        let seen = if from == WAN { flow.server_isn } else { flow.client_isn };
        flags.contains(Flags::ACK) || seen == Some(isn) || (seen.is_none() && flow.phase == Phase::Opening)
    }

    /// The new flow that `syn` begins, unless it is to pass.
    fn admit(
        &mut self,
        now: Instant,
        from: PortId,
        key: &FlowKey,
        syn: &Packet,
    ) -> Result<Admitted, PassReason> {
        if let Some(old) = self.table.find(key) {
            self.remove(now, old);
        }
        if syn.tcp().is_none_or(|tcp| tcp.flags().contains(Flags::ACK)) {
            return Err(PassReason::MidFlow);
        }
        let choice = self.shared.config.choose(key, syn);
        if let Mode::Pass(reason) = choice.mode {
            return Err(reason);
        }
        if self.flows() >= self.shared.config.limits.max_flows {
            return Err(PassReason::TableFull);
        }
        // What a server opens has its sender behind the radio link: splitting would not help it.
        if let (Mode::Split(sender), true) = (choice.mode, from == RADIO)
            && self.split.open(&mut self.shared.context(now), *key, sender, syn)
        {
            return Ok(Admitted::Split);
        }
        let interval = self.shared.config.schedule.ack_interval;
        let make = |subscriber| Flow::new(*key, subscriber, choice.share.weight, interval, now);
        let id = self.table.insert(&self.shared.config, *key, Share::new(&choice.share), make);
        id.map(Admitted::Transparent).ok_or(PassReason::TableFull)
    }

    fn on_segment(&mut self, now: Instant, from: PortId, id: u32, packet: Packet) {
        let subscriber = self.table.holdings_of_subscriber(id);
        let (flow, mut ctx) = (self.table.flow_mut(id), self.shared.context(now));
        ctx.subscriber = subscriber;
        flow.last_packet = now;
        let before = flow.in_flight();
        let report = if flow.phase == Phase::Opening {
            let to = if from == WAN { RADIO } else { WAN };
            ctx.out.push_back((to, packet));
            LinkReport::default()
        } else if from == WAN {
            flow.on_server_packet(&mut ctx, packet);
            LinkReport::default()
        } else {
            let report = flow.on_client_packet(&mut ctx, packet);
            flow.release_held(&mut ctx);
            report
        };
        self.after(id, now, before, report);
    }

    /// After every event of a flow: its subscriber learns, it may send, its timer is set.
    fn after(&mut self, id: u32, now: Instant, in_flight_before: u64, report: LinkReport) {
        let peak = &mut self.shared.counters.peak_buffered_bytes;
        *peak = self.shared.buffered.max(*peak);
        self.table.after_event(id, now, in_flight_before, &report, self.shared.repairs());
    }

    fn remove(&mut self, now: Instant, id: u32) {
        let flow = self.table.remove(now, id);
        let Holdings { kept, promised } = flow.holdings();
        self.shared.buffered = self.shared.buffered.saturating_sub(kept);
        self.shared.promised = self.shared.promised.saturating_sub(promised);
        if flow.phase != Phase::Closed {
            self.shared.observer.on_event(now, &flow.key, &Event::Closed);
        }
    }

    /// A packet without a whole TCP segment. False if it was for the gateway alone.
    fn on_opaque(&mut self, now: Instant, from: PortId, packet: &Packet) -> bool {
        self.shared.counters.pass(PassReason::NotTcp);
        let Some(error) = icmp::parse(packet.header()) else { return true };
        if self.split.on_icmp(&mut self.shared.context(now), from, &error) {
            return false;
        }
        // About what the server sent to the client.
        if let (Some(mtu), true) = (error.mtu, from == RADIO)
            && let Some(id) = self.table.find(&error.quoted.reversed())
        {
            let (flow, mut ctx) = (self.table.flow_mut(id), self.shared.context(now));
            if flow.is_on_its_way(error.seq) {
                flow.on_path_mtu(&mut ctx, mtu);
            }
        }
        true
    }

    /// A packet of a split flow; it comes back if it is of none.
    fn on_split(&mut self, now: Instant, from: PortId, key: &FlowKey, packet: Packet) -> Option<Packet> {
        match self.split.find(key) {
            Some(id) => self.split.on_packet(&mut self.shared.context(now), id, from, packet),
            None => self.split.lapsed.on_packet(&mut self.shared.context(now), from, key, packet),
        }
    }
}

/// A new flow.
enum Admitted {
    Transparent(u32),
    Split,
}

impl Node for Gateway {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        self.shared.counters.packets_in += 1;
        let Some((key, flags)) = packet.flow_key().zip(packet.tcp().map(|tcp| tcp.flags())) else {
            if self.on_opaque(arrival, port, &packet) {
                self.shared.forward(port, packet);
            }
            return;
        };
        let key = if port == WAN { key.reversed() } else { key };
        let Some(packet) = self.on_split(arrival, port, &key, packet) else { return };
        if flags.contains(Flags::SYN) {
            return self.on_syn(arrival, port, key, packet);
        }
        match self.table.find(&key) {
            Some(id) => self.on_segment(arrival, port, id, packet),
            None => {
                self.shared.counters.pass(PassReason::MidFlow);
                self.shared.forward(port, packet);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.split.on_timeout(&mut self.shared.context(now));
        while let Some(id) = self.table.pop_due(now) {
            if self.table.flow(id).is_expired(now, self.shared.config.limits.idle_timeout_s) {
                if self.table.flow(id).phase != Phase::Closed {
                    self.shared.counters.flows_expired += 1;
                }
                self.remove(now, id);
                continue;
            }
            let subscriber = self.table.holdings_of_subscriber(id);
            let (flow, mut ctx) = (self.table.flow_mut(id), self.shared.context(now));
            ctx.subscriber = subscriber;
            let before = flow.in_flight();
            flow.on_timeout(&mut ctx);
            self.after(id, now, before, LinkReport::default());
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        loop {
            if let Some(next) = self.shared.out.pop_front() {
                self.shared.counters.packets_out += 1;
                return Some(next);
            }
            if let Some(next) = self.split.transmit(&mut self.shared.context(now)) {
                self.shared.counters.packets_out += 1;
                return Some(next);
            }
            let (id, limit) = self.table.next_sender(now, self.shared.config.schedule.mode)?;
            let (flow, mut ctx) = (self.table.flow_mut(id), self.shared.context(now));
            let before = flow.in_flight();
            let packet = flow.take_next(&mut ctx, limit);
            let bytes = packet.as_ref().map_or(0, |packet| packet.ip_len() as u64);
            self.table.after_sent(id, now, before, bytes, self.shared.repairs());
            if let Some(packet) = packet {
                self.shared.counters.packets_out += 1;
                return Some((RADIO, packet));
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.table.next_timeout(), self.split.next_timeout()].into_iter().flatten().min()
    }
}
