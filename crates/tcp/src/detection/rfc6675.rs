//! RFC 6675, Section 4: a segment is lost when DupThresh segments above it have arrived.

use super::{DUP_THRESH, DetectionName, LossDetection, LossOutcome, LossSample, mark_below};
use crate::scoreboard::Scoreboard;

/// State: how far segments were judged already, and duplicate ACKs seen.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Rfc6675 {
    judged: u64,
    dup_acks: u32,
    una: u64,
}

impl LossDetection for Rfc6675 {
    fn name(&self) -> DetectionName {
        DetectionName::Rfc6675
    }

    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        let mut outcome = LossOutcome::default();
        if board.una() != self.una {
            self.una = board.una();
            self.dup_acks = 0;
        }
        // A duplicate acknowledgment is one that brings news by SACK (RFC 6675, Section 2).
        self.dup_acks += u32::from(sample.sacked_news || sample.duplicate);
        self.judged = mark_below(board, self.judged, lost_below(board, DUP_THRESH), &mut outcome);
        // Section 5, step (1): DupThresh duplicate ACKs indicate a loss even if segments are small.
        if self.dup_acks >= DUP_THRESH && board.lost_out() == 0 && !board.is_empty() {
            let first = board.numbers().0;
            outcome.marked |=
                board.get(first).is_some_and(|s| !s.mark.contains(crate::scoreboard::Mark::RETRANSMITTED))
                    && board.mark_lost(first);
        }
        outcome
    }

    fn retransmits_early(&self) -> bool {
        true
    }

    fn on_recovery_end(&mut self, undone: bool) {
        if undone {
            // Marks were undone: judge again from the start.
            self.judged = 0;
            self.dup_acks = 0;
        }
    }
}

/// IsLost() of RFC 6675, Section 4: segments below this position have `threshold` arrived segments above them.
pub(super) fn lost_below(board: &Scoreboard, threshold: u32) -> u64 {
    let mut left = threshold;
    for (start, end) in board.sacked_ranges().iter().rev() {
        // Segments of this range, from its end.
        let (first, last) = (board.number_at(start), board.number_at(end - 1));
        let count = last.wrapping_sub(first) + 1;
        if count >= left {
            let number = last.wrapping_sub(left - 1);
            return board.get(number).map_or(start, |segment| segment.start);
        }
        left -= count;
    }
    board.una()
}

#[cfg(test)]
mod tests {
    use super::super::rack::tests::{board, sample_at};
    use super::*;

    #[test]
    fn three_segments_above_make_a_loss() {
        let mut detection = Rfc6675::default();
        let mut board = board(10);
        board.sack(1_200, 1_400, |_| {});
        let sample = LossSample { sacked_news: true, ..sample_at(20) };
        assert!(!detection.on_ack(&mut board, &sample).marked);
        board.sack(1_500, 1_600, |_| {});
        assert!(detection.on_ack(&mut board, &sample).marked);
        // 0 and 1 are lost; 4 has only one above it.
        assert_eq!((board.lost_out(), board.next_lost()), (2, Some(0)));
        board.sack(1_700, 1_900, |_| {});
        detection.on_ack(&mut board, &sample);
        assert_eq!(board.lost_out(), 3);
    }
}
