//! Explicit congestion notification in segments (RFC 3168, Section 6.1): negotiation in the SYN, echoes, and which
//! packets may be marked. `sender/episode.rs` and `sender/transitions.rs` have the sender's response to an echo.
//!
//! ABC uses the same bits in its own way (Goyal et al., NSDI 2020). Its data leaves as ECT(1), which means accelerate.
//! A router may change it to ECT(0), which means brake. The receiver echoes the last of the two in the former nonce-sum
//! bit, today AE. No other sender of ours sends ECT(1). The AE bit has another meaning only after negotiation of
//! accurate ECN, which our ends never do.

use paceline_wire::{Ecn, Flags, Packet};

use super::{Connection, State};
use crate::congestion::CongestionName;
use crate::segment::Incoming;
use crate::sender::Transmission;

const BOTH: Flags = Flags::ECE.union(Flags::CWR);

impl Connection {
    /// Returns the ECN flags of our SYN or SYN-ACK (RFC 3168, Section 6.1.1). A retransmitted SYN has none, because
    /// middleboxes may have dropped the first one for its flags (Section 6.1.1.1; Linux tcp_ecn_clear_syn).
    pub(super) fn ecn_of_syn(&self) -> Flags {
        match self.state {
            State::SynReceived if self.agreed.ecn => Flags::ECE,
            State::SynSent if self.config.ecn && self.handshake.retransmissions == 0 => BOTH,
            _ => Flags::empty(),
        }
    }

    /// The peer's SYN requests ECN with both flags, and its SYN-ACK agrees with ECE alone. Any other combination means
    /// no ECN. A SYN-ACK with both flags comes from a peer that reflects unknown bits (RFC 3168, Section 6.1.1).
    pub(super) fn take_syn_ecn(&mut self, incoming: &Incoming) {
        let wanted = if incoming.has(Flags::ACK) { Flags::ECE } else { BOTH };
        self.agreed.ecn = self.config.ecn && incoming.flags & BOTH == wanted;
    }

    /// True if an ACK reports that one of our packets was marked.
    pub(super) fn is_echo(&self, incoming: &Incoming) -> bool {
        self.agreed.ecn && incoming.has(Flags::ECE) && !incoming.has(Flags::SYN)
    }

    /// Returns the accelerate bit of an ACK to an ABC sender, `None` for all other senders.
    #[inline]
    pub(super) fn accelerate_echo(&self, incoming: &Incoming) -> Option<bool> {
        let is_abc = self.agreed.ecn && self.config.congestion == CongestionName::Abc;
        (is_abc && !incoming.has(Flags::SYN)).then(|| incoming.has(Flags::AE))
    }

    /// Takes the marks of a segment with data (RFC 3168, Section 6.1.3). CWR is handled first, because the packet that
    /// carries it may itself be marked.
    pub(super) fn take_marks(&mut self, incoming: &Incoming) {
        if !self.agreed.ecn || incoming.len == 0 || incoming.has(Flags::SYN) {
            return;
        }
        if incoming.has(Flags::CWR) {
            self.echo.due = false;
            // As Linux: the sender may have a window of one segment.
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

    /// Our choice: each ABC packet is acknowledged at once. About half of the packets say brake, and one ACK for two
    /// packets could echo only one of them.
    #[inline]
    fn take_accelerate(&mut self, ecn: Ecn) {
        match ecn {
            Ecn::Ect1 => self.echo.accelerate = Some(true),
            Ecn::Ect0 if self.echo.accelerate.is_some() => self.echo.accelerate = Some(false),
            _ => return,
        }
        self.receiver.acks.now();
    }

    /// Returns ECE while it is due, and AE if the peer may accelerate.
    #[inline(always)]
    pub(super) fn echo_flag(&self) -> Flags {
        let congestion = if self.echo.due { Flags::ECE } else { Flags::empty() };
        if self.echo.accelerate == Some(true) { congestion | Flags::AE } else { congestion }
    }

    /// Returns CWR for the first new data after a reduction. Retransmissions neither carry it nor may be marked (RFC
    /// 3168, Sections 6.1.2 and 6.1.5).
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
