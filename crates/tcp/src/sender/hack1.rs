//! Hack 1 (OR, Section VIII): detects lost retransmissions while data is sent beyond the receive window.

use crate::scoreboard::Scoreboard;

/// State of Hack 1.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Hack1 {
    /// Number of duplicate ACKs without new SACK information.
    pub(super) stray_duplicates: u32,
    /// End of the segments beyond the window that these duplicates answered.
    discarded_to: u32,
    /// SND.NXT when a retransmission was last found lost.
    pub(super) doubted_to: u64,
}

impl Hack1 {
    /// A duplicate without SACK news answers a segment beyond the window, which the receiver has discarded. Our choice:
    /// mark it lost, so that it leaves the pipe. Otherwise a window full of discarded segments keeps back even the
    /// retransmissions that would show the next loss.
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

    /// True if new data may exceed the receive window. This assumes that retransmissions arrive (Section VIII). Our
    /// choice: after a lost retransmission, no data exceeds the window until all data sent by then is acknowledged.
    /// Without it hundreds of discarded segments are retransmitted together. Some of these are lost again, and so on
    /// for seconds.
    pub(super) fn may_exceed_window(&self, una: u64) -> bool {
        una >= self.doubted_to
    }

    /// Resets the count when an episode begins.
    pub(super) fn forget_strays(&mut self) {
        self.stray_duplicates = 0;
    }
}
