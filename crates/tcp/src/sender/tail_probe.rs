//! The tail loss probe (RFC 8985, Section 7): its time, its segment, and its ACK.

use paceline_wire::Instant;

use super::Sender;
use super::messages::{Flags, ForcedSegment, Supply, Transmission};
use super::timer::TimerKind;
use crate::congestion::CaState;
use crate::rtt::RTO_INITIAL;

impl Sender {
    /// Schedules the probe (RFC 8985, Section 7.2). `advancing`: a retransmission timeout would restart now.
    pub(super) fn schedule_probe(&mut self, now: Instant, advancing: bool) -> bool {
        if !self.detection.probes_tail()
            || !self.sack_ok
            || self.board.is_empty()
            || !matches!(self.episode.state, CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let mut delay = match self.rtt.has_sample() {
            // Twice the RTT, plus the receiver's ACK delay if a single segment is in flight.
            true if self.board.packets_out() == 1 => self.rtt.srtt() * 2 + self.config.rto_min,
            true => self.rtt.srtt() * 2 + self.config.timeout_min(),
            false => RTO_INITIAL,
        };
        let rto_in = match advancing {
            true => self.rto(),
            false => self.retransmission_deadline().saturating_since(now),
        };
        if !rto_in.is_zero() {
            delay = delay.min(rto_in);
        }
        self.timer.set(TimerKind::Probe, now + delay);
        true
    }

    /// Requests the probe (RFC 8985, Section 7.3): a new segment if there is one, else the last one again.
    pub(super) fn on_probe_timeout(&mut self, now: Instant) {
        if self.tail_probe.high_seq.is_none() && !self.board.is_empty() {
            self.timer.note_unanswered(now, &self.board);
            self.forced = Some(ForcedSegment::Probe);
            self.tail_probe.retransmitted = false;
            self.totals.probes += 1;
        }
        self.rearm_retransmission(now);
    }

    /// Handles the ACK of the probe (RFC 8985, Section 7.4).
    #[inline]
    pub(super) fn take_probe_ack(&mut self, now: Instant, ack: u64, flags: Flags) {
        if let Some(high_seq) = self.tail_probe.high_seq.filter(|&high_seq| ack >= high_seq) {
            self.on_probe_ack(now, ack, high_seq, flags);
        }
    }

    #[cold]
    fn on_probe_ack(&mut self, now: Instant, ack: u64, high_seq: u64, flags: Flags) {
        if !self.tail_probe.retransmitted || flags.dsack_of_probe {
            self.tail_probe.high_seq = None;
        } else if ack > high_seq {
            // The probe repaired a loss, so the sender responds to it.
            self.episode.suppressed = self.keeps_from_congestion();
            self.begin_reduction(now);
            self.set_state(now, CaState::Cwr);
            self.end_reduction(now);
            self.try_keep_open(now);
        } else if !flags.una_advanced && !flags.not_duplicate() && !flags.data_sacked {
            self.tail_probe.high_seq = None;
        }
    }

    /// Sends the tail loss probe (RFC 8985, Section 7.3). It is new data if the receive window has room, whatever cwnd
    /// and Nagle say, else the last segment again.
    #[cold]
    pub(super) fn send_probe(&mut self, now: Instant, supply: Supply) -> Option<Transmission> {
        let new = match supply.end > self.board.nxt() {
            true => self.next_new(supply, self.board.una() + self.peer.snd_wnd, false),
            false => None,
        };
        let sent = match new {
            Some((end, fin)) => self.send_new(now, end, fin),
            None => {
                let last = self.board.numbers().1.wrapping_sub(1);
                self.tail_probe.retransmitted = true;
                self.retransmit(now, last)?
            }
        };
        self.tail_probe.high_seq = Some(self.board.nxt());
        self.timer.set(TimerKind::Retransmission, now + self.rto());
        // One probe for each tail. After it only the timeout remains (tcp_write_xmit, push_one of 2).
        self.usage.unprobed = false;
        Some(sent)
    }
}
