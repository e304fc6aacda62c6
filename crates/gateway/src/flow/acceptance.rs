//! Checks whether a packet can belong to this flow before the gateway uses it (RFC 9293, Section 3.10.7.4; RFC 5961).
//!
//! Whoever does not see the flow has to guess its numbers. A packet with wrong numbers passes, since its receiver is
//! the judge, but the gateway uses nothing from it.

use paceline_wire::{Flags, Instant, Packet, PortId, Seq, Tcp};

use super::client_stream::{Uplink, WINDOW_MAX};
use super::{Context, Flow, Phase};
use crate::counters::PassReason;
use crate::{RADIO, WAN};

/// What the gateway believes of a packet from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// Everything.
    Accepted,
    /// Nothing: it acknowledges data that has not left for the client, up to this position.
    AckOfUnsent(u64),
    /// Nothing: it cannot be of this flow.
    Unacceptable,
}

/// What a SYN means to the flow with the same addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SynMatch {
    /// It opens this flow.
    ThisFlow,
    /// It begins another flow in place of this one.
    NewFlow,
    /// It is not believed.
    Unacceptable,
}

impl Flow {
    /// Judges a SYN. On an open flow the server has to answer it (RFC 9293, Section 3.10.7; RFC 5961, Section 4). A
    /// server that has forgotten the flow, too, answers with a SYN, and the client begins anew. Else it sends the
    /// client a challenge ACK.
    pub(crate) fn judge_syn(&mut self, from: PortId, tcp: Tcp<'_>) -> SynMatch {
        let (seen, asked) = if from == WAN {
            let client = self.proof.isn(RADIO);
            (self.proof.isn(WAN), client.zip(self.upstream.uplink.map(|uplink| Seq::from(uplink.sent()))))
        } else {
            (self.proof.isn(RADIO), self.proof.isn(WAN).zip(Some(Seq::from(self.stream.received()))))
        };
        let (is_same, is_new) = (seen == Some(tcp.seq().0), seen.is_none());
        if tcp.flags().intersects(Flags::RST | Flags::FIN) {
            return SynMatch::Unacceptable;
        }
        if tcp.flags().contains(Flags::ACK) {
            if from == WAN && self.proof.on_another_answer(tcp) {
                return SynMatch::Unacceptable;
            }
            // The answer acknowledges all, some or none of the data in the SYN (RFC 7413).
            let answers = asked.is_some_and(|(isn, end)| {
                let distance = tcp.ack().distance(Seq(isn));
                distance > 0 && distance <= end.distance(Seq(isn))
            });
            // Anybody may have sent a SYN without ACK. The sender of this one knows the other end's number.
            let opens = is_same || (is_new || from == WAN) && self.is_half_open();
            return if answers && opens { SynMatch::ThisFlow } else { SynMatch::Unacceptable };
        }
        match self.life.phase() {
            _ if is_same => SynMatch::ThisFlow,
            // Anybody may send a SYN with the server's address, before or after the client's. A SYN of the client
            // begins another flow. A SYN of the server counts only as an answer to the client's. In a simultaneous open
            // (RFC 9293, Section 3.5) each end also answers the other.
            Phase::Opening if is_new && from == WAN => SynMatch::Unacceptable,
            Phase::Opening | Phase::Closed => SynMatch::NewFlow,
            Phase::Open | Phase::Resumed => {
                if from == RADIO {
                    self.proof.on_another_syn(tcp.seq());
                }
                SynMatch::Unacceptable
            }
        }
    }

    /// True if the server's packet, with stream positions `start..end`, is believed. A packet that the client would
    /// discard is not: it is not kept and changes no retransmission.
    pub(super) fn is_of_server(&mut self, now: Instant, tcp: Tcp<'_>, start: u64, end: u64) -> bool {
        let (una, reach) = (self.board.una(), self.reach());
        if tcp.flags().contains(Flags::RST) {
            // RFC 5961, Section 3.2: exactly the number that the client expects next, which is one of these.
            return [self.stream.received(), self.board.sent(), una].contains(&start);
        }
        let is_timely = self.clocks.accept(now, WAN, tcp);
        let numbers = start <= reach && end <= reach + self.segment() && end + self.downlink_window() >= una;
        // RFC 9293, Section 3.10.7.4: the client drops a segment without ACK.
        if !numbers || !is_timely || !tcp.flags().contains(Flags::ACK) {
            return false;
        }
        let shifts = self.shifts;
        let window = u64::from(tcp.window()) << shifts.server;
        let read = if shifts.added { u64::from(shifts.server_field(tcp.window())) } else { window };
        let uplink = self.upstream.uplink.get_or_insert_with(|| Uplink::at(tcp.ack().unwrap_near(1 << 32)));
        let ack = tcp.ack().unwrap_near(uplink.acked());
        let accepted = uplink.takes(ack);
        if accepted {
            uplink.on_server(ack, window, read);
            self.clocks.on_accepted(WAN, tcp);
            self.proof.on_proof();
        }
        accepted
    }

    /// Returns what is believed of a packet from the client.
    pub(super) fn is_of_client(&mut self, now: Instant, tcp: Tcp<'_>) -> Acceptance {
        let has_fin = self.upstream.has_fin();
        let uplink = self.upstream.uplink.get_or_insert_with(|| Uplink::at(tcp.seq().unwrap_near(1 << 32)));
        let start = tcp.seq().unwrap_near(uplink.sent());
        if tcp.flags().contains(Flags::RST) {
            // After the client's FIN the number before it is right, too, as in Linux (tcp_reset_check). The client
            // sends such a reset for data that left the server before it knew of the FIN.
            let of_the_fin = has_fin && start + 1 == uplink.sent();
            let is_exact = of_the_fin || start == uplink.acked() || start == uplink.sent();
            return if is_exact { Acceptance::Accepted } else { Acceptance::Unacceptable };
        }
        let end = start + u64::from(tcp.seq_len());
        let numbers = uplink.allows(start, end) && tcp.flags().contains(Flags::ACK);
        if !self.clocks.accept(now, RADIO, tcp) || !numbers {
            return Acceptance::Unacceptable;
        }
        let una = self.board.una();
        let ack = tcp.ack().unwrap_near(una);
        // A client cannot have what has not left for it. The lower limit is that of RFC 5961, Section 5.2, as its
        // server applies it.
        if ack > self.board.sent().max(self.stream.passed()) {
            return if ack <= una + WINDOW_MAX {
                Acceptance::AckOfUnsent(ack)
            } else {
                Acceptance::Unacceptable
            };
        }
        if ack + self.downlink_window() < una {
            return Acceptance::Unacceptable;
        }
        if let Some(uplink) = &mut self.upstream.uplink {
            uplink.on_client(end);
        }
        self.clocks.on_accepted(RADIO, tcp);
        self.proof.on_proof();
        Acceptance::Accepted
    }

    /// Returns the largest window that the client has shown or the server was shown.
    fn downlink_window(&self) -> u64 {
        self.client.largest().max(self.reach() - self.board.una()).max(1)
    }

    /// Returns the position up to which the server may send, by the window that it was shown or the client's own. The
    /// window that it was shown before a restart is unknown.
    fn reach(&self) -> u64 {
        let shown = self.shown.edge().max(self.client.right_edge()).max(self.stream.received());
        if self.life.was_resumed() { shown.max(self.stream.received() + WINDOW_MAX) } else { shown }
    }

    /// Passes a packet that cannot be of this flow. If the ends have different window scales, only its window is
    /// converted.
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
