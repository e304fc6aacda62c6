//! Watches one connection at both of its ends and reports whatever no endpoint and no gateway may do.
//!
//! - A receiver acknowledges, cumulatively or by SACK, only data that has arrived.
//! - Acknowledgements do not go back. The right edge of the receiver's window does not move back either (RFC 9293,
//!   Section 3.8.6).
//! - A sender sends nothing beyond the right edge that it has seen. Exceptions are probes of a closed window and, where
//!   allowed, opportunistic retransmission.
//! - A FIN has one place, and no data lies behind it.

mod gateway;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use paceline_path::Delivered;
use paceline_wire::{Flags, Instant, Packet, Seq, Tcp};
use rustc_hash::FxHashMap;

use crate::network::Tap;

pub use gateway::{GatewayChecker, GatewayTap, Side};

/// Findings about all connections of a network. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Checker(Rc<RefCell<State>>);

/// Watches a link that connects a host with the rest of the network.
#[derive(Clone, Debug)]
pub struct CheckerTap {
    checker: Checker,
    place: Place,
}

/// Which end of a link is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Packets that a host sends.
    OutOfHost,
    /// Packets that a host receives.
    IntoHost,
}

#[derive(Debug, Default)]
struct State {
    /// By sender and receiver of the data.
    directions: FxHashMap<(SocketAddr, SocketAddr), Direction>,
    findings: Vec<String>,
    beyond_window: bool,
    forgeries: bool,
}

/// The data of one direction, as its two ends saw it. Numbers are positions in a stream. The SYN's position is 2^32
/// plus its sequence number.
#[derive(Debug, Default)]
struct Direction {
    /// The SYN's position, once it has left.
    first: Option<u64>,
    /// All data before this position has arrived.
    arrived: u64,
    /// Ranges that have arrived beyond `arrived`, start to end.
    beyond: BTreeMap<u64, u64>,
    /// End of the stream, FIN included.
    end: Option<u64>,
    /// The receiver's window scale as it left, and whether the sender's SYN arrived with the option.
    shown: (Option<u8>, bool),
    /// The receiver's window scale as it arrived at the sender, and whether the sender's SYN left with the option.
    seen: (Option<u8>, bool),
    /// The highest acknowledgement and right edge that the receiver has sent.
    acked: u64,
    edge_shown: u64,
    /// The right edge that the sender has seen.
    edge_seen: u64,
}

/// Enough to see what is wrong.
const FINDINGS_MAX: usize = 20;

impl Checker {
    /// Lets senders go beyond the window, as opportunistic retransmission does.
    pub fn allow_beyond_window(&self) {
        self.0.borrow_mut().beyond_window = true;
    }

    /// Ignores packets with bytes, which come from an attacker (`RunObserver::inject`). No end accepts his packets.
    pub(crate) fn ignore_bytes(&self) {
        self.0.borrow_mut().forgeries = true;
    }

    /// Returns a tap for links on which hosts send.
    pub fn out_of_host(&self) -> CheckerTap {
        CheckerTap { checker: self.clone(), place: Place::OutOfHost }
    }

    /// Returns a tap for links from which hosts receive.
    pub fn into_host(&self) -> CheckerTap {
        CheckerTap { checker: self.clone(), place: Place::IntoHost }
    }

    /// The first findings.
    pub fn findings(&self) -> Vec<String> {
        self.0.borrow().findings.clone()
    }

    /// Bytes of payload from `src` to `dst` that have arrived without a gap.
    pub fn arrived_bytes(&self, src: SocketAddr, dst: SocketAddr) -> u64 {
        self.0.borrow().directions.get(&(src, dst)).map_or(0, Direction::arrived_bytes)
    }
}

impl Tap for CheckerTap {
    fn sent(&mut self, _now: Instant, packet: &Packet) {
        if self.place == Place::OutOfHost {
            self.checker.0.borrow_mut().see(packet, State::leaves);
        }
    }

    fn delivered(&mut self, delivered: &Delivered) {
        if self.place == Place::IntoHost {
            self.checker.0.borrow_mut().see(&delivered.packet, State::arrives);
        }
    }
}

impl State {
    fn see(&mut self, packet: &Packet, look: fn(&mut State, Tcp<'_>, (SocketAddr, SocketAddr))) {
        let (Some(tcp), Some(key)) = (packet.tcp(), packet.flow_key()) else { return };
        let is_forged = self.forgeries && packet.payload().bytes().is_some_and(|bytes| !bytes.is_empty());
        if !is_forged && !tcp.flags().contains(Flags::RST) {
            look(self, tcp, (key.src, key.dst));
        }
    }

    fn leaves(&mut self, tcp: Tcp<'_>, (from, to): (SocketAddr, SocketAddr)) {
        let beyond_window = self.beyond_window;
        let data = self.directions.entry((from, to)).or_default();
        let mut found = data.data_leaves(tcp, beyond_window);
        let acks = self.directions.entry((to, from)).or_default();
        found = found.or_else(|| acks.ack_leaves(tcp));
        if let Some(text) = found.filter(|_| self.findings.len() < FINDINGS_MAX) {
            self.findings.push(format!("{from} to {to}: {text}"));
        }
    }

    fn arrives(&mut self, tcp: Tcp<'_>, (from, to): (SocketAddr, SocketAddr)) {
        self.directions.entry((from, to)).or_default().data_arrives(tcp);
        self.directions.entry((to, from)).or_default().ack_arrives(tcp);
    }
}

impl Direction {
    fn data_leaves(&mut self, tcp: Tcp<'_>, beyond_window: bool) -> Option<String> {
        if tcp.flags().contains(Flags::SYN) {
            self.first = Some(FIRST + u64::from(tcp.seq().0));
            self.seen.1 = tcp.window_scale().is_some();
            return None;
        }
        let (start, end) = self.range(tcp)?;
        if tcp.flags().contains(Flags::FIN) && *self.end.get_or_insert(end) != end {
            return Some(format!("a second FIN at {end}, the first at {:?}", self.end));
        }
        if self.end.is_some_and(|last| end > last) {
            return Some(format!("{start}..{end} lies behind the FIN at {:?}", self.end));
        }
        let data_end = start + tcp.payload_len() as u64;
        let probe = tcp.payload_len() <= 1;
        let too_far = data_end > self.edge_seen && self.edge_seen > 0 && !probe && !beyond_window;
        too_far
            .then(|| format!("{start}..{data_end} lies beyond the window, which ends at {}", self.edge_seen))
    }

    fn data_arrives(&mut self, tcp: Tcp<'_>) {
        if tcp.flags().contains(Flags::SYN) {
            let after = FIRST + u64::from(tcp.seq().0) + 1;
            self.arrived = self.arrived.max(after);
            self.shown.1 = tcp.window_scale().is_some();
            return;
        }
        let Some((start, end)) = self.range(tcp) else { return };
        if start > self.arrived {
            let known = self.beyond.entry(start).or_insert(end);
            *known = end.max(*known);
            return;
        }
        self.arrived = self.arrived.max(end);
        while let Some((&start, &end)) = self.beyond.first_key_value() {
            if start > self.arrived {
                break;
            }
            self.arrived = self.arrived.max(end);
            self.beyond.pop_first();
        }
    }

    fn ack_leaves(&mut self, tcp: Tcp<'_>) -> Option<String> {
        if tcp.flags().contains(Flags::SYN) {
            self.shown.0 = tcp.window_scale();
        }
        if !tcp.flags().contains(Flags::ACK) {
            return None;
        }
        let ack = tcp.ack().unwrap_near(self.arrived);
        if ack > self.arrived {
            return Some(format!("acknowledges {ack}, has {}", self.arrived));
        }
        if ack < self.acked {
            return Some(format!("acknowledges {ack} after {}", self.acked));
        }
        self.acked = ack;
        if let Some((start, end)) = tcp.sack_blocks().map(|b| self.unwrap(b)).find(|b| !self.has(b.0, b.1)) {
            return Some(format!("reports {start}..{end}, has up to {} and {:?}", self.arrived, self.beyond));
        }
        let shift = shift(tcp, self.shown);
        let edge = ack + (u64::from(tcp.window()) << shift);
        // RFC 7323, Section 2.4: a window is rounded down to its scale. This may look like shrinking by less than one
        // unit.
        let unit = 1 << shift;
        let back = edge + unit <= self.edge_shown && !tcp.flags().contains(Flags::SYN);
        let before = self.edge_shown;
        self.edge_shown = before.max(edge);
        back.then(|| format!("the right edge moves back from {before} to {edge}"))
    }

    fn ack_arrives(&mut self, tcp: Tcp<'_>) {
        if tcp.flags().contains(Flags::SYN) {
            self.seen.0 = tcp.window_scale();
        }
        let Some(first) = self.first.filter(|_| tcp.flags().contains(Flags::ACK)) else { return };
        let ack = tcp.ack().unwrap_near(self.edge_seen.max(first));
        let edge = ack + (u64::from(tcp.window()) << shift(tcp, self.seen));
        self.edge_seen = self.edge_seen.max(edge);
    }

    /// Range of the data and the FIN of a segment; `None` if it has neither.
    fn range(&self, tcp: Tcp<'_>) -> Option<(u64, u64)> {
        let near = self.arrived.max(self.first?);
        let start = tcp.seq().unwrap_near(near);
        (tcp.seq_len() > 0).then_some((start, start + u64::from(tcp.seq_len())))
    }

    fn unwrap(&self, (start, end): (Seq, Seq)) -> (u64, u64) {
        (start.unwrap_near(self.arrived), end.unwrap_near(self.arrived))
    }

    /// True if the whole range has arrived, in one piece or in several.
    fn has(&self, start: u64, end: u64) -> bool {
        let mut at = start.max(self.arrived);
        for (&known, &known_end) in &self.beyond {
            if known <= at {
                at = at.max(known_end);
            }
        }
        end <= at || end <= self.arrived
    }

    fn arrived_bytes(&self) -> u64 {
        let Some(first) = self.first else { return 0 };
        let fin = u64::from(self.end.is_some_and(|end| end <= self.arrived));
        self.arrived.saturating_sub(first + 1 + fin)
    }
}

/// The shift of a window field. It is zero in a SYN, and unless both SYNs had the option (RFC 7323, Section 2.2).
fn shift(tcp: Tcp<'_>, (own, other): (Option<u8>, bool)) -> u8 {
    if tcp.flags().contains(Flags::SYN) || !other { 0 } else { own.unwrap_or(0) }
}

/// Streams start above this. So positions before them do not underflow.
const FIRST: u64 = 1 << 32;

#[cfg(test)]
mod tests;
