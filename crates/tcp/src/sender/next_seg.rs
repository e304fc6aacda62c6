//! Segments for recovery when no lost segment waits and no new data may be sent: NextSeg(), rules (3) and (4) of RFC
//! 6675, Section 4.

use crate::scoreboard::{Mark, Scoreboard};

/// State of NextSeg.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct NextSeg {
    /// End of the segments that were retransmitted in this recovery (HighRxt) or need no further search.
    high_rxt: u32,
    /// RescueRxt: RecoveryPoint of the last rescue.
    rescue_rxt: Option<u64>,
}

impl NextSeg {
    /// Recovery begins.
    pub(super) fn begin(&mut self, board: &Scoreboard) {
        self.high_rxt = board.numbers().0;
    }

    /// A segment was retransmitted in recovery.
    pub(super) fn on_retransmitted(&mut self, number: u32) {
        let next = number.wrapping_add(1);
        if (next.wrapping_sub(self.high_rxt) as i32) > 0 {
            self.high_rxt = next;
        }
    }

    /// Rule (3): returns a segment that is missing and not retransmitted, and lies below a segment that has arrived.
    /// Fewer than DupThresh later segments have arrived, or it would be marked lost.
    pub(super) fn unreported_hole(&mut self, board: &Scoreboard) -> Option<u32> {
        if board.sacked_out() == 0 {
            return None;
        }
        let first = board.numbers().0;
        let end = board.number_at(board.highest_sack() - 1);
        let mut number = self.high_rxt;
        if (number.wrapping_sub(first) as i32) < 0 {
            number = first;
        }
        while (end.wrapping_sub(number) as i32) > 0 {
            self.high_rxt = number;
            let known = Mark::SACKED | Mark::RETRANSMITTED;
            if board.get(number).is_some_and(|segment| !segment.mark.intersects(known)) {
                return Some(number);
            }
            number = number.wrapping_add(1);
        }
        None
    }

    /// Rule (4): returns the highest segment that has not arrived, once in a recovery.
    pub(super) fn rescue(&mut self, board: &Scoreboard, high_seq: u64) -> Option<u32> {
        if self.rescue_rxt.is_some_and(|rescue| board.una() <= rescue) {
            return None;
        }
        let last = board.iter().rev().position(|segment| !segment.mark.contains(Mark::SACKED))?;
        self.rescue_rxt = Some(high_seq.max(board.una()));
        Some(board.numbers().1.wrapping_sub(1 + last as u32))
    }
}
