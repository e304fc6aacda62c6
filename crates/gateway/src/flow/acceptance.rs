//! Whether a packet can be of this flow at all, before anything is concluded from it (RFC 9293, Section 3.10.7.4; RFC 5961).
//!
//! Whoever does not see the flow has to guess its numbers. A packet whose numbers cannot be right passes, since its receiver
//! is the judge, but the gateway believes none of it.

use paceline_wire::{Flags, Packet, PortId, Seq, Tcp};

use super::{Context, Flow, Phase};
use crate::counters::PassReason;
use crate::{RADIO, WAN};

/// Our choice: no receive buffer in use is larger; Linux's grow to 6 MB by themselves.
const WINDOW_MAX: u64 = 64 << 20;

/// The stream from the client to the server, which is not kept here.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Uplink {
    /// Acknowledged by the server.
    acked: u64,
    /// Sent by the client.
    sent: u64,
}

impl Uplink {
    /// Of a flow that opens, or goes on, at this number.
    pub(super) fn at(seq: Seq) -> Self {
        let position = seq.unwrap_near(1 << 32);
        Uplink { acked: position, sent: position }
    }
}

/// What a SYN means to the flow that has its addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SynIs {
    /// One of those that open it.
    OfTheFlow,
    /// It begins another flow in place of this one.
    AnotherFlow,
    /// The server has answered a SYN that came while this flow was open, which is over.
    AnswerToAnother,
    /// Not to be believed.
    Strange,
}

impl Flow {
    /// RFC 9293, Section 3.10.7, and RFC 5961, Section 4: a SYN beside an open flow is for the server to answer, with a SYN if it does
    /// not know the flow either (a client that has forgotten it begins anew), else with a question to the client.
    pub(crate) fn judge_syn(&mut self, from: PortId, tcp: Tcp<'_>) -> SynIs {
        let (seen, asked) = if from == WAN {
            (self.server_isn, self.client_isn.zip(self.uplink.map(|uplink| Seq::from(uplink.acked))))
        } else {
            (self.client_isn, self.server_isn.zip(Some(Seq::from(self.received))))
        };
        let (is_same, is_new) = (seen == Some(tcp.seq().0), seen.is_none());
        if tcp.flags().intersects(Flags::RST | Flags::FIN) {
            return SynIs::Strange;
        }
        if tcp.flags().contains(Flags::ACK) {
            if from == WAN && self.pending_syn == Some(tcp.ack()) {
                return SynIs::AnswerToAnother;
            }
            // Of data in the SYN (RFC 7413) the answer takes all, some or nothing.
            let answers = asked.is_some_and(|(isn, end)| {
                let distance = tcp.ack().distance(Seq(isn));
                distance > 0 && distance <= end.distance(Seq(isn))
            });
            let opens = is_same || is_new && self.phase == Phase::Opening;
            return if answers && opens { SynIs::OfTheFlow } else { SynIs::Strange };
        }
        match self.phase {
            _ if is_same => SynIs::OfTheFlow,
            Phase::Opening if is_new => SynIs::OfTheFlow,
            Phase::Opening | Phase::Closed => SynIs::AnotherFlow,
            Phase::Open | Phase::Resumed => {
                if from == RADIO {
                    self.pending_syn = Some(tcp.seq().add(1));
                }
                SynIs::Strange
            }
        }
    }

    /// A packet of the server whose stream positions are `start..end`.
    pub(super) fn is_of_server(&mut self, tcp: Tcp<'_>, start: u64, end: u64) -> bool {
        let una = self.board.una();
        let reach = match self.was_resumed {
            // What the server was promised before the restart is not known.
            true => self.received + WINDOW_MAX,
            false => self.reach(),
        };
        let numbers = start <= reach && end <= reach + self.segment() && end + WINDOW_MAX >= una;
        if tcp.flags().contains(Flags::RST) {
            // RFC 5961, Section 3.2: exactly what the client expects next, which is one of these.
            return [self.received, self.board.sent(), una].contains(&start);
        }
        if !tcp.flags().contains(Flags::ACK) {
            return numbers;
        }
        let uplink = self.uplink.get_or_insert_with(|| Uplink::at(tcp.ack()));
        let ack = tcp.ack().unwrap_near(uplink.acked);
        // RFC 5961, Section 5.2. A flow that was resumed may have sent what was not seen.
        let known = ack <= uplink.sent || self.was_resumed;
        let accepted =
            numbers && known && ack + WINDOW_MAX >= uplink.acked && ack <= uplink.sent + WINDOW_MAX;
        if accepted {
            uplink.acked = uplink.acked.max(ack);
            uplink.sent = uplink.sent.max(ack);
        }
        accepted
    }

    /// A packet of the client.
    pub(super) fn is_of_client(&mut self, tcp: Tcp<'_>) -> bool {
        let uplink = self.uplink.get_or_insert_with(|| Uplink::at(tcp.seq()));
        let start = tcp.seq().unwrap_near(uplink.sent);
        if tcp.flags().contains(Flags::RST) {
            // After its FIN also the number before, as Linux has it (tcp_reset_check): data that left the server before it knew of the FIN
            // is answered so.
            let of_the_fin = self.client_fin.is_some() && start + 1 == uplink.sent;
            return of_the_fin || start == uplink.acked || start == uplink.sent;
        }
        let end = start + u64::from(tcp.seq_len());
        let numbers = end + WINDOW_MAX >= uplink.acked && end <= uplink.acked + WINDOW_MAX;
        let (una, reach) = (self.board.una(), self.reach() + self.segment());
        let ack = tcp.ack().unwrap_near(una);
        let acknowledges = !tcp.flags().contains(Flags::ACK)
            || (ack + WINDOW_MAX >= una && (ack <= reach || self.was_resumed && ack <= una + WINDOW_MAX));
        let accepted = numbers && acknowledges;
        if let (true, Some(uplink)) = (accepted, &mut self.uplink) {
            uplink.sent = uplink.sent.max(end);
        }
        accepted
    }

    /// The server may send so far, by what it was shown or what the client says itself.
    fn reach(&self) -> u64 {
        self.virtual_window.edge().max(self.right_edge).max(self.received)
    }

    /// What an ICMP message quotes is on its way to the client (RFC 5927, Section 4.1).
    pub(crate) fn is_on_its_way(&self, seq: Seq) -> bool {
        let position = seq.unwrap_near(self.received);
        (self.board.una()..=self.received).contains(&position)
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
