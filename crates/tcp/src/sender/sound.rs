//! Checks the state of a sender that was read from another process.

use super::{Sender, Totals};

impl Sender {
    /// True if no count exceeds `most`, and counts match the segments in flight.
    pub(crate) fn is_sound(&self, most: u64) -> bool {
        let board = &self.board;
        let peer = &self.peer;
        board.is_sound()
            && board.iter().all(|segment| segment.delivered <= self.rate.delivered())
            && self.report.is_sound(board.lost_total(), most)
            && self.totals.counts().into_iter().all(|count| count < most)
            && self.mss > 0
            && peer.snd_wnd.max(peer.max_window).max(self.rate.delivered()) < most
    }
}

impl Totals {
    fn counts(&self) -> [u64; 15] {
        let Totals {
            segments_sent,
            bytes_sent,
            segments_retransmitted,
            bytes_retransmitted,
            bytes_acked,
            ..
        } = *self;
        let Totals { timeouts, probes, recoveries, stalled_recoveries, stalls, undos, dsack_dups, .. } =
            *self;
        let Totals { beyond_window, hack1, ecn_reductions, .. } = *self;
        [
            segments_sent, bytes_sent, segments_retransmitted, bytes_retransmitted, bytes_acked, timeouts,
            probes, recoveries, stalled_recoveries, stalls, undos, dsack_dups, beyond_window, hack1,
            ecn_reductions,
        ]
    }
}
