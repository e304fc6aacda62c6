//! Hack 1 (OR, Section VIII): what tells that a retransmission was lost while data goes beyond the window.

use crate::scoreboard::Scoreboard;

/// State of Hack 1.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Hack1 {
    /// Duplicate ACKs without news by SACK.
    pub(super) stray_duplicates: u32,
    /// Segments beyond the window, up to this number, that such duplicates answered.
    discarded_to: u32,
    /// SND.NXT when a retransmission was last found lost.
    pub(super) doubted_to: u64,
}

impl Hack1 {
    /// A duplicate without news answers a segment beyond the window, which the receiver has thrown away. Our choice: it is
    /// lost and has left the pipe; otherwise a window full of such segments keeps even the retransmissions back that would
    /// show the next loss.
    pub(super) fn mark_discarded(&mut self, board: &mut Scoreboard, edge: u64) {
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
