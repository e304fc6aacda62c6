//! Explicit congestion notification in segments (RFC 3168, Section 6.1): what is asked for in a SYN, what is echoed, which packets may
//! be marked. What the sender does about an echo is in `sender/episode.rs`.
//!
//! ABC uses the same bits in its own way (Goyal et al., NSDI 2020): its data leaves as ECT(1), accelerate, and a router may make ECT(0) of
//! it, brake. The receiver tells which of both came last by the bit that was the nonce sum's, today AE. No other sender of ours sends
//! ECT(1), and the bit has a meaning for those alone who have agreed to accurate ECN, which ours never do.

use paceline_wire::{Ecn, Flags, Packet};

use super::{Connection, State};
use crate::congestion::CongestionName;
use crate::segment::Incoming;
use crate::sender::Transmission;

const BOTH: Flags = Flags::ECE.union(Flags::CWR);

impl Connection {
    /// The flags with which our own SYN or SYN-ACK speaks of ECN (RFC 3168, Section 6.1.1). A SYN that was lost is sent again without, as
    /// boxes on the way may have dropped it for them (Section 6.1.1.1; Linux tcp_ecn_clear_syn).
    pub(super) fn ecn_of_syn(&self) -> Flags {
        match self.state {
            State::SynReceived if self.agreed.ecn => Flags::ECE,
            State::SynSent if self.config.ecn && self.handshake.retransmissions == 0 => BOTH,
            _ => Flags::empty(),
        }
    }

    /// The peer's SYN asks for ECN with both flags, its SYN-ACK agrees with one. Other combinations mean no ECN: both in a SYN-ACK are
    /// those of a peer that reflects what it does not know (RFC 3168, Section 6.1.1).
    pub(super) fn take_syn_ecn(&mut self, incoming: &Incoming) {
        let wanted = if incoming.has(Flags::ACK) { Flags::ECE } else { BOTH };
        self.agreed.ecn = self.config.ecn && incoming.flags & BOTH == wanted;
    }

    /// True when an ACK tells that one of our packets was marked.
    pub(super) fn is_echo(&self, incoming: &Incoming) -> bool {
        self.agreed.ecn && incoming.has(Flags::ECE) && !incoming.has(Flags::SYN)
    }

    /// What an ACK says to a sender of ABC; `None` for all others.
    #[inline]
    pub(super) fn accelerate_echo(&self, incoming: &Incoming) -> Option<bool> {
        let is_abc = self.agreed.ecn && self.config.congestion == CongestionName::Abc;
        (is_abc && !incoming.has(Flags::SYN)).then(|| incoming.has(Flags::AE))
    }

    /// A segment with data (RFC 3168, Section 6.1.3). CWR comes first: the packet that has it may be marked anew.
    pub(super) fn take_marks(&mut self, incoming: &Incoming) {
        if !self.agreed.ecn || incoming.len == 0 || incoming.has(Flags::SYN) {
            return;
        }
        if incoming.has(Flags::CWR) {
            self.echo.due = false;
            // As Linux: the sender may have a window of one.
            self.receiver.acks.now();
        }
        if incoming.ecn == Ecn::Ce {
            self.echo.ce_received += 1;
            if !core::mem::replace(&mut self.echo.due, true) {
                self.receiver.acks.on_congestion();
            }
        }
        self.take_accelerate(incoming.ecn);
    }

    /// An ACK speaks for all that it acknowledges. Our choice: each packet of ABC is acknowledged at once, because half of them brake and
    /// an ACK for two would say the same of both.
    #[inline]
    fn take_accelerate(&mut self, ecn: Ecn) {
        match ecn {
            Ecn::Ect1 => self.echo.accelerate = Some(true),
            Ecn::Ect0 if self.echo.accelerate.is_some() => self.echo.accelerate = Some(false),
            _ => return,
        }
        self.receiver.acks.now();
    }

    /// ECE, as long as it is due, and whether the peer may accelerate.
    #[inline(always)]
    pub(super) fn echo_flag(&self) -> Flags {
        let congestion = if self.echo.due { Flags::ECE } else { Flags::empty() };
        if self.echo.accelerate == Some(true) { congestion | Flags::AE } else { congestion }
    }

    /// New data may be marked, and tells of a reduction; what is sent again does neither (RFC 3168, Sections 6.1.2 and 6.1.5).
    #[inline(always)]
    pub(super) fn cwr_flag(&mut self, transmission: Transmission, payload: bool) -> Flags {
        let is_new = self.agreed.ecn && payload && !transmission.retransmission;
        if is_new && self.sender.episode.take_cwr() { Flags::CWR } else { Flags::empty() }
    }

    /// See [`cwr_flag`](Self::cwr_flag).
    #[inline(always)]
    pub(super) fn mark_capable(&self, transmission: Transmission, packet: &mut Packet) {
        if self.agreed.ecn && !transmission.retransmission && !packet.payload().is_empty() {
            let is_abc = self.config.congestion == CongestionName::Abc;
            packet.set_ecn(if is_abc { Ecn::Ect1 } else { Ecn::Ect0 });
        }
    }

    pub(crate) fn ecn_status(&self) -> (bool, u64) {
        (self.agreed.ecn, self.echo.ce_received)
    }
}
