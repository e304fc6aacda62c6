//! The gateway: a [`Node`] between a port towards the servers and one towards the radio link.
//!
//! A packet finds its flow, and the flow decides what it means. Then the scheduler asks subscribers and flows in turn
//! for what may leave. All other packets are forwarded unchanged and counted.

mod opening;
mod status;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use paceline_wire::{Duration, Flags, FlowKey, Instant, Node, Packet, PortId};

use crate::auto::PathHistory;
use crate::bound::QueueBoundConfig;
use crate::config::{GatewayConfig, OtherMode, RetransmissionMode};
use crate::context::Context;
use crate::counters::{Counters, PassReason};
use crate::flow::{Flow, Phase};
use crate::handshake::Shifts;
use crate::icmp::{self, IcmpError};
use crate::ids::EntryId;
use crate::keyed::Key;
use crate::link_report::LinkReport;
use crate::non_tcp::Admission;
use crate::observe::{Event, Observer};
use crate::passed_syns::PassedSyns;
use crate::pool::MemoryUse;
use crate::ports::{OVERHEARD, RADIO, WAN};
use crate::scheduler_entry::SchedulerEntry;
use crate::share::Share;
use crate::split::Split;
use crate::status::{FlowStage, FlowStatus};
use crate::table::Table;
use crate::timers::TIMEOUTS_A_TURN;

/// UDP port of QUIC at servers (RFC 9114, Section 3.1.2).
const QUIC_PORT: u16 = 443;

/// The accelerator, for transparent and split flows.
pub struct Gateway {
    pub(crate) table: Table,
    pub(crate) split: Split,
    pub(crate) passed_syns: PassedSyns,
    icmp: icmp::Limit,
    key: Key,
    pub(crate) shared: Shared,
}

/// The parts of the gateway that every flow uses.
pub(crate) struct Shared {
    pub(crate) config: GatewayConfig,
    pub(crate) counters: Counters,
    observer: Box<dyn Observer + Send>,
    pub(crate) out: VecDeque<(PortId, Packet)>,
    /// Payload bytes kept for all flows.
    pub(crate) buffered: u64,
    /// Bytes that servers may send by the windows that they were shown, for all flows.
    pub(crate) advertised: u64,
    /// What earlier flows showed of clients and servers.
    pub(crate) memory: PathHistory,
}

impl Shared {
    fn context(&mut self, now: Instant) -> Context<'_, ()> {
        Context {
            now,
            config: &self.config,
            counters: &mut self.counters,
            observer: &mut *self.observer,
            out: &mut self.out,
            buffered: &mut self.buffered,
            advertised: &mut self.advertised,
            subscriber: (),
            memory: &mut self.memory,
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

    /// A gateway that tells `observer` every event.
    pub fn with_observer(config: GatewayConfig, observer: Box<dyn Observer + Send>) -> Self {
        let table = Table::new(&config);
        let counters = Counters::default();
        Gateway {
            table,
            split: Split::default(),
            passed_syns: PassedSyns::default(),
            icmp: icmp::Limit::default(),
            key: Key::default(),
            shared: Shared {
                config,
                counters,
                observer,
                out: VecDeque::new(),
                buffered: 0,
                advertised: 0,
                memory: PathHistory::default(),
            },
        }
    }

    /// Hashes with this key from this call on. A gateway that faces the Internet draws a key, so that nobody can choose
    /// colliding flows.
    pub fn set_hash_key(&mut self, key: [u64; 2]) {
        self.key = Key(key);
        self.table.set_key(self.key);
        self.split.set_key(self.key);
        self.passed_syns.set_key(self.key);
        self.shared.memory.set_key(self.key);
    }

    /// Resumes a flow that was open before a restart, so that its windows stay rescaled.
    pub fn resume(&mut self, now: Instant, client_to_server: FlowKey, shifts: Shifts) {
        let (share, window_max_bytes) = self.shared.config.known_without_syn(&client_to_server);
        let interval = self.shared.config.schedule.ack_interval;
        let make = |subscriber| {
            Flow::new(client_to_server, subscriber, share.weight, interval, now)
                .bounded(window_max_bytes)
                .resumed(shifts)
        };
        let share = Share::new(&share);
        if let Some(id) = self.table.insert(&self.shared.config, client_to_server, share, make) {
            // Its ends may be gone. Then only a timer forgets it.
            self.table.arm(id, self.shared.repairs());
            self.shared.counters.flows_resumed += 1;
        }
    }

    /// Sets mode, sender and rules for new flows and subscribers. Existing ones keep theirs.
    pub fn set_policy(&mut self, config: &GatewayConfig) {
        let own = &mut self.shared.config;
        own.mode = config.mode;
        own.split.sender = config.split.sender;
        own.rules.clone_from(&config.rules);
    }

    /// Tells the two ends of a flow that was split before a restart, each with its next packet. A flow that this
    /// gateway has goes on.
    pub fn end(&mut self, client_to_server: FlowKey) {
        if self.split.find(&client_to_server).is_none() {
            self.split.lapsed.add(client_to_server);
        }
    }

    /// Lets go of all split flows after the gateway was away. The kernel may have reset some of them, and nobody knows
    /// what their ends lack.
    pub fn let_go_of_split_flows(&mut self, now: Instant) {
        self.split.let_go(&mut self.shared.context(now), &mut self.table);
    }

    /// Notes how long a packet waited for this gateway: host queueing delay. From the queue target on, it means an
    /// overloaded machine, not the subscriber's queue.
    pub fn note_wait(&mut self, waited: Duration) {
        self.table.crowded = waited >= QueueBoundConfig::default().target;
    }

    /// Returns what flows showed of clients and servers.
    pub fn memory(&self) -> &PathHistory {
        &self.shared.memory
    }

    /// Takes over the memory of another gateway.
    pub fn set_memory(&mut self, memory: PathHistory) {
        self.shared.memory = memory;
    }

    /// Returns the counts since the start.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Number of flows in the table.
    pub fn flows(&self) -> usize {
        self.table.len()
    }

    /// Number of split flows among them.
    pub fn split_flows(&self) -> usize {
        self.split.len()
    }

    /// Number of subscribers, those without TCP flows included.
    pub fn subscribers(&self) -> usize {
        self.table.subscribers()
    }

    /// Bytes of payload kept.
    pub fn buffered_bytes(&self) -> u64 {
        self.shared.buffered
    }

    /// Returns the transparent flow in this place, and the context of an event.
    fn at(&mut self, now: Instant, id: EntryId) -> Option<(&mut Flow, Context<'_>)> {
        let (flow, subscriber) = self.table.flow_mut(id)?;
        Some((flow, self.shared.context(now).of(subscriber)))
    }

    fn on_segment(&mut self, now: Instant, from: PortId, id: EntryId, packet: Packet) {
        let refuses = |flow: &Flow| flow.phase() == Phase::Opening && flow.is_refused_by(from, &packet);
        if self.table.flow(id).is_some_and(refuses) {
            self.remove(now, id, FlowStage::Reset);
            return self.shared.forward(from, packet);
        }
        let Some((flow, mut ctx)) = self.at(now, id) else { return self.shared.forward(from, packet) };
        flow.on_packet(now);
        let before = flow.in_flight();
        let report = if flow.phase() == Phase::Opening {
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

    /// Runs after every event of a flow: informs its subscriber, lets the flow join the turns, sets its timer.
    fn after(&mut self, id: EntryId, now: Instant, in_flight_before: u64, report: LinkReport) {
        let Some((flow, ctx)) = self.at(now, id) else { return };
        flow.settle(ctx.buffered);
        ctx.counters.peak_buffered_bytes = ctx.counters.peak_buffered_bytes.max(*ctx.buffered);
        let repairs = self.shared.repairs();
        self.table.after_event(id, now, in_flight_before, &report, repairs);
        let Some((flow, ctx)) = self.at(now, id) else { return };
        if let Some(seen) = flow.seen(now) {
            let client = ctx.config.sharing.subscriber(flow.key.src.ip());
            ctx.memory.note(now, client, flow.key.dst.ip(), &seen);
        }
    }

    /// Forgets a transparent flow if it was idle for too long. True if it did.
    fn expire(&mut self, now: Instant, id: EntryId) -> bool {
        let idle_timeout_s = self.shared.config.limits.idle_timeout_s;
        let Some(flow) = self.table.flow(id).filter(|flow| flow.is_expired(now, idle_timeout_s)) else {
            return false;
        };
        self.shared.counters.flows_expired += u64::from(flow.phase() != Phase::Closed);
        self.remove(now, id, FlowStage::Idle);
        true
    }

    /// Gives the turn to the flow in this place, with `limit` bytes. Returns its packet, if it has one.
    fn take_turn(&mut self, now: Instant, id: EntryId, limit: u64) -> Option<Packet> {
        if let Some(entry) = self.table.split(id) {
            let mut ctx = self.shared.context(now);
            return self.split.take_turn(&mut ctx, &mut self.table, entry.flow, limit);
        }
        let (flow, mut ctx) = self.at(now, id)?;
        let before = flow.in_flight();
        let packet = flow.take_next(&mut ctx, limit);
        flow.settle(ctx.buffered);
        let bytes = packet.as_ref().map_or(0, |packet| packet.ip_len() as u64);
        self.table.after_sent(id, now, before, bytes, self.shared.repairs());
        packet
    }

    fn remove(&mut self, now: Instant, id: EntryId, end: FlowStage) {
        let SchedulerEntry::Flow(flow) = self.table.remove(now, id) else { return };
        let MemoryUse { kept, advertised } = flow.memory_use();
        self.shared.buffered = self.shared.buffered.saturating_sub(kept);
        self.shared.advertised = self.shared.advertised.saturating_sub(advertised);
        if flow.phase() != Phase::Closed {
            let status = FlowStatus { stage: end, ..flow.status(&self.shared.config) };
            self.shared.observer.on_event(now, &flow.key, &Event::Ended(status));
            self.shared.observer.on_event(now, &flow.key, &Event::Closed);
        }
    }

    /// Handles a packet without a whole TCP segment. False if it was for the gateway alone.
    fn on_opaque(&mut self, now: Instant, from: PortId, packet: &Packet) -> bool {
        self.shared.counters.pass(PassReason::NotTcp);
        let Some(error) = icmp::parse(packet.header()) else { return true };
        if !self.icmp.allows(now, self.key, error.source) {
            return true;
        }
        if self.split.on_icmp(&mut self.shared.context(now), &mut self.table, from, &error) {
            return false;
        }
        if from == RADIO {
            self.on_path_mtu(now, &error);
        }
        true
    }

    /// Handles a copy of an ICMP message, which reaches its receiver without the gateway. Either side may have sent the
    /// quoted packet.
    fn on_overheard(&mut self, now: Instant, packet: &Packet) {
        let Some(error) = icmp::parse(packet.header()).filter(|error| error.mtu.is_some()) else { return };
        if !self.icmp.allows(now, self.key, error.source) {
            return;
        }
        for from in [RADIO, WAN] {
            self.split.on_icmp(&mut self.shared.context(now), &mut self.table, from, &error);
        }
        self.on_path_mtu(now, &error);
    }

    /// Handles a message about a packet from the server of a transparent flow to the client.
    fn on_path_mtu(&mut self, now: Instant, error: &IcmpError) {
        let Some((mtu, id)) = error.mtu.zip(self.table.find(&error.quoted.reversed())) else { return };
        if let Some((flow, mut ctx)) = self.at(now, id) {
            flow.on_path_mtu(&mut ctx, error.seq, mtu);
        }
    }

    /// Counts and forwards a packet other than TCP.
    fn pass_non_tcp(&mut self, now: Instant, from: PortId, packet: Packet) {
        let Some((src, dst)) = packet.addresses() else { return self.shared.forward(from, packet) };
        let counters = &mut self.shared.counters;
        let bytes = packet.ip_len() as u64;
        let server_port = packet.udp_ports().map(|(src, dst)| if from == WAN { src } else { dst });
        counters.quic_bytes += if server_port == Some(QUIC_PORT) { bytes } else { 0 };
        let shared = self.shared.config.sharing.other == OtherMode::Shared;
        if from == RADIO {
            counters.other_uplink_packets += 1;
            counters.other_uplink_bytes += bytes;
            if shared {
                self.table.non_tcp_from_client(&self.shared.config, now, src, bytes);
            }
            return self.shared.forward(from, packet);
        }
        counters.other_downlink_packets += 1;
        counters.other_downlink_bytes += bytes;
        if !shared {
            return self.shared.forward(from, packet);
        }
        let Shared { config, buffered, .. } = &mut self.shared;
        match self.table.non_tcp_to_client(config, now, dst, packet, buffered) {
            Admission::Forward(packet) => self.shared.forward(from, packet),
            Admission::Queued => self.shared.counters.other_queued += 1,
            Admission::Dropped => self.shared.counters.other_dropped += 1,
        }
    }

    /// Returns the next waiting packet other than TCP that may leave.
    fn next_non_tcp(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        let Shared { counters, buffered, .. } = &mut self.shared;
        let next = self.table.next_non_tcp(now, &mut counters.other_dropped, buffered)?;
        counters.packets_out += 1;
        Some((RADIO, next))
    }

    /// Handles a packet of a split flow. Returns the packet if it belongs to none.
    fn on_split(&mut self, now: Instant, from: PortId, key: &FlowKey, packet: Packet) -> Option<Packet> {
        match self.split.find(key) {
            Some(id) => {
                self.split.on_packet(&mut self.shared.context(now), &mut self.table, id, from, packet)
            }
            None => self.split.lapsed.on_packet(&mut self.shared.context(now), from, key, packet),
        }
    }
}

impl Node for Gateway {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        if port == OVERHEARD {
            return self.on_overheard(arrival, &packet);
        }
        self.shared.counters.packets_in += 1;
        let Some((key, flags)) = packet.flow_key().zip(packet.tcp().map(|tcp| tcp.flags())) else {
            if self.on_opaque(arrival, port, &packet) {
                self.pass_non_tcp(arrival, port, packet);
            }
            return;
        };
        let key = if port == WAN { key.reversed() } else { key };
        if port == RADIO && !packet.payload().is_empty() {
            self.table.note_uploaded(&self.shared.config, key.src.ip(), packet.payload().len() as u64);
        }
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
        self.split.on_timeout(&mut self.shared.context(now), &mut self.table);
        self.table.non_tcp_timeouts(now);
        // More than these stay due until the next turn.
        for _ in 0..TIMEOUTS_A_TURN {
            let Some(id) = self.table.pop_due(now) else { break };
            if let Some(entry) = self.table.split(id) {
                // For a split flow this timer only makes the schedule look again.
                self.table.after_split_event(id, now, entry.demand, &LinkReport::default());
                continue;
            }
            if self.expire(now, id) {
                continue;
            }
            let Some((flow, mut ctx)) = self.at(now, id) else { continue };
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
            if let Some(next) = self.split.transmit(&mut self.shared.context(now), &mut self.table) {
                self.shared.counters.packets_out += 1;
                return Some(next);
            }
            if let Some(next) = self.next_non_tcp(now) {
                return Some(next);
            }
            let Some((id, limit)) = self.table.next_sender(now, self.shared.config.schedule.mode) else {
                // The last TCP flow that waited may just have gone, so waiting packets other than TCP may leave.
                return self.next_non_tcp(now);
            };
            if let Some(packet) = self.take_turn(now, id, limit) {
                self.shared.counters.packets_out += 1;
                return Some((RADIO, packet));
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.table.next_timeout(), self.split.next_timeout()].into_iter().flatten().min()
    }
}
