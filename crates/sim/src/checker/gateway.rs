//! Watches both sides of a gateway and reports what it may not do:
//!
//! - invent data or acknowledgements,
//! - take back a window,
//! - let packets overtake,
//! - break a checksum.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use paceline_path::Delivered;
use paceline_wire::{Flags, FlowKey, Instant, Packet, Tcp};
use rangemap::RangeSet;
use rustc_hash::FxHashMap;

use super::FINDINGS_MAX;
use crate::network::Tap;

/// A side of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards the servers.
    Wan,
    /// Towards the clients.
    Radio,
}

/// Findings about all flows of a gateway. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct GatewayChecker(Rc<RefCell<State>>);

/// Watches a link of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayTap {
    checker: GatewayChecker,
    side: Side,
    /// True if packets on the link enter the gateway, false if they leave it.
    enters: bool,
}

#[derive(Debug, Default)]
struct State {
    flows: FxHashMap<FlowKey, Flow>,
    findings: Vec<String>,
    splits: bool,
    /// Ports of servers whose flows are not split.
    passing: Vec<u16>,
}

/// A connection, keyed by the direction from client to server.
#[derive(Debug, Default)]
struct Flow {
    /// Window scale options of the client's SYN: as sent, and as the server sees it. Then those of the server.
    client_scale: (Option<u8>, Option<u8>),
    server_scale: (Option<u8>, Option<u8>),
    down: Direction,
    up: Direction,
    /// The newest timestamp that each end has echoed: client, server.
    echoed: [Option<u32>; 2],
}

/// One direction of data, and the acknowledgements for it.
#[derive(Debug, Default)]
struct Direction {
    near: u64,
    arrived: RangeSet<u64>,
    /// Data not forwarded yet: start, to end and order of arrival.
    waiting: BTreeMap<u64, (u64, u64)>,
    /// Ranges that others overtook, start to end. A dropped range arrives again before it leaves.
    overtaken: BTreeMap<u64, u64>,
    arrivals: u64,
    left: u64,
    acks: HashSet<u32>,
    highest_ack: u64,
    last_ack_in: u64,
    last_ack_out: u64,
    highest_ack_out: u64,
    inversions_in: u64,
    inversions_out: u64,
    edge_shown: u64,
    window_max: u64,
    window_latest: u64,
    edge_real: u64,
    /// The largest retreat of the window's edge before the gateway, caused by reordering.
    retreat_in: u64,
    resets: u64,
    /// Its sender has sent data beyond the window.
    was_beyond: bool,
    /// End of the stream, FIN included. A window beyond it is meaningless.
    over: Option<u64>,
}

impl GatewayChecker {
    /// Lets the gateway split flows: it sends its own acknowledgements, but only for data that it has.
    pub fn allow_splits(&self) {
        self.0.borrow_mut().splits = true;
    }

    /// Expects no split flow of this server's port.
    pub fn expect_no_split(&self, server_port: u16) {
        self.0.borrow_mut().passing.push(server_port);
    }

    /// Returns a tap for a link on which packets enter the gateway from `side`.
    pub fn enter(&self, side: Side) -> GatewayTap {
        GatewayTap { checker: self.clone(), side, enters: true }
    }

    /// Returns a tap for a link on which packets leave the gateway to `side`.
    pub fn leave(&self, side: Side) -> GatewayTap {
        GatewayTap { checker: self.clone(), side, enters: false }
    }

    /// The first findings.
    pub fn findings(&self) -> Vec<String> {
        self.0.borrow().findings.clone()
    }

    /// Flows whose acknowledgements left in another order than they came, more often than they came reordered. A repair
    /// may leave before a packet that waits.
    pub fn reorderings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for (key, flow) in &self.0.borrow().flows {
            for (name, direction) in [("down", &flow.down), ("up", &flow.up)] {
                let (before, after) = (direction.inversions_in, direction.inversions_out);
                if after > before {
                    findings
                        .push(format!("{key:?} {name}: ACKs reordered {before} times before, {after} after"));
                }
            }
        }
        findings
    }
}

impl Tap for GatewayTap {
    fn sent(&mut self, _now: Instant, packet: &Packet) {
        if !self.enters {
            self.checker.0.borrow_mut().leave(self.side, packet);
        }
    }

    fn delivered(&mut self, delivered: &Delivered) {
        if self.enters {
            self.checker.0.borrow_mut().enter(self.side, &delivered.packet);
        }
    }

    fn hears_sent(&self) -> bool {
        !self.enters
    }
}

impl State {
    /// Notes a packet that enters the gateway from `side`.
    fn enter(&mut self, side: Side, packet: &Packet) {
        let (Some(tcp), Some(key)) = (packet.tcp(), packet.flow_key()) else { return };
        if !packet.verify_checksum() {
            return;
        }
        let flow = self.flows.entry(canonical(side, key)).or_default();
        if tcp.flags().contains(Flags::SYN) {
            match side {
                Side::Radio => flow.client_scale.0 = tcp.window_scale(),
                Side::Wan => flow.server_scale.0 = tcp.window_scale(),
            }
        }
        flow.note_echo(side, &tcp);
        let scale = flow.scale_meant(side);
        let (data, acks) = flow.directions(side);
        data.resets += u64::from(tcp.flags().contains(Flags::RST));
        data.enter(&tcp);
        acks.ack_enters(&tcp, scale);
    }

    /// Checks a packet that leaves the gateway to `side`.
    fn leave(&mut self, side: Side, packet: &Packet) {
        let mut whole = packet.clone();
        whole.complete_checksum();
        if !whole.verify_checksum() && self.findings.len() < FINDINGS_MAX {
            self.findings.push(format!("a wrong checksum leaves: {packet:?}"));
        }
        let (Some(tcp), Some(key)) = (packet.tcp(), packet.flow_key()) else { return };
        let entered = if side == Side::Radio { Side::Wan } else { Side::Radio };
        let up = canonical(entered, key);
        let splits = self.splits && !self.passing.contains(&up.dst.port());
        let flow = self.flows.entry(up).or_default();
        if tcp.flags().contains(Flags::SYN) {
            match side {
                Side::Wan => flow.client_scale.1 = tcp.window_scale(),
                Side::Radio => flow.server_scale.1 = tcp.window_scale(),
            }
        }
        let (scale, is_refused) = (flow.scale_read(side), flow.is_refused(side, &tcp));
        let (data, acks) = flow.directions(entered);
        let is_beyond = data.is_beyond_window(&tcp);
        let acked = match splits {
            _ if is_refused || is_beyond => None,
            true => acks.own_ack_leaves(&tcp, scale),
            false => acks.ack_leaves(&tcp, scale, side == Side::Radio),
        };
        let found = [data.leave(&tcp, is_beyond), acked];
        for text in found.into_iter().flatten() {
            if self.findings.len() < FINDINGS_MAX {
                self.findings.push(format!("{key:?} leaving to {side:?}: {text}"));
            }
        }
    }
}

fn canonical(entered: Side, key: FlowKey) -> FlowKey {
    if entered == Side::Radio { key } else { key.reversed() }
}

impl Flow {
    /// Returns the direction of the data in a packet that entered from `side`, then the direction that it acknowledges.
    fn directions(&mut self, entered: Side) -> (&mut Direction, &mut Direction) {
        match entered {
            Side::Wan => (&mut self.down, &mut self.up),
            Side::Radio => (&mut self.up, &mut self.down),
        }
    }

    fn note_echo(&mut self, side: Side, tcp: &Tcp<'_>) {
        let echoed = &mut self.echoed[usize::from(side == Side::Wan)];
        if let Some((_, echo)) = tcp.timestamps().filter(|_| tcp.flags().contains(Flags::ACK))
            && echoed.is_none_or(|newest| echo.wrapping_sub(newest) as i32 > 0)
        {
            *echoed = Some(echo);
        }
    }

    /// The end on `side` discards a packet with an older timestamp than it has echoed (PAWS, RFC 7323, Section 5.3).
    fn is_refused(&self, side: Side, tcp: &Tcp<'_>) -> bool {
        let echoed = self.echoed[usize::from(side == Side::Wan)];
        tcp.timestamps()
            .zip(echoed)
            .is_some_and(|((value, _), echoed)| (value.wrapping_sub(echoed) as i32) < 0)
    }

    /// The shift that the sender of a packet that enters on `side` has in mind.
    fn scale_meant(&self, side: Side) -> u8 {
        let (own, other) = match side {
            Side::Radio => (self.client_scale.0, self.server_scale.1),
            Side::Wan => (self.server_scale.0, self.client_scale.1),
        };
        if other.is_some() { own.unwrap_or(0) } else { 0 }
    }

    /// Returns the shift that the receiver of a packet to `side` applies.
    fn scale_read(&self, side: Side) -> u8 {
        let (seen, own) = match side {
            Side::Wan => (self.client_scale.1, self.server_scale.0),
            Side::Radio => (self.server_scale.1, self.client_scale.0),
        };
        if own.is_some() { seen.unwrap_or(0) } else { 0 }
    }
}

impl Direction {
    fn enter(&mut self, tcp: &Tcp<'_>) {
        if tcp.seq_len() == 0 || tcp.flags().contains(Flags::RST) {
            return;
        }
        let (start, end) = self.range(tcp);
        self.near = self.near.max(end);
        self.arrived.insert(start..end);
        if tcp.flags().contains(Flags::FIN) {
            self.over = Some(end);
        }
        self.overtaken.retain(|at, to| *to <= start || *at >= end);
        self.arrivals += 1;
        if end > self.left {
            self.waiting.entry(start.max(self.left)).or_insert((end, self.arrivals));
        }
    }

    fn leave(&mut self, tcp: &Tcp<'_>, is_beyond: bool) -> Option<String> {
        if tcp.flags().contains(Flags::RST) {
            let invented = self.resets == 0;
            return invented.then(|| "an invented reset".into());
        }
        if tcp.seq_len() == 0 {
            return None;
        }
        let (start, end) = self.range(tcp);
        // A probe of a closed window repeats a byte, or has a byte that has arrived.
        if self.arrived.gaps(&(start..end)).next().is_some() {
            return Some(format!("data that never came: {start}..{end}"));
        }
        if end <= self.left {
            let held = self.overtaken.range(start..end).next().map(|(at, to)| (*at, *to));
            return held.map(|(at, to)| format!("others overtook {at}..{to}, which leaves now"));
        }
        let own = self.waiting.range(..end).next_back().map_or(u64::MAX, |(_, v)| v.1);
        let before = self.waiting.range(..start);
        let overtaken = before.filter(|(at, v)| !is_beyond && v.0 <= start && **at >= self.left && v.1 < own);
        self.overtaken.extend(overtaken.map(|(at, v)| (*at, v.0)));
        self.left = end;
        self.waiting.retain(|_, v| v.0 > end);
        None
    }

    /// What goes beyond the window that its sender was shown, except for probes, passes the gateway as it is, before
    /// packets that wait (flow/acceptance.rs). Only opportunistic retransmission sends such packets. The other end may
    /// acknowledge one. Then its window lies further on than the gateway knows, and later data passes, too.
    fn is_beyond_window(&mut self, tcp: &Tcp<'_>) -> bool {
        self.was_beyond |=
            tcp.payload_len() > 1 && self.edge_shown > 0 && self.range(tcp).1 > self.edge_shown;
        self.was_beyond && tcp.payload_len() > 0
    }

    fn range(&mut self, tcp: &Tcp<'_>) -> (u64, u64) {
        if self.near == 0 {
            self.near = (1 << 32) + u64::from(tcp.seq().0);
        }
        let start = tcp.seq().unwrap_near(self.near);
        (start, start + u64::from(tcp.seq_len()))
    }

    fn ack_enters(&mut self, tcp: &Tcp<'_>, scale: u8) {
        if !tcp.flags().contains(Flags::ACK) || tcp.flags().contains(Flags::RST) {
            return;
        }
        self.acks.insert(tcp.ack().0);
        if self.highest_ack == 0 {
            self.highest_ack = (1 << 32) + u64::from(tcp.ack().0);
        }
        let ack = tcp.ack().unwrap_near(self.highest_ack);
        self.inversions_in += u64::from(ack < self.last_ack_in);
        self.last_ack_in = ack;
        self.highest_ack = self.highest_ack.max(ack);
        // The window of a SYN is not scaled.
        let scale = if tcp.flags().contains(Flags::SYN) { 0 } else { scale };
        self.window_latest = u64::from(tcp.window()) << scale;
        self.window_max = self.window_max.max(self.window_latest);
        let edge = ack + self.window_latest;
        self.retreat_in = self.retreat_in.max(self.edge_real.saturating_sub(edge));
        self.edge_real = self.edge_real.max(edge);
    }

    /// Checks an ACK as from any end: it covers only data that has arrived, and the window's edge does not move back.
    fn own_ack_leaves(&mut self, tcp: &Tcp<'_>, scale: u8) -> Option<String> {
        if !tcp.flags().contains(Flags::ACK) || tcp.flags().contains(Flags::RST) {
            return None;
        }
        let ack = tcp.ack().unwrap_near(self.near);
        let first = self.arrived.first().map_or(ack, |range| range.start);
        if ack > first && self.arrived.gaps(&(first..ack)).next().is_some() {
            return Some(format!("{ack} is acknowledged and has not come"));
        }
        if tcp.flags().contains(Flags::SYN) {
            return None;
        }
        let edge = ack + (u64::from(tcp.window()) << scale);
        let before = self.edge_shown;
        self.edge_shown = before.max(edge);
        // RFC 7323, Section 2.4: a window is truncated to its scale. After the end of the stream, the ends may speak
        // for themselves.
        let newest = ack >= self.highest_ack_out;
        self.highest_ack_out = self.highest_ack_out.max(ack);
        let over = self.over.is_some_and(|end| ack >= end);
        (newest && !over && edge + (1 << scale) <= before)
            .then(|| format!("the window's edge moves back from {before} to {edge}"))
    }

    fn ack_leaves(&mut self, tcp: &Tcp<'_>, scale: u8, to_client: bool) -> Option<String> {
        if !tcp.flags().contains(Flags::ACK) || tcp.flags().contains(Flags::RST) {
            return None;
        }
        // Withheld acknowledgements are told in steps, which never exceed what the client has (flow/ack_steps.rs).
        let is_step = !to_client && tcp.ack().unwrap_near(self.highest_ack) <= self.highest_ack;
        if !self.acks.contains(&tcp.ack().0) && !is_step {
            return Some(format!("an acknowledgement that nobody sent: {:?}", tcp.ack()));
        }
        let ack = tcp.ack().unwrap_near(self.highest_ack);
        self.inversions_out += u64::from(ack < self.last_ack_out);
        let newest = ack >= self.highest_ack_out;
        self.highest_ack_out = self.highest_ack_out.max(ack);
        self.last_ack_out = ack;
        if tcp.flags().contains(Flags::SYN) {
            return None;
        }
        let edge = ack + (u64::from(tcp.window()) << scale);
        let shown = self.edge_shown;
        self.edge_shown = shown.max(edge);
        let pressed = self.window_latest < self.window_max;
        // RFC 7323, Section 2.4: a window is truncated to its scale.
        let over = self.over.is_some_and(|end| ack >= end);
        if newest && edge + self.retreat_in + (1 << scale) <= shown && !pressed && !over {
            let window = edge - ack;
            let real = self.window_latest;
            return Some(format!(
                "the window moves back by {} bytes to {window}, really {real}",
                shown - edge
            ));
        }
        // A virtual window serves downloads. The window for an upload must never exceed the server's.
        (to_client && edge > self.edge_real)
            .then(|| format!("{} bytes of window too many", edge - self.edge_real))
    }
}
