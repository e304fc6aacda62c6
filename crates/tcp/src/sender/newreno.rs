//! Recovery without SACK (RFC 6582), by duplicate ACKs that stand for segments that have left (Linux tcp_add_reno_sack).

use super::Sender;

/// Segments that duplicate ACKs stand for.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct NewReno {
    pub(super) sacked: u32,
}

impl Sender {
    /// A duplicate ACK: one more segment has left. True when it counts as delivered.
    pub(super) fn newreno_duplicate(&mut self) -> bool {
        // At least the first segment is missing (tcp_limit_reno_sacked).
        let most = self.board.packets_out().saturating_sub(self.board.lost_out().max(1));
        if self.sack_ok || self.newreno.sacked >= most {
            return false;
        }
        self.newreno.sacked += 1;
        true
    }

    /// SND.UNA has advanced over `acked` segments: all but the hole's own had been counted (tcp_remove_reno_sacks). Returns how many
    /// of them duplicate ACKs had told of, so that they are not counted as delivered again.
    pub(super) fn newreno_advanced(&mut self, acked: u32) -> u32 {
        let told = self.newreno.sacked.min(acked.saturating_sub(1));
        self.newreno.sacked -= told;
        if self.board.is_empty() {
            self.newreno.sacked = 0;
        }
        told
    }

    /// Nothing is known of what has left any more.
    pub(super) fn newreno_reset(&mut self) {
        self.newreno.sacked = 0;
    }

    /// The first segment is lost after three duplicates, or when a partial ACK uncovers it in recovery
    /// (tcp_newreno_mark_lost).
    pub(super) fn newreno_mark_lost(&mut self, una_advanced: bool) {
        use crate::congestion::CaState;
        let enough = match self.state {
            CaState::Recovery => una_advanced,
            _ => self.newreno.sacked >= self.reordering,
        };
        if let Some(first) = self.board.first_hole().filter(|_| enough) {
            self.board.mark_lost(first);
        }
    }
}
