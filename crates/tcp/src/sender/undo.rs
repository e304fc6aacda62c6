//! Reductions that were not called for: Eifel (RFC 3522, RFC 4015), D-SACK (RFC 3708).

use paceline_wire::Instant;

use super::Sender;
use crate::congestion::CaState;
use crate::event::Event;

/// What is needed to take a reduction back.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Undo {
    /// SND.UNA when the reduction began; `None` when nothing can be taken back.
    pub(super) marker: Option<u64>,
    /// Retransmissions of the episode that no D-SACK has answered; `None` before the first.
    pub(super) retrans: Option<u32>,
    /// The timestamp of the episode's first retransmission.
    pub(super) retrans_stamp: Option<u32>,
}

impl Sender {
    /// An episode begins (tcp_init_undo).
    pub(super) fn init_undo(&mut self) {
        self.undo.marker = Some(self.board.una());
        let out = self.board.retrans_out();
        self.undo.retrans = (out > 0).then_some(out);
    }

    /// The ACK answers what was sent before the first retransmission (tcp_packet_delayed).
    fn packet_delayed(&self, tsecr: Option<u32>) -> bool {
        match (self.undo.retrans_stamp, tsecr) {
            (Some(stamp), Some(tsecr)) => self.timestamps && (tsecr.wrapping_sub(stamp) as i32) < 0,
            _ => false,
        }
    }

    fn may_undo(&self, tsecr: Option<u32>) -> bool {
        self.config.undo
            && self.undo.marker.is_some()
            && (self.undo.retrans == Some(0) || self.packet_delayed(tsecr))
    }

    /// Window and threshold as before (tcp_undo_cwnd_reduction).
    pub(super) fn undo_reduction(&mut self, now: Instant, unmark_lost: bool) {
        if unmark_lost {
            self.board.unmark_lost();
        }
        if self.prior_ssthresh > 0 {
            self.window.cwnd = self.congestion.undo(self.window, self.prior_cwnd).min(self.window.clamp);
            self.window.ssthresh = self.window.ssthresh.max(self.prior_ssthresh);
            // Nothing was reduced (tcp_ecn_withdraw_cwr).
            self.cwr_due = false;
        }
        self.undo.marker = None;
        self.detection.on_recovery_end(true);
        self.totals.undos += 1;
        self.emit(now, Event::Undone);
    }

    /// At the end of an episode (tcp_try_undo_recovery).
    pub(super) fn try_undo_recovery(&mut self, now: Instant, tsecr: Option<u32>) {
        if self.may_undo(tsecr) {
            self.undo_reduction(now, false);
        } else {
            self.detection.on_recovery_end(false);
        }
    }

    /// D-SACKs have answered every retransmission (tcp_try_undo_dsack).
    pub(super) fn try_undo_dsack(&mut self, now: Instant) -> bool {
        let undone = self.config.undo && self.undo.marker.is_some() && self.undo.retrans == Some(0);
        if undone {
            self.undo_reduction(now, false);
        }
        undone
    }

    /// A partial ACK answers an original (tcp_try_undo_partial). True when nothing else is to be done for now.
    pub(super) fn try_undo_partial(&mut self, now: Instant, prior_una: u64, tsecr: Option<u32>) -> bool {
        if !self.config.undo || self.undo.marker.is_none() || !self.packet_delayed(tsecr) {
            return false;
        }
        self.check_reordering(prior_una);
        // Wait until the retransmissions on their way are accounted for.
        if self.board.retrans_out() > 0 {
            return true;
        }
        if !self.any_retransmitted() {
            self.undo.retrans_stamp = None;
        }
        self.undo_reduction(now, true);
        self.try_keep_open(now);
        true
    }

    /// After a timeout (tcp_try_undo_loss).
    pub(super) fn try_undo_loss(&mut self, now: Instant, frto: bool, tsecr: Option<u32>) -> bool {
        if !frto && !self.may_undo(tsecr) {
            return false;
        }
        self.undo_reduction(now, true);
        self.retransmits = 0;
        if !self.must_not_reopen() && (frto || self.sack_ok) {
            self.set_state(now, CaState::Open);
        }
        true
    }

    /// Whether the first segment was ever sent again (tcp_any_retrans_done).
    pub(super) fn any_retransmitted(&self) -> bool {
        use crate::scoreboard::Mark;
        self.board.retrans_out() > 0
            || self.board.iter().next().is_some_and(|s| s.mark.contains(Mark::EVER_RETRANSMITTED))
    }
}
