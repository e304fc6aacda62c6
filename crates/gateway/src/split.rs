//! Split mode: a flow as two connections back to back. The gateway sends to the client with its own algorithms.

mod accounts;
mod config;
mod gaps;
pub(crate) mod handover;
mod lapsed;
mod opening;
mod relay;
mod split_flow;
mod status;
mod upload;

use alloc::boxed::Box;
use alloc::vec::Vec;

use paceline_wire::{FlowKey, Instant, Packet, PortId};

pub use config::{SenderConfig, SplitConfig};

use crate::auto::{FlowObservation, Reason};
use crate::config::{GatewayConfig, ShareConfig};
use crate::context::SplitContext as Context;
use crate::icmp::IcmpError;
use crate::ids::{Arena, SplitFlowId};
use crate::keyed::{Key, Map, rekeyed};
use crate::link_report::LinkReport;
use crate::observe::Event;
use crate::pool::{MemoryUse, PIECE_MIN, may_keep};
use crate::ports::{RADIO, WAN};
use crate::ring::{Linked, Links, Ring};
use crate::share::Share;
use crate::status::{FlowStatus, Page};
use crate::table::{Table, page};
use crate::timers::{TIMEOUTS_A_TURN, Timers, disarm};
use lapsed::LapsedFlows;
use opening::OpeningStep;
use split_flow::{Sent, SplitFlow, segments};

/// All split flows, their order of turns, and their timers.
#[derive(Debug, Default)]
pub(crate) struct Split {
    flows: Arena<SplitFlowId, Box<SplitFlow>>,
    by_key: Map<FlowKey, SplitFlowId>,
    /// Flows that may have unscheduled output (ACKs, retransmissions).
    ready: Ring<SplitFlowId>,
    /// The flow whose turn it is at its client's link, and the number of segments that it may still send.
    turn: Option<(SplitFlowId, u32)>,
    timers: Timers<SplitFlowId>,
    /// Flows that are over and whose ends must still be told.
    pub(crate) lapsed: LapsedFlows,
}

/// Our choice: the least number of segments in a turn, so that a device can send them as one super-packet.
const TURN: u64 = 16;
/// The most segments in a turn: more than a super-packet has.
const LONG_TURN: u64 = 64;

impl Linked for Box<SplitFlow> {
    type Id = SplitFlowId;

    fn links(&mut self) -> &mut Links<SplitFlowId> {
        &mut self.links
    }
}

impl Split {
    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Hashes with another key.
    pub(crate) fn set_key(&mut self, key: Key) {
        rekeyed(&mut self.by_key, key);
        self.lapsed.set_key(key);
    }

    /// Returns the flows in some places.
    pub(crate) fn statuses(&self, config: &GatewayConfig, from: usize, places: usize) -> Page<FlowStatus> {
        page(&self.flows, from, places, |flow| Some(flow.status(config)))
    }

    pub(crate) fn find(&self, key: &FlowKey) -> Option<SplitFlowId> {
        if self.flows.is_empty() { None } else { self.by_key.get(key).copied() }
    }

    /// Splits the flow that a client's SYN begins. False if that is impossible.
    pub(crate) fn open(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        key: FlowKey,
        sender: SenderConfig,
        share: &ShareConfig,
        syn: &Packet,
    ) -> bool {
        let Some(flow) = SplitFlow::open(key, ctx.config, sender, share.weight, syn, ctx.now) else {
            return false;
        };
        let id = self.flows.next_id();
        let place = table.insert_split(ctx.config, &key, Share::new(share), id);
        let Some(place) = place else { return false };
        self.flows.insert(Box::new(SplitFlow { place, ..flow }));
        self.by_key.insert(key, id);
        self.mark_ready(id);
        true
    }

    /// Notes why `auto` decided to split the flow.
    pub(crate) fn set_reason(&mut self, key: &FlowKey, reason: Option<Reason>) {
        if let Some(id) = self.find(key) {
            self.flows[id].reason = reason;
        }
    }

    /// Handles a packet of flow `id`. Returns the packet if it begins a new flow in place of this one.
    pub(crate) fn on_packet(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        id: SplitFlowId,
        from: PortId,
        packet: Packet,
    ) -> Option<Packet> {
        if !packet.verify_checksum() {
            ctx.counters.split_bad_checksums += 1;
            return None;
        }
        let flow = &mut *self.flows[id];
        let subscriber = table.memory_use_of_subscriber(flow.place);
        if is_over_budget(ctx, subscriber, flow, from, &packet) {
            ctx.counters.split_drops_no_memory += 1;
            return None;
        }
        flow.last_packet = ctx.now;
        let opened = match (&flow.opening, from == WAN) {
            (Some(_), true) => flow.on_answer(ctx.now, &packet, ctx.config),
            (Some(_), false) => flow.while_asking(ctx.now, &packet),
            (None, true) => {
                flow.on_server_packet(ctx.now, &packet);
                OpeningStep::NotYet
            }
            (None, false) => {
                flow.watch_upload(ctx, subscriber, &packet);
                flow.on_client_packet(ctx.now, &packet, &table.newest_path(flow.place));
                OpeningStep::NotYet
            }
        };
        self.after_opening(ctx, table, id, from, packet, opened)
    }

    fn after_opening(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        id: SplitFlowId,
        from: PortId,
        packet: Packet,
        opened: OpeningStep,
    ) -> Option<Packet> {
        match opened {
            OpeningStep::NotYet => {}
            OpeningStep::Answered => {
                ctx.counters.flows_split += 1;
                ctx.observer.on_event(ctx.now, &self.flows[id].key, &Event::SplitOpened);
            }
            OpeningStep::Restarted => {
                self.remove(ctx, table, id);
                return Some(packet);
            }
            OpeningStep::Ended | OpeningStep::Passes => {
                ctx.counters.split_refused += u64::from(opened == OpeningStep::Ended);
                ctx.out.push_back((if from == WAN { RADIO } else { WAN }, packet));
            }
        }
        self.after(ctx, table, id);
        None
    }

    /// Handles an ICMP message about a packet of either leg. True if it is for the gateway alone.
    pub(crate) fn on_icmp(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        from: PortId,
        error: &IcmpError,
    ) -> bool {
        // The quoted packet went the other way.
        let key = if from == WAN { error.quoted } else { error.quoted.reversed() };
        let Some(id) = self.find(&key) else { return false };
        let flow = &mut *self.flows[id];
        let leg = if from == WAN { Some(&mut flow.server) } else { flow.client.as_mut() };
        match (error.mtu, leg) {
            (Some(mtu), Some(leg)) if leg.connection.is_in_flight(error.seq) => {
                if leg.path_mtu.on_message(ctx.now, mtu) {
                    leg.connection.on_path_mtu(ctx.now, u32::try_from(mtu).unwrap_or(u32::MAX));
                    self.after(ctx, table, id);
                }
                true
            }
            // If the message is about the SYN, the client gets it, as without a gateway, and may try again (RFC 5927,
            // Section 4.1). Linux, too, checks the sequence number in SYN-SENT (tcp_v4_err).
            (None, _) if from == WAN && flow.opening.as_ref().is_some_and(|it| it.isn() == error.seq) => {
                self.remove(ctx, table, id);
                false
            }
            _ => true,
        }
    }

    /// Handles timers that are due.
    pub(crate) fn on_timeout(&mut self, ctx: &mut Context<'_>, table: &mut Table) {
        let flows = &mut self.flows;
        self.timers.tidy(flows.len(), |id| flows.get(id)?.armed);
        let is_due = |flows: &mut Arena<SplitFlowId, Box<SplitFlow>>, id, at| {
            flows.get_mut(id).is_some_and(|flow| disarm(&mut flow.armed, at))
        };
        for _ in 0..TIMEOUTS_A_TURN {
            let due = self.timers.pop_due(ctx.now, |id, at| is_due(&mut self.flows, id, at));
            let Some(id) = due else { break };
            let flow = &mut *self.flows[id];
            flow.on_timeout(ctx.now);
            if flow.expires_at(ctx.config.limits.idle_timeout_s) <= ctx.now {
                ctx.counters.flows_expired += 1;
                flow.expire();
            }
            self.after(ctx, table, id);
        }
        self.lapsed.on_timeout(ctx);
    }

    /// Returns the next packet of the flow whose turn it is, or one that needs no turn.
    pub(crate) fn transmit(&mut self, ctx: &mut Context<'_>, table: &mut Table) -> Option<(PortId, Packet)> {
        if let Some((id, left)) = self.turn {
            let flow = &self.flows[id];
            let left = if flow.would_be_cut(table.quantum(flow.place)) { 0 } else { left };
            if let Some(packet) = self.transmit_in_turn(ctx, table, id, left, false) {
                return Some((RADIO, packet));
            }
        }
        while let Some(id) = self.ready.front() {
            let flow = &mut *self.flows[id];
            if let Some((to, packet, sent)) = flow.transmit(ctx.now) {
                match sent {
                    Some(sent) => note_sent(ctx, table, flow, &packet, sent, false),
                    None if to == WAN => note_ack(ctx, flow),
                    None => flow.on_ack_to_client(ctx.now, &packet, &table.split_path(flow.place).upload),
                }
                return Some((to, packet));
            }
            if flow.is_over() {
                self.remove(ctx, table, id);
                continue;
            }
            flow.ready = false;
            let at = flow.timeout(ctx.config.limits.idle_timeout_s);
            self.timers.set(&mut flow.armed, id, at);
            // If the flow has more to send, it waits for its turn.
            let wants = flow.is_held();
            table.after_split_event(flow.place, ctx.now, flow.send_demand(wants), &LinkReport::default());
            self.ready.remove(&mut self.flows, id);
        }
        None
    }

    /// Gives the turn to flow `id`, with `limit` bytes. Returns its packet, if it has one.
    pub(crate) fn take_turn(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        id: SplitFlowId,
        limit: u64,
    ) -> Option<Packet> {
        let flow = &mut *self.flows[id];
        flow.allow(limit.max(1));
        let turn = (table.turn_bytes(flow.place) / flow.segment()).clamp(TURN, LONG_TURN) as u32;
        self.transmit_in_turn(ctx, table, id, turn, true)
    }

    fn transmit_in_turn(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        id: SplitFlowId,
        left: u32,
        begins: bool,
    ) -> Option<Packet> {
        let flow = &mut *self.flows[id];
        let next = if left > 0 { flow.transmit_to_client(ctx.now, left) } else { None };
        let Some((packet, sent)) = next else {
            self.turn = None;
            // After a turn in which nothing left, the flow does not ask for another one.
            let wants = !begins && (left == 0 || flow.is_held());
            flow.allow(0);
            table.after_split_event(flow.place, ctx.now, flow.send_demand(wants), &LinkReport::default());
            // Data that left made room. The server may be shown a new window, and timers have changed.
            self.mark_ready(id);
            return None;
        };
        self.turn = Some((id, left.saturating_sub(segments(&packet) as u32)));
        if let Some(sent) = sent {
            note_sent(ctx, table, flow, &packet, sent, true);
        }
        Some(packet)
    }

    /// Returns the time of the next action.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        if self.ready.front().is_none() && self.turn.is_none() {
            [self.timers.next(), self.lapsed.next_timeout()].into_iter().flatten().min()
        } else {
            Some(Instant::ZERO)
        }
    }

    /// Runs after every event of a flow: counts what it keeps, informs its subscriber, and lets it send.
    fn after(&mut self, ctx: &mut Context<'_>, table: &mut Table, id: SplitFlowId) {
        let flow = &mut *self.flows[id];
        let (report, timeouts) = flow.report(ctx.now);
        flow.settle(ctx);
        // Its existing window commitment is not charged again.
        let subscriber = table.memory_use_of_subscriber(flow.place);
        let demand = flow.send_demand(flow.is_held());
        let limit = table.share_of_limit(flow.place, demand.in_flight, flow.srtt());
        flow.bound(ctx, subscriber, limit);
        let (path, own) = table.after_split_event(flow.place, ctx.now, demand, &report);
        flow.limit_upload(&path.upload, own);
        if let Some(rtt) = report.rtt {
            ctx.observer.on_event(ctx.now, &flow.key, &Event::Measured { rtt, rtt_min: path.rtt });
        }
        if report.lost > 0 {
            ctx.observer.on_event(ctx.now, &flow.key, &Event::Lost { bytes: report.lost });
        }
        (0..timeouts).for_each(|_| ctx.observer.on_event(ctx.now, &flow.key, &Event::Timeout));
        self.mark_ready(id);
    }

    fn mark_ready(&mut self, id: SplitFlowId) {
        let flow = &mut *self.flows[id];
        if !core::mem::replace(&mut flow.ready, true) {
            self.ready.push_back(&mut self.flows, id);
        }
    }

    /// Ends all flows, because packets have passed without this gateway. Some ends may have been told that their flow
    /// is over. So each end is told with its next packet.
    pub(crate) fn let_go(&mut self, ctx: &mut Context<'_>, table: &mut Table) {
        let ids: Vec<SplitFlowId> = self.flows.iter().map(|(id, _)| id).collect();
        for id in ids {
            let flow = self.forget(ctx, table, id);
            if flow.client.is_some() {
                ctx.counters.split_let_go += 1;
                self.lapsed.add(flow.key);
            }
        }
    }

    /// Forgets flow `id`. Neither end has to be told.
    pub(crate) fn remove(&mut self, ctx: &mut Context<'_>, table: &mut Table, id: SplitFlowId) {
        let flow = self.forget(ctx, table, id);
        if flow.client.is_some() {
            ctx.observer.on_event(ctx.now, &flow.key, &Event::SplitClosed);
        }
    }

    fn forget(&mut self, ctx: &mut Context<'_>, table: &mut Table, id: SplitFlowId) -> Box<SplitFlow> {
        self.turn.take_if(|(turn, _)| *turn == id);
        if self.flows[id].ready {
            self.ready.remove(&mut self.flows, id);
        }
        let flow = self.flows.remove(id);
        self.by_key.remove(&flow.key);
        *ctx.buffered = ctx.buffered.saturating_sub(flow.counted);
        *ctx.advertised = ctx.advertised.saturating_sub(flow.advertised);
        table.remove(ctx.now, flow.place);
        if flow.client.is_some() {
            let status = flow.final_status(ctx.config, ctx.now);
            let (rtt, server_rtt) = (status.totals.rtt_min, status.server_rtt);
            let seen = FlowObservation { rtt, server_rtt, split: true, ..FlowObservation::default() };
            ctx.memory.note(ctx.now, status.subscriber, flow.key.dst.ip(), &seen);
            let ended = Event::Ended(status);
            ctx.observer.on_event(ctx.now, &flow.key, &ended);
        }
        flow
    }
}

/// Accounts for a packet with data that left for the client. It left in its flow's turn, or retransmits the segment
/// that everything waits for.
fn note_sent(
    ctx: &mut Context<'_>,
    table: &mut Table,
    flow: &mut SplitFlow,
    packet: &Packet,
    sent: Sent,
    wants: bool,
) {
    let Sent { bytes, sojourn, retransmission } = sent;
    ctx.observer.on_event(ctx.now, &flow.key, &Event::Sent { bytes, sojourn, retransmission });
    if !retransmission {
        ctx.observer.on_event(ctx.now, &flow.key, &Event::NewData { bytes });
    }
    flow.settle(ctx);
    let wants = wants || flow.is_held();
    table.after_split_sent(flow.place, ctx.now, flow.send_demand(wants), packet.ip_len() as u64);
}

/// Accounts for a packet that left for the server.
fn note_ack(ctx: &mut Context<'_>, flow: &mut SplitFlow) {
    flow.settle(ctx);
    if let Some(event) = flow.acked() {
        ctx.observer.on_event(ctx.now, &flow.key, &event);
    }
}

/// True if there is no memory for this packet. An idle leg always gets the next expected segment, because memory
/// becomes free only as flows move on.
fn is_over_budget(
    ctx: &Context<'_>,
    subscriber: MemoryUse,
    flow: &SplitFlow,
    from: PortId,
    packet: &Packet,
) -> bool {
    let (pool, bytes) = (ctx.config.limits.max_buffer_bytes as u64, packet.payload().len() as u64);
    if bytes == 0 || may_keep(pool, *ctx.buffered, subscriber, bytes.max(PIECE_MIN)) {
        return false;
    }
    let legs = (Some(&flow.server), flow.client.as_ref());
    let (leg, other) = if from == WAN { legs } else { (legs.1, legs.0) };
    let is_next = |leg: &split_flow::Leg| {
        packet.tcp().is_some_and(|tcp| tcp.seq() == leg.connection.expected())
            && leg.connection.readable() == 0
    };
    // If the other end still has data to acknowledge, its ACK lets the flow move on.
    let is_idle = other.is_none_or(|other| other.connection.unacknowledged() == 0);
    !(is_idle && leg.is_some_and(is_next))
}
