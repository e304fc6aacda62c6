//! Hack 1 (OR, Section VIII): what tells that a retransmission was lost while data goes beyond the window.

use super::Sender;
use super::ack::Flags;
use super::transmit::Forced;
use crate::config::Hack1Changes;
use crate::detection::DUP_THRESH;
use crate::scoreboard::{Mark, Scoreboard};

/// State of Hack 1.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Hack1 {
    /// Duplicate ACKs without news by SACK.
    stray_duplicates: u32,
    /// Segments beyond the window, up to this number, that such duplicates answered.
    discarded_to: u32,
    /// SND.NXT when a retransmission was last found lost.
    doubted_to: u64,
}

impl Hack1 {
    /// A duplicate without news answers a segment beyond the window, which the receiver has thrown away. Our choice: it is
    /// lost and has left the pipe; otherwise a window full of such segments keeps even the retransmissions back that would
    /// show the next loss.
    fn mark_discarded(&mut self, board: &mut Scoreboard, edge: u64) {
        if board.nxt() <= edge {
            return;
        }
        let (mut number, end) = (board.number_at(edge), board.numbers().1);
        let ahead = |from: u32, to: u32| to.wrapping_sub(from) as i32;
        if ahead(number, self.discarded_to) > 0 && ahead(self.discarded_to, end) >= 0 {
            number = self.discarded_to;
        }
        while number != end {
            let marked = board.mark_lost(number);
            number = number.wrapping_add(1);
            if marked {
                break;
            }
        }
        self.discarded_to = number;
    }

    /// New data may go beyond the window only on the assumption that retransmissions arrive (Section VIII). Our choice: once
    /// one was lost, nothing goes there until all that was sent by then is acknowledged. What the receiver throws away has
    /// to be retransmitted, hundreds of segments at once, of which again some are lost, and so on for seconds.
    pub(super) fn may_exceed_window(&self, una: u64) -> bool {
        una >= self.doubted_to
    }

    /// Another episode begins.
    pub(super) fn forget_strays(&mut self) {
        self.stray_duplicates = 0;
    }
}

impl Sender {
    /// OR, Section VIII, Hack 1: duplicate ACKs without news by SACK answer data beyond the window, so the retransmission
    /// that should have opened it is lost. After DupThresh the first segment goes again.
    ///
    /// As printed (`hack1_text`) that is all, and the count has to exceed DupThresh. What is ours beyond that has a switch each in
    /// [`Hack1Changes`]; docs/evidence/reproduction.md says what it is worth.
    pub(super) fn detect_discards(&mut self, flags: Flags) {
        let changes = match (self.config.hack1, self.config.hack1_text) {
            (_, true) => self.config.hack1_changes,
            (true, false) => Hack1Changes::ALL,
            (false, false) => return,
        };
        if flags.lost_retransmission && changes.holds {
            self.hack1.doubted_to = self.board.nxt();
        }
        if flags.una_advanced || flags.data_sacked {
            self.hack1.stray_duplicates = 0;
            return;
        }
        if flags.not_duplicate() {
            return;
        }
        self.hack1.stray_duplicates += 1;
        if changes.marks {
            let edge = self.board.una() + self.peer.snd_wnd;
            self.hack1.mark_discarded(&mut self.board, edge);
        }
        if self.hack1.stray_duplicates < DUP_THRESH + u32::from(!changes.at_third) {
            return;
        }
        if changes.holds {
            self.hack1.doubted_to = self.board.nxt();
        }
        self.hack1.stray_duplicates = 0;
        let Some(first) = self.board.first() else { return };
        let Some(segment) = self.board.get(first) else { return };
        // Our choice: not again within a round trip of the last time, because the answer cannot have come.
        let answered = segment.sent_at + self.rtt.srtt() <= self.peer.last_arrival;
        let lost_again = segment.mark.contains(Mark::RETRANSMITTED) && answered;
        if segment.is_lost_and_waiting() || (lost_again && self.board.mark_lost(first)) {
            self.totals.hack1 += 1;
            // A fast retransmit, whatever cwnd says: what went beyond the window still counts as in flight.
            self.forced = Some(Forced::Lost);
        }
    }
}
