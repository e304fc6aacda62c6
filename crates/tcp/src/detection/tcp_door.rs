//! TCP-DOOR: F. Wang, Y. Zhang, "Improving TCP Performance over Mobile Ad-Hoc Networks with Out-Of-Order Detection and
//! Response", MobiHoc 2002.

use paceline_wire::Instant;

use super::rfc6675::Rfc6675;
use super::{CongestionResponse, DetectionName, LossDetection, LossOutcome, LossSample};
use crate::scoreboard::{Scoreboard, Segment};

/// Delivery out of order indicates a new route. For a while after it there is no congestion response, and a response
/// given shortly before is undone. Losses are found as by RFC 6675.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct TcpDoor {
    losses: Rfc6675,
    /// Until then congestion control is disabled (Section 4.1, T1).
    disabled_until: Option<Instant>,
    /// Time of the last congestion response (Section 4.2, "instant recovery", T2).
    answered_at: Option<Instant>,
    out_of_order: bool,
}

/// T1 and T2 in smoothed RTTs. Our choice, because the paper's experiments vary them: after two round trips all data
/// sent on the old route has been acknowledged or was lost.
const T1_RTTS: u64 = 2;
const T2_RTTS: u64 = 2;

impl TcpDoor {
    fn is_disabled(&self, now: Instant) -> bool {
        self.disabled_until.is_some_and(|until| now < until)
    }
}

impl LossDetection for TcpDoor {
    fn name(&self) -> DetectionName {
        DetectionName::TcpDoor
    }

    fn owns_response(&self) -> bool {
        true
    }

    fn on_measurement(&mut self, sample: &LossSample) {
        if sample.reordered_by > 0 || sample.dsack {
            // In the paper every transmission has a number, by which the receiver marks ACKs of data out of order. SACK
            // shows the same if a segment without retransmission arrives below one that arrived earlier. If it was
            // retransmitted before, D-SACK shows it.
            self.disabled_until = Some(sample.now + sample.srtt * T1_RTTS);
            self.out_of_order = true;
        }
    }

    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        let mut outcome = self.losses.on_ack(board, sample);
        let recently = |at: Instant| sample.now.saturating_since(at) <= sample.srtt * T2_RTTS;
        if core::mem::take(&mut self.out_of_order) && self.answered_at.is_some_and(recently) {
            self.answered_at = None;
            outcome.response = CongestionResponse::Undo;
        } else if outcome.marked && !self.is_disabled(sample.now) {
            self.answered_at = Some(sample.now);
            outcome.response = CongestionResponse::FastRecovery;
        }
        outcome
    }

    /// While congestion control is disabled the state variables keep their values, also through a timeout.
    fn answers_timeout(&mut self, now: Instant) -> bool {
        let answers = !self.is_disabled(now);
        if answers {
            self.answered_at = Some(now);
        }
        answers
    }

    fn expires(&self, segment: &Segment, sample: &LossSample) -> bool {
        self.losses.expires(segment, sample)
    }

    fn on_recovery_end(&mut self, undone: bool) {
        self.losses.on_recovery_end(undone);
    }

    fn retransmits_early(&self) -> bool {
        self.losses.retransmits_early()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rack::tests::{board, sample_at};
    use super::*;

    fn news(ms: u64) -> LossSample {
        LossSample { sacked_news: true, ..sample_at(ms) }
    }

    #[test]
    fn a_loss_is_answered_unless_something_came_out_of_order() {
        let (mut door, mut plain) = (TcpDoor::default(), board(10));
        plain.sack(1_100, 1_500, |_| {});
        assert_eq!(door.on_ack(&mut plain, &news(50)).response, CongestionResponse::FastRecovery);
        let (mut door, mut reordered) = (TcpDoor::default(), board(10));
        door.on_measurement(&LossSample { reordered_by: 2, ..sample_at(45) });
        reordered.sack(1_100, 1_500, |_| {});
        let outcome = door.on_ack(&mut reordered, &news(50));
        assert_eq!((outcome.marked, outcome.response), (true, CongestionResponse::None));
        assert!(!door.answers_timeout(sample_at(100).now) && door.answers_timeout(sample_at(130).now));
    }

    #[test]
    fn a_retransmission_that_was_overtaken_by_its_original_tells_too() {
        let (mut door, mut board) = (TcpDoor::default(), board(10));
        door.on_measurement(&LossSample { dsack: true, ..sample_at(45) });
        board.sack(1_100, 1_500, |_| {});
        assert_eq!(door.on_ack(&mut board, &news(50)).response, CongestionResponse::None);
    }

    #[test]
    fn an_answer_is_taken_back_soon_after_only() {
        for (ms, response) in [(100, CongestionResponse::Undo), (131, CongestionResponse::None)] {
            let (mut door, mut board) = (TcpDoor::default(), board(10));
            board.sack(1_100, 1_500, |_| {});
            door.on_ack(&mut board, &news(50));
            door.on_measurement(&LossSample { reordered_by: 4, ..sample_at(ms) });
            assert_eq!(door.on_ack(&mut board, &sample_at(ms)).response, response);
        }
    }
}
