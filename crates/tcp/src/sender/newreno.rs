//! Recovery without SACK (RFC 6582). Each duplicate ACK stands for a segment that has left the network (Linux
//! tcp_add_reno_sack).

use crate::scoreboard::Scoreboard;

/// Number of segments that duplicate ACKs stand for.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct NewReno {
    pub(super) sacked: u32,
}

impl NewReno {
    /// Counts a duplicate ACK as one more segment that has left the network. True if it counts as delivered.
    pub(super) fn on_duplicate(&mut self, board: &Scoreboard) -> bool {
        // At least the first segment is missing (tcp_limit_reno_sacked).
        let most = board.packets_out().saturating_sub(board.lost_out().max(1));
        let counts = self.sacked < most;
        self.sacked += u32::from(counts);
        counts
    }

    /// SND.UNA has advanced over `acked` segments. Duplicate ACKs had counted all but the lost one
    /// (tcp_remove_reno_sacks). Returns how many of them were counted, so that they do not count as delivered again.
    pub(super) fn on_advance(&mut self, acked: u32, board: &Scoreboard) -> u32 {
        let told = self.sacked.min(acked.saturating_sub(1));
        self.sacked = if board.is_empty() { 0 } else { self.sacked - told };
        told
    }

    /// Forgets all duplicate ACKs.
    pub(super) fn reset(&mut self) {
        self.sacked = 0;
    }

    /// Marks the first segment lost if `enough`: three duplicates, or a partial ACK in recovery
    /// (tcp_newreno_mark_lost).
    pub(super) fn mark_lost(&self, board: &mut Scoreboard, enough: bool) {
        if let Some(first) = board.first().filter(|_| enough) {
            board.mark_lost(first);
        }
    }
}
