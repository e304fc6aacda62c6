//! The PSH flag as Linux sets it. It depends on the application's writes and on the network card's segmentation.
//!
//! Linux passes super-packets to its card. It sets PSH on each one with more than one segment (commit 051ba67447de),
//! and on the last segment of a write. Here all segments leave one by one. packetdrill joins them and compares the last
//! one's flag.

use std::collections::HashMap;

use paceline_tcp::Status;
use paceline_wire::{Flags, FlowKey, Packet, Seq};

use crate::queue::pacing_rate;
use crate::sysctl;

/// The data sent by each connection.
#[derive(Debug, Default)]
pub(crate) struct Offload {
    flows: HashMap<FlowKey, Flow>,
}

#[derive(Debug, Default)]
struct Flow {
    first: Option<Seq>,
    /// The offset after all data sent.
    sent: u64,
    /// The largest window of the peer.
    window: u64,
    /// Ends of writes and of their parts.
    writes: Vec<u64>,
    /// Start and end of each super-packet.
    pieces: Vec<(u64, u64)>,
}

impl Offload {
    /// Notes a write, after which `total` bytes were written. A long write also needs PSH after each half of the peer's
    /// window (forced_push).
    pub(crate) fn wrote(&mut self, key: FlowKey, status: &Status, total: u64) {
        let flow = self.flows.entry(key).or_default();
        flow.window = flow.window.max(status.window.snd_wnd);
        let mut pushed = flow.writes.last().copied().unwrap_or(0);
        let piece = sysctl::min_tso_segments() * u64::from(status.snd_mss.max(1));
        let mut at = pushed + piece;
        while at < total {
            if at > pushed + flow.window / 2 {
                flow.writes.push(at);
                pushed = at;
            }
            at += piece;
        }
        flow.writes.push(total);
    }

    /// Sets the flag on packets of one connection that leave at the same time.
    pub(crate) fn set_push(&mut self, key: FlowKey, status: &Status, packets: &mut [Packet]) {
        let flow = self.flows.entry(key).or_default();
        let mut last: Option<(usize, u64)> = None;
        let mut started_here = usize::MAX;
        for packet in packets {
            let Some(tcp) = packet.tcp() else { continue };
            let (seq, len) = (tcp.seq(), packet.payload().len() as u64);
            if tcp.flags().contains(Flags::SYN) {
                flow.first = Some(seq.add(1));
            }
            let flags = tcp.flags() - Flags::PSH;
            let Some(first) = flow.first.filter(|_| len > 0) else {
                if let Some(mut tcp) = packet.tcp_mut() {
                    tcp.set_flags(flags);
                }
                continue;
            };
            let from = u64::from(seq.0.wrapping_sub(first.0));
            let piece = flow.piece(from, from + len, limit(status), &mut started_here);
            let joins = last.is_some_and(|(other, end)| other == piece && end == from);
            last = Some((piece, from + len));
            let ends_write = flow.writes.contains(&(from + len));
            let push = if joins || ends_write { Flags::PSH } else { Flags::empty() };
            if let Some(mut tcp) = packet.tcp_mut() {
                tcp.set_flags(flags | push);
            }
        }
    }
}

impl Flow {
    /// Returns the number of the super-packet to which a segment belongs. New data extends the super-packet of this
    /// burst or begins one.
    fn piece(&mut self, from: u64, to: u64, limit: u64, started_here: &mut usize) -> usize {
        if from < self.sent {
            let of = |piece: &(u64, u64)| piece.0 <= from && from < piece.1;
            return self.pieces.iter().position(of).unwrap_or(usize::MAX);
        }
        self.sent = to;
        let len = to - from;
        if let Some(piece) = self.pieces.get_mut(*started_here)
            && piece.1 == from
            && (to - piece.0).div_ceil(len) <= limit
        {
            piece.1 = to;
            return *started_here;
        }
        self.pieces.push((from, to));
        *started_here = self.pieces.len() - 1;
        *started_here
    }
}

/// Segments in a super-packet: a millisecond of the pacing rate, more on short round trips (tcp_tso_autosize), and at
/// most half of the window (tcp_cwnd_test).
pub(crate) fn limit(status: &Status) -> u64 {
    let (cwnd, mss) = (u64::from(status.window.snd_cwnd), u64::from(status.snd_mss.max(1)));
    let shortest = status.timing.min_rtt >> 9;
    let near = if shortest < 32 { 65_536u64 >> shortest } else { 0 };
    let segments = (pacing_rate(status) >> 10).saturating_add(near).min(65_536) / mss;
    segments.max(sysctl::min_tso_segments()).min((cwnd / 2).max(1))
}
