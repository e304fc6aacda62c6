//! Split mode: a flow as two connections back to back, so that the gateway sends to the client with algorithms of its own.

mod accounts;
mod config;
mod gaps;
#[cfg(feature = "serde")]
pub(crate) mod handover;
mod lapsed;
mod opening;
mod pair;
mod relay;
mod status;

use alloc::boxed::Box;
use alloc::vec::Vec;

use paceline_wire::{FlowKey, Instant, Packet, PortId};
use slab::Slab;

pub use config::{SenderConfig, SplitConfig};

use crate::auto::{Reason, Seen};
use crate::config::{GatewayConfig, ShareConfig};
use crate::flow::{Context, LinkReport};
use crate::gateway::TIMEOUTS_A_TURN;
use crate::icmp::IcmpError;
use crate::keyed::{Key, Map, rekeyed};
use crate::observe::Event;
use crate::pool::{PIECE_MIN, may_keep};
use crate::ring::{Linked, Links, Ring};
use crate::share::Share;
use crate::status::{FlowStatus, Page};
use crate::table::{Table, page};
use crate::timers::{Timers, disarm};
use crate::{RADIO, WAN};
use lapsed::Lapsed;
use opening::Opened;
use pair::{Pair, Sent, segments};

/// All split flows, who sends next, and whose timer is next.
#[derive(Debug, Default)]
pub(crate) struct Split {
    pairs: Slab<Box<Pair>>,
    by_key: Map<FlowKey, u32>,
    /// Flows that may have something to send that waits for nobody's turn.
    ready: Ring,
    /// The flow whose turn it is at its client's link, and how many packets it may still send.
    turn: Option<(u32, u32)>,
    timers: Timers,
    /// Those of an earlier process.
    pub(crate) lapsed: Lapsed,
}

/// Our choice: so many segments of a flow leave side by side at least, for a device to send them as one super-packet.
const TURN: u64 = 16;
/// More than a super-packet has.
const LONG_TURN: u64 = 64;

impl Linked for Box<Pair> {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Split {
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Hashes with another key.
    pub(crate) fn set_key(&mut self, key: Key) {
        rekeyed(&mut self.by_key, key);
        self.lapsed.set_key(key);
    }

    /// The flows in some places.
    pub(crate) fn statuses(&self, config: &GatewayConfig, from: usize, places: usize) -> Page<FlowStatus> {
        page(&self.pairs, from, places, |pair| Some(pair.status(config)))
    }

    pub(crate) fn find(&self, key: &FlowKey) -> Option<u32> {
        if self.pairs.is_empty() { None } else { self.by_key.get(key).copied() }
    }

    /// Splits the flow that a client's SYN begins. False if it cannot be.
    pub(crate) fn open(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        key: FlowKey,
        sender: SenderConfig,
        share: &ShareConfig,
        syn: &Packet,
    ) -> bool {
        let Some(pair) = Pair::open(key, ctx.config, sender, share.weight, syn, ctx.now) else {
            return false;
        };
        let entry = self.pairs.vacant_entry();
        let id = entry.key() as u32;
        let place = table.insert_split(ctx.config, &key, Share::new(share), id);
        let Some(place) = place else { return false };
        entry.insert(Box::new(Pair { place, ..pair }));
        self.by_key.insert(key, id);
        self.mark_ready(id);
        true
    }

    /// `auto` decided that the flow is split.
    pub(crate) fn set_reason(&mut self, key: &FlowKey, reason: Option<Reason>) {
        if let Some(id) = self.find(key) {
            self.pairs[id as usize].reason = reason;
        }
    }

    /// A packet of flow `id`. It comes back if it begins a new flow in place of this one.
    pub(crate) fn on_packet(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        id: u32,
        from: PortId,
        packet: Packet,
    ) -> Option<Packet> {
        if !packet.verify_checksum() {
            ctx.counters.split_bad_checksums += 1;
            return None;
        }
        let pair = &mut *self.pairs[id as usize];
        ctx.subscriber = table.holdings_of_subscriber(pair.place);
        if is_over_budget(ctx, pair, from, &packet) {
            ctx.counters.split_drops_no_memory += 1;
            return None;
        }
        pair.last_packet = ctx.now;
        let opened = match (&pair.opening, from == WAN) {
            (Some(_), true) => pair.on_answer(ctx.now, &packet, ctx.config),
            (Some(_), false) => pair.while_asking(ctx.now, &packet),
            (None, true) => {
                pair.on_server_packet(ctx.now, &packet);
                Opened::NotYet
            }
            (None, false) => {
                pair.on_client_packet(ctx.now, &packet, table.uploaded(pair.place));
                Opened::NotYet
            }
        };
        self.after_opening(ctx, table, id, from, packet, opened)
    }

    fn after_opening(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        id: u32,
        from: PortId,
        packet: Packet,
        opened: Opened,
    ) -> Option<Packet> {
        match opened {
            Opened::NotYet => {}
            Opened::Answered => {
                ctx.counters.flows_split += 1;
                ctx.observer.on_event(ctx.now, &self.pairs[id as usize].key, &Event::SplitOpened);
            }
            Opened::Anew => {
                self.remove(ctx, table, id);
                return Some(packet);
            }
            Opened::Ended | Opened::Passes => {
                ctx.counters.split_refused += u64::from(opened == Opened::Ended);
                ctx.out.push_back((if from == WAN { RADIO } else { WAN }, packet));
            }
        }
        self.after(ctx, table, id);
        None
    }

    /// A message about a packet of a split flow, from whichever side. True if it is for the gateway alone.
    pub(crate) fn on_icmp(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        from: PortId,
        error: &IcmpError,
    ) -> bool {
        // What it quotes went the other way.
        let key = if from == WAN { error.quoted } else { error.quoted.reversed() };
        let Some(id) = self.find(&key) else { return false };
        let pair = &mut *self.pairs[id as usize];
        let side = if from == WAN { Some(&mut pair.server) } else { pair.client.as_mut() };
        match (error.mtu, side) {
            (Some(mtu), Some(side)) if side.connection.is_in_flight(error.seq) => {
                if side.path_mtu.on_message(ctx.now, mtu) {
                    side.connection.on_path_mtu(ctx.now, u32::try_from(mtu).unwrap_or(u32::MAX));
                    ctx.subscriber = table.holdings_of_subscriber(pair.place);
                    self.after(ctx, table, id);
                }
                true
            }
            // The client hears of a server out of reach as without a gateway, and may try again: if it is about the SYN (RFC 5927,
            // Section 4.1; Linux looks at the number in SYN-SENT, too: tcp_v4_err).
            (None, _) if from == WAN && pair.opening.as_ref().is_some_and(|it| it.isn() == error.seq) => {
                self.remove(ctx, table, id);
                false
            }
            _ => true,
        }
    }

    /// Does what is due.
    pub(crate) fn on_timeout(&mut self, ctx: &mut Context<'_>, table: &mut Table) {
        let pairs = &mut self.pairs;
        self.timers.tidy(pairs.len(), |id| pairs.get(id as usize)?.armed);
        let is_due = |pairs: &mut Slab<Box<Pair>>, id: u32, at| {
            pairs.get_mut(id as usize).is_some_and(|pair| disarm(&mut pair.armed, at))
        };
        for _ in 0..TIMEOUTS_A_TURN {
            let due = self.timers.pop_due(ctx.now, |id, at| is_due(&mut self.pairs, id, at));
            let Some(id) = due else { break };
            let pair = &mut *self.pairs[id as usize];
            pair.on_timeout(ctx.now);
            if pair.expires_at(ctx.config.limits.idle_timeout_s) <= ctx.now {
                ctx.counters.flows_expired += 1;
                pair.expire(ctx.now);
            }
            ctx.subscriber = table.holdings_of_subscriber(pair.place);
            self.after(ctx, table, id);
        }
        self.lapsed.on_timeout(ctx);
    }

    /// The next packet to send that waits for nobody's turn, or of the flow whose turn it is.
    pub(crate) fn transmit(&mut self, ctx: &mut Context<'_>, table: &mut Table) -> Option<(PortId, Packet)> {
        if let Some((id, left)) = self.turn {
            let pair = &self.pairs[id as usize];
            let left = if pair.would_be_cut(table.quantum(pair.place)) { 0 } else { left };
            if let Some(packet) = self.transmit_in_turn(ctx, table, id, left, false) {
                return Some((RADIO, packet));
            }
        }
        while let Some(id) = self.ready.front() {
            let pair = &mut *self.pairs[id as usize];
            if let Some((to, packet, sent)) = pair.transmit(ctx.now) {
                match sent {
                    Some(sent) => note_sent(ctx, table, pair, &packet, sent, false),
                    None if to == WAN => note_ack(ctx, pair),
                    None => {}
                }
                return Some((to, packet));
            }
            if pair.is_over() {
                self.remove(ctx, table, id);
                continue;
            }
            pair.ready = false;
            let at = pair.timeout(ctx.config.limits.idle_timeout_s);
            self.timers.set(&mut pair.armed, id, at);
            // What is left waits for the client's link, if for anything.
            let wants = pair.is_held();
            table.after_split_event(pair.place, ctx.now, pair.wish(wants), &LinkReport::default());
            self.ready.remove(&mut self.pairs, id);
        }
        None
    }

    /// It is the turn of flow `id`, with `limit` bytes. Returns its packet, if it has one.
    pub(crate) fn take_turn(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        id: u32,
        limit: u64,
    ) -> Option<Packet> {
        let pair = &mut *self.pairs[id as usize];
        pair.allow(limit.max(1));
        let turn = (table.turn_bytes(pair.place) / pair.segment()).clamp(TURN, LONG_TURN) as u32;
        self.transmit_in_turn(ctx, table, id, turn, true)
    }

    fn transmit_in_turn(
        &mut self,
        ctx: &mut Context<'_>,
        table: &mut Table,
        id: u32,
        left: u32,
        begins: bool,
    ) -> Option<Packet> {
        let pair = &mut *self.pairs[id as usize];
        let next = if left > 0 { pair.transmit_to_client(ctx.now, left) } else { None };
        let Some((packet, sent)) = next else {
            self.turn = None;
            // A turn in which nothing left is no reason for another one.
            let wants = !begins && (left == 0 || pair.is_held());
            pair.allow(0);
            table.after_split_event(pair.place, ctx.now, pair.wish(wants), &LinkReport::default());
            // What has left made room: the server may be told, and timers have changed.
            self.mark_ready(id);
            return None;
        };
        self.turn = Some((id, left.saturating_sub(segments(&packet) as u32)));
        if let Some(sent) = sent {
            note_sent(ctx, table, pair, &packet, sent, true);
        }
        Some(packet)
    }

    /// When something is to be done next.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        if self.ready.front().is_none() && self.turn.is_none() {
            [self.timers.next(), self.lapsed.next_timeout()].into_iter().flatten().min()
        } else {
            Some(Instant::ZERO)
        }
    }

    /// After every event of a flow: what it keeps is counted, its subscriber learns, and it may send.
    fn after(&mut self, ctx: &mut Context<'_>, table: &mut Table, id: u32) {
        let pair = &mut *self.pairs[id as usize];
        let (report, timeouts) = pair.report(ctx.now);
        pair.settle(ctx);
        // What it was promised before is its own.
        pair.bound(ctx, table.limit_of_subscriber(pair.place));
        let wants = pair.is_held();
        let path = table.after_split_event(pair.place, ctx.now, pair.wish(wants), &report);
        if let Some(rtt) = report.rtt {
            ctx.observer.on_event(ctx.now, &pair.key, &Event::Measured { rtt, rtt_min: path.rtt });
        }
        if report.lost > 0 {
            ctx.observer.on_event(ctx.now, &pair.key, &Event::Lost { bytes: report.lost });
        }
        (0..timeouts).for_each(|_| ctx.observer.on_event(ctx.now, &pair.key, &Event::Timeout));
        self.mark_ready(id);
    }

    fn mark_ready(&mut self, id: u32) {
        let pair = &mut *self.pairs[id as usize];
        if !core::mem::replace(&mut pair.ready, true) {
            self.ready.push_back(&mut self.pairs, id);
        }
    }

    /// Packets have passed without this gateway, and ends may have been told that their flow is over: so they all are, and each end hears so.
    pub(crate) fn let_go(&mut self, ctx: &mut Context<'_>, table: &mut Table) {
        let ids: Vec<u32> = self.pairs.iter().map(|(id, _)| id as u32).collect();
        for id in ids {
            let pair = self.forget(ctx, table, id);
            if pair.client.is_some() {
                ctx.counters.split_let_go += 1;
                self.lapsed.add(pair.key);
            }
        }
    }

    /// Forgets flow `id`, which nobody has to be told of.
    pub(crate) fn remove(&mut self, ctx: &mut Context<'_>, table: &mut Table, id: u32) {
        let pair = self.forget(ctx, table, id);
        if pair.client.is_some() {
            ctx.observer.on_event(ctx.now, &pair.key, &Event::SplitClosed);
        }
    }

    fn forget(&mut self, ctx: &mut Context<'_>, table: &mut Table, id: u32) -> Box<Pair> {
        self.turn.take_if(|(turn, _)| *turn == id);
        if self.pairs[id as usize].ready {
            self.ready.remove(&mut self.pairs, id);
        }
        let pair = self.pairs.remove(id as usize);
        self.by_key.remove(&pair.key);
        *ctx.buffered = ctx.buffered.saturating_sub(pair.counted);
        *ctx.promised = ctx.promised.saturating_sub(pair.promised);
        table.remove(ctx.now, pair.place);
        if pair.client.is_some() {
            let status = pair.final_status(ctx.config, ctx.now);
            let (rtt, server_rtt) = (status.totals.rtt_min, status.server_rtt);
            let seen = Seen { rtt, server_rtt, split: true, ..Seen::default() };
            ctx.memory.note(ctx.now, status.subscriber, pair.key.dst.ip(), &seen);
            let ended = Event::Ended(status);
            ctx.observer.on_event(ctx.now, &pair.key, &ended);
        }
        pair
    }
}

/// A packet with data left for the client, by its flow's turn or, repeating what everything waits for, without.
fn note_sent(
    ctx: &mut Context<'_>,
    table: &mut Table,
    pair: &mut Pair,
    packet: &Packet,
    sent: Sent,
    wants: bool,
) {
    let Sent { bytes, sojourn, retransmission } = sent;
    ctx.observer.on_event(ctx.now, &pair.key, &Event::Sent { bytes, sojourn, retransmission });
    if !retransmission {
        ctx.observer.on_event(ctx.now, &pair.key, &Event::NewData { bytes });
    }
    pair.settle(ctx);
    let wants = wants || pair.is_held();
    table.after_split_sent(pair.place, ctx.now, pair.wish(wants), packet.ip_len() as u64);
}

/// A packet left for the server.
fn note_ack(ctx: &mut Context<'_>, pair: &mut Pair) {
    pair.settle(ctx);
    if let Some(event) = pair.acked() {
        ctx.observer.on_event(ctx.now, &pair.key, &event);
    }
}

/// There is no memory for this packet. What the receiving side waits for, with nothing else to do, is always taken: memory gets
/// free only as flows move on.
fn is_over_budget(ctx: &Context<'_>, pair: &Pair, from: PortId, packet: &Packet) -> bool {
    let (pool, bytes) = (ctx.config.limits.max_buffer_bytes as u64, packet.payload().len() as u64);
    if bytes == 0 || may_keep(pool, *ctx.buffered, ctx.subscriber, bytes.max(PIECE_MIN)) {
        return false;
    }
    let sides = (Some(&pair.server), pair.client.as_ref());
    let (side, other) = if from == WAN { sides } else { (sides.1, sides.0) };
    let is_next = |side: &pair::Side| {
        packet.tcp().is_some_and(|tcp| tcp.seq() == side.connection.expected())
            && side.connection.readable() == 0
    };
    // As long as the other end has something to acknowledge, the flow moves on by that.
    let is_idle = other.is_none_or(|other| other.connection.unacknowledged() == 0);
    !(is_idle && side.is_some_and(is_next))
}
