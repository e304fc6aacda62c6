//! Forward acknowledgement as in Linux 3.10 (tcp_update_scoreboard, tcp_mark_lost_retrans).

use super::rfc6675::lost_below;
use super::{DetectionName, LossDetection, LossOutcome, LossSample, mark_below};
use crate::scoreboard::{Mark, Scoreboard};

/// A segment is lost if it is more than `reordering` segments behind the most forward one. A retransmission is lost
/// when new data that was sent after it has arrived. Once reordering was seen, arrived segments above are counted
/// instead, as in Linux.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Fack {
    judged: u64,
    /// No retransmission in flight is lost until SACK reports data above this (Linux lost_retrans_low).
    lost_retrans_low: u64,
}

impl LossDetection for Fack {
    fn name(&self) -> DetectionName {
        DetectionName::Fack
    }

    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        let mut outcome = LossOutcome::default();
        if board.sacked_out() > 0 && (sample.sacked_news || sample.duplicate || board.lost_out() > 0) {
            let below = match sample.reordering_seen {
                true => lost_below(board, sample.reordering),
                false => behind_most_forward(board, sample.reordering),
            };
            self.judged = mark_below(board, self.judged, below, &mut outcome);
        }
        if !sample.reordering_seen && board.retrans_out() > 0 {
            self.mark_lost_retransmissions(board, &mut outcome);
        }
        outcome
    }

    fn on_recovery_end(&mut self, undone: bool) {
        self.lost_retrans_low = 0;
        if undone {
            self.judged = 0;
        }
    }
}

impl Fack {
    fn mark_lost_retransmissions(&mut self, board: &mut Scoreboard, outcome: &mut LossOutcome) {
        let received_upto = board.highest_sack();
        if received_upto <= self.lost_retrans_low {
            return;
        }
        let (mut number, end) = board.numbers();
        let (mut left, mut low) = (board.retrans_out(), u64::MAX);
        while number != end && left > 0 {
            if let Some(segment) = board.get(number).filter(|s| s.mark.contains(Mark::RETRANSMITTED)) {
                left -= 1;
                if received_upto > segment.nxt_at_send {
                    board.mark_lost(number);
                    outcome.marked = true;
                    outcome.lost_retransmission = true;
                } else {
                    low = low.min(segment.nxt_at_send);
                }
            }
            number = number.wrapping_add(1);
        }
        self.lost_retrans_low = if low == u64::MAX { 0 } else { low };
    }
}

/// The end of the last segment that is more than `reordering` segments behind the most forward one.
fn behind_most_forward(board: &Scoreboard, reordering: u32) -> u64 {
    let first = board.numbers().0;
    let most_forward = board.number_at(board.highest_sack().saturating_sub(1));
    // fackets_out counts up to and including the most forward segment.
    let fackets_out = most_forward.wrapping_sub(first) + 1;
    match fackets_out.checked_sub(reordering) {
        Some(lost) if lost > 0 => board.get(first.wrapping_add(lost - 1)).map_or(0, |segment| segment.end),
        _ => board.una(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rack::tests::{board, sample_at, stamp};
    use super::*;

    #[test]
    fn the_most_forward_segment_decides() {
        let mut board = board(10);
        board.sack(1_400, 1_500, |_| {});
        let sample = LossSample { sacked_news: true, reordering: 3, ..sample_at(20) };
        assert!(Fack::default().on_ack(&mut board, &sample).marked);
        // Four segments are behind it. Of the five, two are more than three behind the end.
        assert_eq!(board.lost_out(), 2);
    }

    #[test]
    fn a_retransmission_is_lost_when_newer_data_arrived() {
        let mut fack = Fack::default();
        let mut board = board(10);
        let sample = LossSample { sacked_news: true, reordering: 3, ..sample_at(20) };
        board.sack(1_100, 1_500, |_| {});
        fack.on_ack(&mut board, &sample);
        board.on_retransmitted(0, stamp(20));
        board.push(2_100, false, stamp(21));
        board.sack(1_100, 2_000, |_| {});
        assert!(!fack.on_ack(&mut board, &sample).lost_retransmission);
        board.sack(2_000, 2_100, |_| {});
        assert!(fack.on_ack(&mut board, &sample).lost_retransmission);
        assert_eq!(board.next_lost(), Some(0));
    }
}
