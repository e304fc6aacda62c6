//! RACK-TLP (RFC 8985) with the choices of Linux.

use paceline_wire::Duration;

use super::{DUP_THRESH, DetectionName, LossDetection, LossOutcome, LossSample, Newest};
use crate::congestion::CaState;
use crate::scoreboard::{Mark, Scoreboard, Segment};

/// A segment is lost when one sent later has arrived, and a reordering window has passed. State as in Linux's struct rack.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Rack {
    newest: Option<Newest>,
    advanced: bool,
    reo_wnd_steps: u64,
    reo_wnd_persist: u32,
    dsack_seen: bool,
    /// Number of packets delivered when the window was last widened.
    last_delivered: u64,
}

/// RFC 8985, Section 6.2, step 4: recoveries for which a widened window is kept.
const RECOVERY_THRESH: u32 = 16;

impl Default for Rack {
    fn default() -> Self {
        Rack {
            newest: None,
            advanced: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            dsack_seen: false,
            last_delivered: 0,
        }
    }
}

impl Rack {
    /// RACK_update_reo_wnd (RFC 8985, Section 6.2, step 4; Linux tcp_rack_reo_wnd).
    fn reo_wnd(&self, board: &Scoreboard, sample: &LossSample) -> Duration {
        if !sample.reordering_seen
            && (sample.state >= CaState::Recovery || board.sacked_out() >= sample.reordering.max(DUP_THRESH))
        {
            return Duration::ZERO;
        }
        (sample.min_rtt / 4 * self.reo_wnd_steps).min(sample.srtt)
    }

    /// RACK_detect_loss (step 5; Linux tcp_rack_detect_loss).
    fn detect(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        let mut outcome = LossOutcome::default();
        let Some(newest) = self.newest else { return outcome };
        let reo_wnd = self.reo_wnd(board, sample);
        let mut next = board.oldest();
        while let Some(number) = next {
            let Some(segment) = board.get(number) else { break };
            if (segment.sent_at, segment.end) >= (newest.sent_at, newest.end) {
                break;
            }
            next = board.sent_after(number);
            let deadline = segment.sent_at + newest.rtt + reo_wnd;
            if deadline <= sample.now {
                outcome.lost_retransmission |= segment.mark.contains(Mark::RETRANSMITTED);
                outcome.marked |= board.mark_lost(number);
            } else {
                outcome.timer = outcome.timer.max(Some(deadline));
            }
        }
        // Rounded up, so that the segment is lost when the timer fires (tcp_rack_mark_lost).
        outcome.timer = outcome.timer.map(|at| at + sample.timeout_min);
        outcome
    }
}

impl LossDetection for Rack {
    fn name(&self) -> DetectionName {
        DetectionName::RackTlp
    }

    /// Steps 2 and 4.
    fn on_measurement(&mut self, sample: &LossSample) {
        if let Some(newest) = sample.newest {
            self.advanced = true;
            let later = self.newest.is_none_or(|old| (newest.sent_at, newest.end) > (old.sent_at, old.end));
            let old = self.newest.filter(|_| !later).unwrap_or(newest);
            self.newest = Some(Newest { rtt: newest.rtt, ..old });
        }
        self.dsack_seen |= sample.dsack;
        let Some(prior_delivered) = sample.prior_delivered else { return };
        if prior_delivered < self.last_delivered {
            // One widening per round trip.
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.reo_wnd_steps = (self.reo_wnd_steps + 1).min(0xff);
            self.dsack_seen = false;
            self.last_delivered = sample.delivered;
            self.reo_wnd_persist = RECOVERY_THRESH;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_steps = 1;
        }
    }

    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        if !core::mem::take(&mut self.advanced) {
            return LossOutcome::default();
        }
        self.detect(board, sample)
    }

    fn on_timeout(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        self.detect(board, sample)
    }

    /// At a timeout, segments sent recently may still arrive.
    fn expires(&self, segment: &Segment, sample: &LossSample) -> bool {
        let rtt = self.newest.map_or(Duration::ZERO, |newest| newest.rtt);
        segment.sent_at + rtt <= sample.now
    }

    fn on_recovery_end(&mut self, undone: bool) {
        if undone {
            self.advanced = true;
        }
        self.reo_wnd_persist = match undone {
            true => (self.reo_wnd_persist + 1).min(RECOVERY_THRESH),
            false => self.reo_wnd_persist.saturating_sub(1),
        };
    }

    fn probes_tail(&self) -> bool {
        true
    }
}

/// Tests, and helpers for tests of other detections.
#[cfg(test)]
pub(super) mod tests {
    use paceline_wire::Instant;

    use super::*;
    use crate::scoreboard::SendStamp;

    pub(in super::super) fn stamp(ms: u64) -> SendStamp {
        let now = Instant::ZERO + Duration::from_millis(ms);
        SendStamp { now, delivered: 0, delivered_at: now, first_sent_at: now, app_limited: false }
    }

    /// Segments of 100 bytes from 1,000 on, sent a millisecond apart.
    pub(in super::super) fn board(segments: u64) -> Scoreboard {
        board_from(0, segments)
    }

    /// The same, with this number for the first segment.
    pub(in super::super) fn board_from(first: u32, segments: u64) -> Scoreboard {
        let mut board = Scoreboard::new(1_000, 100).numbered_from(first);
        for n in 0..segments {
            board.push(1_000 + (n + 1) * 100, false, stamp(n));
        }
        board
    }

    pub(in super::super) fn sample_at(ms: u64) -> LossSample {
        LossSample {
            now: Instant::ZERO + Duration::from_millis(ms),
            srtt: Duration::from_millis(40),
            min_rtt: Duration::from_millis(40),
            timeout_min: Duration::from_millis(8),
            reordering: 3,
            ..LossSample::default()
        }
    }

    fn delivered(ms: u64, segment: u64) -> LossSample {
        let sent_at = Instant::ZERO + Duration::from_millis(segment);
        let now = Instant::ZERO + Duration::from_millis(ms);
        let newest = Newest { sent_at, end: 1_100 + segment * 100, rtt: now.saturating_since(sent_at) };
        LossSample { newest: Some(newest), ..sample_at(ms) }
    }

    #[test]
    fn a_segment_overtaken_is_lost_after_a_quarter_of_the_shortest_rtt() {
        let (mut rack, mut board) = (Rack::default(), board(5));
        board.sack(1_100, 1_200, |_| {});
        let sample = delivered(41, 1);
        rack.on_measurement(&sample);
        let outcome = rack.on_ack(&mut board, &sample);
        // Sent at 0, RTT 40, window 10; the timer comes two ticks of 4 ms later.
        assert!(!outcome.marked);
        assert_eq!(outcome.timer, Some(Instant::ZERO + Duration::from_millis(58)));
        assert!(rack.on_timeout(&mut board, &sample_at(58)).marked);
        assert_eq!(board.lost_out(), 1);
    }

    #[test]
    fn three_segments_above_need_no_wait() {
        let (mut rack, mut board) = (Rack::default(), board(5));
        board.sack(1_100, 1_400, |_| {});
        let sample = delivered(43, 3);
        rack.on_measurement(&sample);
        assert!(rack.on_ack(&mut board, &sample).marked);
    }

    #[test]
    fn a_lost_retransmission_is_found() {
        let (mut rack, mut board) = (Rack::default(), board(5));
        board.sack(1_100, 1_400, |_| {});
        let sample = delivered(43, 3);
        rack.on_measurement(&sample);
        rack.on_ack(&mut board, &sample);
        board.on_retransmitted(0, stamp(43));
        board.push(1_600, false, stamp(45));
        board.sack(1_500, 1_600, |_| {});
        let newest = Newest { sent_at: stamp(45).now, end: 1_600, rtt: Duration::from_millis(40) };
        let sample = LossSample { newest: Some(newest), state: CaState::Recovery, ..sample_at(85) };
        rack.on_measurement(&sample);
        assert!(rack.on_ack(&mut board, &sample).lost_retransmission);
    }

    #[test]
    fn a_dsack_widens_the_window_once_per_round_trip() {
        let mut rack = Rack::default();
        let sample = LossSample { dsack: true, prior_delivered: Some(10), delivered: 20, ..sample_at(50) };
        rack.on_measurement(&sample);
        rack.on_measurement(&LossSample { prior_delivered: Some(15), delivered: 25, ..sample });
        assert_eq!(rack.reo_wnd_steps, 2);
        rack.on_measurement(&LossSample { prior_delivered: Some(21), delivered: 35, ..sample });
        assert_eq!(rack.reo_wnd_steps, 3);
    }
}
