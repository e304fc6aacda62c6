//! Undo of unnecessary reductions: Eifel (RFC 3522, RFC 4015), D-SACK (RFC 3708).

use paceline_wire::Instant;

use super::Sender;
use crate::congestion::CaState;

impl Sender {
    fn packet_delayed(&self, tsecr: Option<u32>) -> bool {
        self.timestamps && self.episode.undo.is_answered_early(tsecr)
    }

    fn may_undo(&self, tsecr: Option<u32>) -> bool {
        let undo = &self.episode.undo;
        let delayed = || undo.marker.is_some() && self.packet_delayed(tsecr);
        self.config.undo && (undo.is_answered_twice() || delayed())
    }

    /// Restores window and threshold.
    pub(super) fn undo_reduction(&mut self, unmark_lost: bool) {
        if unmark_lost {
            self.board.unmark_lost();
        }
        if self.episode.prior_ssthresh > 0 {
            self.control.undo(self.episode.prior_cwnd, self.episode.prior_ssthresh);
            self.episode.withdraw_cwr();
        }
        self.episode.undo.marker = None;
        self.detection.on_recovery_end(true);
        self.totals.undos += 1;
    }

    /// Undoes the reduction if possible, at the end of an episode (tcp_try_undo_recovery).
    pub(super) fn try_undo_recovery(&mut self, tsecr: Option<u32>) {
        if self.may_undo(tsecr) {
            self.undo_reduction(false);
        } else {
            self.detection.on_recovery_end(false);
        }
    }

    /// Undoes the reduction if D-SACKs have reported every retransmission (tcp_try_undo_dsack).
    pub(super) fn try_undo_dsack(&mut self) -> bool {
        let undone = self.config.undo && self.episode.undo.is_answered_twice();
        if undone {
            self.undo_reduction(false);
        }
        undone
    }

    /// Undoes the reduction if a partial ACK answers an original transmission (tcp_try_undo_partial). True if nothing
    /// else is to do yet.
    pub(super) fn try_undo_partial(&mut self, now: Instant, prior_una: u64, tsecr: Option<u32>) -> bool {
        if !self.config.undo || self.episode.undo.marker.is_none() || !self.packet_delayed(tsecr) {
            return false;
        }
        self.reordering.note(prior_una, self.board.highest_sack(), self.mss);
        // Waits until the retransmissions in flight are accounted for.
        if self.board.retrans_out() > 0 {
            return true;
        }
        self.episode.undo.check_stamp(&self.board);
        self.undo_reduction(true);
        self.try_keep_open(now);
        true
    }

    /// Undoes the reduction after a timeout (tcp_try_undo_loss).
    pub(super) fn try_undo_loss(&mut self, now: Instant, frto: bool, tsecr: Option<u32>) -> bool {
        if !frto && !self.may_undo(tsecr) {
            return false;
        }
        self.undo_reduction(true);
        self.timer.retransmits = 0;
        if !self.must_not_reopen() && (frto || self.sack_ok) {
            self.set_state(now, CaState::Open);
        }
        true
    }
}
