//! Whether a packet can be of this flow at all, before anything is concluded from it (RFC 9293, Section 3.10.7.4; RFC 5961).
//!
//! Whoever does not see the flow has to guess its numbers. A packet whose numbers cannot be right passes, since its receiver
//! is the judge, but the gateway believes none of it.

use paceline_wire::{Flags, Instant, Packet, PortId, Seq, Tcp};

use super::{Context, Flow, Phase};
use crate::counters::PassReason;
use crate::{RADIO, WAN};

/// Our choice: no receive buffer in use is larger; Linux's grow to 6 MB by themselves. What is not known is taken for this.
const WINDOW_MAX: u64 = 64 << 20;

/// The stream from the client to the server, which is not kept here.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Uplink {
    /// The lowest position that can be acknowledged: that of the first byte, or where the flow was first seen.
    #[cfg_attr(feature = "serde", serde(default))]
    first: u64,
    /// Acknowledged by the server.
    acked: u64,
    /// Sent by the client.
    sent: u64,
    /// The largest window of the server, as the client reads it (MAX.SND.WND of RFC 5961, Section 5.2).
    #[cfg_attr(feature = "serde", serde(default))]
    window_max: u64,
    /// The furthest right edge that the server has shown; zero while it is not known.
    #[cfg_attr(feature = "serde", serde(default))]
    edge: u64,
}

impl Uplink {
    /// Of a flow that opens with a SYN of this number, behind which `len` positions follow.
    pub(super) fn opened(isn: Seq, len: u32) -> Self {
        let first = isn.add(1).unwrap_near(1 << 32);
        Uplink { sent: first - 1 + u64::from(len), ..Uplink::at(first) }
    }

    /// Positions below `most`, in their order.
    #[cfg(feature = "serde")]
    pub(super) fn is_sound(&self, most: u64) -> bool {
        self.acked <= self.sent
            && [self.first, self.sent, self.edge, self.window_max].into_iter().all(|one| one < most)
    }

    /// Of a flow that goes on here.
    pub(super) fn at(position: u64) -> Self {
        Uplink { first: position, acked: position, sent: position, window_max: 0, edge: 0 }
    }

    /// The first position.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Acknowledged by the server.
    pub(super) fn acked(&self) -> u64 {
        self.acked
    }

    /// Position after the newest byte of the client.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The furthest right edge that the server has shown.
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// The server acknowledges `ack`, and shows a window of so many bytes, of which the client reads so many.
    fn on_server(&mut self, ack: u64, window: u64, read: u64) {
        self.acked = self.acked.max(ack);
        self.sent = self.sent.max(ack);
        self.window_max = self.window_max.max(read);
        self.edge = self.edge.max(ack + window);
    }

    /// Where a resumed flow was found: so far the client had sent, and the server shows this window.
    pub(super) fn goes_on(&mut self, sent: Seq, ack: Seq, window: u64) {
        self.sent = self.sent.max(sent.unwrap_near(self.acked));
        self.on_server(ack.unwrap_near(self.acked), window, window);
    }

    /// The server's SYN, whose window is never scaled (RFC 7323, Section 2.2).
    pub(super) fn on_syn_ack(&mut self, ack: Seq, window: u16) {
        self.on_server(ack.unwrap_near(self.acked), u64::from(window), u64::from(window));
    }

    /// RFC 5961, Section 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT. As in Linux (tcp_ack), nothing below the first byte is
    /// acknowledged by anybody.
    fn takes(&self, ack: u64) -> bool {
        (self.acked.saturating_sub(self.window_max).max(self.first)..=self.sent).contains(&ack)
    }

    /// The client sends `start..end`: within the window, or a probe of one byte beyond it (RFC 9293, Section 3.8.6.1). What is older than
    /// a window is nothing that its server would look at.
    fn allows(&self, start: u64, end: u64) -> bool {
        let edge = if self.edge == 0 { self.acked + WINDOW_MAX } else { self.edge };
        start <= edge && end <= edge + 1 && end + self.window_max.max(1) >= self.acked
    }
}

/// What is believed of a packet of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfClient {
    /// All.
    Accepted,
    /// Nothing: it acknowledges what has not left for the client, up to this position.
    Unsent(u64),
    /// Nothing.
    Strange,
}

/// What a SYN means to the flow that has its addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SynIs {
    /// One of those that open it.
    OfTheFlow,
    /// It begins another flow in place of this one.
    AnotherFlow,
    /// Not to be believed.
    Strange,
}

impl Flow {
    /// RFC 9293, Section 3.10.7, and RFC 5961, Section 4: a SYN beside an open flow is for the server to answer, with a SYN if it does
    /// not know the flow either (a client that has forgotten it begins anew), else with a question to the client.
    pub(crate) fn judge_syn(&mut self, from: PortId, tcp: Tcp<'_>) -> SynIs {
        let (seen, asked) = if from == WAN {
            (self.server_isn, self.client_isn.zip(self.uplink.map(|uplink| Seq::from(uplink.sent))))
        } else {
            (self.client_isn, self.server_isn.zip(Some(Seq::from(self.received))))
        };
        let (is_same, is_new) = (seen == Some(tcp.seq().0), seen.is_none());
        if tcp.flags().intersects(Flags::RST | Flags::FIN) {
            return SynIs::Strange;
        }
        if tcp.flags().contains(Flags::ACK) {
            if from == WAN && self.pending_syn == Some(tcp.ack()) {
                self.pending_answer = Some(tcp.seq().add(1));
                return SynIs::Strange;
            }
            // Of data in the SYN (RFC 7413) the answer takes all, some or nothing.
            let answers = asked.is_some_and(|(isn, end)| {
                let distance = tcp.ack().distance(Seq(isn));
                distance > 0 && distance <= end.distance(Seq(isn))
            });
            // A SYN without an acknowledgement may have been anybody's; this one knows the other's number.
            let opens = is_same || (is_new || from == WAN) && self.is_half_open();
            return if answers && opens { SynIs::OfTheFlow } else { SynIs::Strange };
        }
        match self.phase {
            _ if is_same => SynIs::OfTheFlow,
            // Anybody may have sent a SYN with the server's address, before the client's or after it. The client's begins a flow of its own; of the
            // server's the answer to that counts. Where both ends open at once (RFC 9293, Section 3.5), each answers the other, too.
            Phase::Opening if is_new && from == WAN => SynIs::Strange,
            Phase::Opening | Phase::Closed => SynIs::AnotherFlow,
            Phase::Open | Phase::Resumed => {
                if from == RADIO {
                    (self.pending_syn, self.pending_answer) = (Some(tcp.seq().add(1)), None);
                }
                SynIs::Strange
            }
        }
    }

    /// A packet of the server whose stream positions are `start..end`. What the client would discard is not believed: it is neither kept nor
    /// does it change what leaves again.
    pub(super) fn is_of_server(&mut self, now: Instant, tcp: Tcp<'_>, start: u64, end: u64) -> bool {
        let (una, reach) = (self.board.una(), self.reach());
        if tcp.flags().contains(Flags::RST) {
            // RFC 5961, Section 3.2: exactly what the client expects next, which is one of these.
            return [self.received, self.board.sent(), una].contains(&start);
        }
        let is_timely = self.clocks.accept(now, WAN, tcp);
        let numbers = start <= reach && end <= reach + self.segment() && end + self.downlink_window() >= una;
        // RFC 9293, Section 3.10.7.4: without an acknowledgement it is dropped.
        if !numbers || !is_timely || !tcp.flags().contains(Flags::ACK) {
            return false;
        }
        let shifts = self.shifts;
        let window = u64::from(tcp.window()) << shifts.server;
        let read = if shifts.added { u64::from(shifts.server_field(tcp.window())) } else { window };
        let uplink = self.uplink.get_or_insert_with(|| Uplink::at(tcp.ack().unwrap_near(1 << 32)));
        let ack = tcp.ack().unwrap_near(uplink.acked);
        let accepted = uplink.takes(ack);
        if accepted {
            uplink.on_server(ack, window, read);
            self.clocks.on_accepted(WAN, tcp);
            self.on_proof();
        }
        accepted
    }

    /// A packet of the client.
    pub(super) fn is_of_client(&mut self, now: Instant, tcp: Tcp<'_>) -> OfClient {
        let uplink = self.uplink.get_or_insert_with(|| Uplink::at(tcp.seq().unwrap_near(1 << 32)));
        let start = tcp.seq().unwrap_near(uplink.sent);
        if tcp.flags().contains(Flags::RST) {
            // After its FIN also the number before, as Linux has it (tcp_reset_check): data that left the server before it knew of the FIN
            // is answered so.
            let of_the_fin = self.client_fin.is_some() && start + 1 == uplink.sent;
            let is_exact = of_the_fin || start == uplink.acked || start == uplink.sent;
            return if is_exact { OfClient::Accepted } else { OfClient::Strange };
        }
        let end = start + u64::from(tcp.seq_len());
        let numbers = uplink.allows(start, end) && tcp.flags().contains(Flags::ACK);
        if !self.clocks.accept(now, RADIO, tcp) || !numbers {
            return OfClient::Strange;
        }
        let una = self.board.una();
        let ack = tcp.ack().unwrap_near(una);
        // No client has what has not left for it. The lower end is that of RFC 5961, Section 5.2, as its server has it.
        if ack > self.board.sent().max(self.passed) {
            return if ack <= una + WINDOW_MAX { OfClient::Unsent(ack) } else { OfClient::Strange };
        }
        if ack + self.downlink_window() < una {
            return OfClient::Strange;
        }
        if let Some(uplink) = &mut self.uplink {
            uplink.sent = uplink.sent.max(end);
        }
        self.clocks.on_accepted(RADIO, tcp);
        self.on_proof();
        OfClient::Accepted
    }

    /// An end has sent what only the ends of this flow can: it is open, and no other is in its place.
    fn on_proof(&mut self) {
        self.is_proven = true;
        (self.pending_syn, self.pending_answer) = (None, None);
    }

    /// The client goes on with another flow of the same addresses and ports, which its server has answered: this one is over. One SYN, and an
    /// answer to it, could be anybody's, while both ends go on with this flow.
    pub(super) fn is_of_another(&self, tcp: Tcp<'_>) -> bool {
        self.pending_answer.is_some()
            && self.pending_syn == Some(tcp.seq())
            && self.pending_answer == Some(tcp.ack())
    }

    /// The largest window that the client has shown, or the server was shown.
    fn downlink_window(&self) -> u64 {
        self.window_max.max(self.reach() - self.board.una()).max(1)
    }

    /// The server may send so far, by what it was shown or what the client says itself. What it was shown before a restart is not known.
    fn reach(&self) -> u64 {
        let shown = self.virtual_window.edge().max(self.right_edge).max(self.received);
        if self.was_resumed { shown.max(self.received + WINDOW_MAX) } else { shown }
    }

    /// Passes what cannot be of this flow; only its window is read with another shift where the ends do not agree on one.
    pub(super) fn pass_strange(&mut self, ctx: &mut Context<'_>, reason: PassReason, mut packet: Packet) {
        ctx.counters.pass(reason);
        let window = packet.tcp().map(|tcp| self.shifts.client_window(tcp.window()) >> self.shifts.shown);
        if let (true, Some(window)) = (self.shifts.rescaled(), window)
            && let Some(mut tcp) = packet.tcp_mut()
        {
            tcp.set_window(u16::try_from(window).unwrap_or(u16::MAX));
        }
        ctx.pass_to_server(packet);
    }
}
