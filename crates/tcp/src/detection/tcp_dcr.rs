//! TCP-DCR: S. Bhandarkar, A. L. N. Reddy, "TCP-DCR: Making TCP Robust to Non-Congestion Events", Networking 2004. RFC 4653
//! (NCR) is its successor, which counts duplicates in place of time.

use alloc::collections::VecDeque;

use paceline_wire::Instant;

use super::{DetectionName, LossDetection, LossOutcome, LossSample, mark_below};
use crate::scoreboard::Scoreboard;

/// A hole is lost if it still exists one round trip after the first duplicate ACK for it. In this time the link layer
/// can repair it. Retransmission and congestion response wait together.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct TcpDcr {
    judged: u64,
    /// The highest positions reported, with the time of the duplicate ACK. Data up to a position was first overtaken
    /// then.
    overtaken: VecDeque<(u64, Instant)>,
}

impl TcpDcr {
    /// Marks segments that were overtaken long enough ago. The delay is the RTT (Section 3, tau): the smoothed one, as
    /// in the paper.
    fn detect(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        let mut outcome = LossOutcome::default();
        let ripe = |since: Instant| since + sample.srtt <= sample.now;
        while self.overtaken.get(1).is_some_and(|&(_, since)| ripe(since)) {
            self.overtaken.pop_front();
        }
        if let Some(&(highest, _)) = self.overtaken.front().filter(|&&(_, since)| ripe(since)) {
            self.judged = mark_below(board, self.judged, highest, &mut outcome);
        }
        while self.overtaken.front().is_some_and(|&(highest, _)| highest <= board.una()) {
            self.overtaken.pop_front();
        }
        let next = self.overtaken.iter().map(|&(_, since)| since + sample.srtt).find(|&at| at > sample.now);
        outcome.timer = next.filter(|_| board.has_open_holes());
        outcome
    }
}

impl LossDetection for TcpDcr {
    fn name(&self) -> DetectionName {
        DetectionName::TcpDcr
    }

    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        let highest = board.highest_sack();
        if board.sacked_out() == 0 {
            // Nothing is missing.
            self.overtaken.clear();
        } else if self.overtaken.back().is_none_or(|&(known, _)| highest > known) {
            self.overtaken.push_back((highest, sample.now));
        }
        self.detect(board, sample)
    }

    fn on_timeout(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        self.detect(board, sample)
    }

    fn on_recovery_end(&mut self, undone: bool) {
        if undone {
            self.judged = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rack::tests::{board, sample_at};
    use super::*;

    #[test]
    fn a_hole_is_lost_a_round_trip_after_the_first_duplicate() {
        let (mut dcr, mut board) = (TcpDcr::default(), board(10));
        board.sack(1_100, 1_600, |_| {});
        let outcome = dcr.on_ack(&mut board, &sample_at(50));
        // Five duplicates are not enough; SRTT is 40 ms.
        assert_eq!((outcome.marked, outcome.timer), (false, Some(sample_at(90).now)));
        board.sack(1_700, 1_800, |_| {});
        assert!(!dcr.on_ack(&mut board, &sample_at(60)).marked);
        let outcome = dcr.on_timeout(&mut board, &sample_at(90));
        // The hole at 1,600 was reported 10 ms later.
        assert_eq!((outcome.marked, board.lost_out(), outcome.timer), (true, 1, Some(sample_at(100).now)));
        assert!(dcr.on_timeout(&mut board, &sample_at(100)).marked);
        assert_eq!(board.lost_out(), 2);
    }

    #[test]
    fn a_hole_that_the_link_fills_is_forgotten() {
        let (mut dcr, mut board) = (TcpDcr::default(), board(10));
        board.sack(1_100, 1_600, |_| {});
        dcr.on_ack(&mut board, &sample_at(50));
        board.acknowledge(1_600, |_| {});
        let outcome = dcr.on_ack(&mut board, &sample_at(80));
        assert_eq!((outcome.marked, outcome.timer), (false, None));
        assert!(!dcr.on_timeout(&mut board, &sample_at(90)).marked);
    }
}
