//! Loss detections that own the response to congestion: their input, their timer, and the response.

use paceline_wire::Instant;

use super::Sender;
use super::messages::Flags;
use crate::congestion::CaState;
use crate::detection::{CongestionResponse, Sent};
use crate::scoreboard::Mark;

impl Sender {
    /// Tells the detection of a segment that leaves.
    pub(super) fn tell_sent(&mut self, now: Instant, number: u32, end: u64, retransmission: bool) {
        if self.owns_response {
            self.detection.on_sent(&Sent {
                now,
                number,
                end,
                retransmission,
                cwnd: self.control.window.cwnd,
            });
        }
    }

    /// Runs the detection's own timer if it has expired.
    pub(super) fn on_detection_timeout(&mut self, now: Instant) {
        if self.detection.next_timeout().is_none_or(|at| at > now) {
            return;
        }
        let sample = self.loss_sample(now, Flags::default());
        let outcome = self.detection.on_timeout(&mut self.board, &sample);
        self.usage.open_round();
        self.respond(now, outcome.response);
        if self.episode.state <= CaState::Disorder {
            self.try_keep_open(now);
        }
    }

    /// Makes the sender's response to congestion.
    pub(super) fn respond(&mut self, now: Instant, response: CongestionResponse) {
        match response {
            CongestionResponse::None => {}
            CongestionResponse::Reduce => self.reduce_at_once(now, self.control.window.cwnd),
            CongestionResponse::ReduceFrom(cwnd) => self.reduce_at_once(now, cwnd),
            CongestionResponse::Restart => {
                self.reduce_at_once(now, self.control.window.cwnd);
                if !self.control.is_owned() {
                    self.control.window.cwnd = 1;
                }
            }
            CongestionResponse::FastRecovery if self.episode.state < CaState::Recovery => {
                self.enter_recovery(now)
            }
            CongestionResponse::FastRecovery => {}
            CongestionResponse::Undo if self.episode.undo.marker.is_some() => {
                self.undo_reduction(false);
                if self.episode.state >= CaState::Recovery {
                    self.try_keep_open(now);
                }
            }
            CongestionResponse::Undo => {}
        }
    }

    /// True if the first segment was retransmitted before the timeout, which excludes F-RTO (RFC 5682, Section 2.1,
    /// step 1). These detections have no recovery state, so only the segment's mark tells.
    pub(super) fn head_was_resent(&self) -> bool {
        self.owns_response
            && self.board.head().is_some_and(|head| head.mark.contains(Mark::EVER_RETRANSMITTED))
    }
}
