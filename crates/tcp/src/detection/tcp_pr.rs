//! TCP-PR: S. Bohacek, J. P. Hespanha, J. Lee, C. Lim, K. Obraczka, "A New TCP for Persistent Packet Reordering", IEEE/ACM
//! Transactions on Networking 14(2), 2006.

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

use super::tracked::Tracked;
use super::{CongestionResponse, DetectionName, LossDetection, LossOutcome, LossSample, Sent};
use crate::scoreboard::{Scoreboard, Segment};

/// A packet not acknowledged within mxrtt is lost. Duplicate ACKs do not count. The window is halved once for all
/// packets in flight. State is as in the paper's Table I.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct TcpPr {
    /// to-be-ack: the last departure of each packet, and cwnd then.
    to_be_ack: Tracked<(Instant, u32)>,
    /// Packets of to-be-ack in order of departure. Entries that were retransmitted or acknowledged since are skipped.
    sent: VecDeque<(u32, Instant)>,
    /// memorize: all packets before this number that were in flight when the window was last halved.
    memorize_end: Option<u32>,
    /// Number of drops among these.
    cburst: u32,
    ewrtt: Duration,
    /// mxrtt after an extreme loss, until something is acknowledged.
    backoff: Option<Duration>,
    cwnd: u32,
}

/// beta of Section III-A.
const BETA: u64 = 3;
/// 1 - alpha, in thousandths: alpha is 0.995.
const FORGOTTEN_PER_MILLE: u64 = 5;
/// mxrtt after an extreme loss (Section III-B): as RFC 6298's shortest timeout.
const EXTREME_MXRTT: Duration = Duration::from_secs(1);
/// Our choice, as RFC 6298, Section 2.5.
const MXRTT_MAX: Duration = Duration::from_secs(60);

impl TcpPr {
    /// mxrtt; `None` before the first RTT.
    fn mxrtt(&self) -> Option<Duration> {
        if self.ewrtt.is_zero() {
            return None;
        }
        Some((self.ewrtt * BETA).max(self.backoff.unwrap_or_default()))
    }

    /// ewrtt := max(alpha^(1/cwnd) ewrtt, sample), the root by its first term, as the paper proposes for the kernel.
    fn update_ewrtt(&mut self, rtt: Duration) {
        let forgotten = self.ewrtt.as_nanos() * FORGOTTEN_PER_MILLE / 1_000 / u64::from(self.cwnd.max(1));
        self.ewrtt = self.ewrtt.saturating_sub(Duration::from_nanos(forgotten)).max(rtt);
    }

    /// Finds drops, in the order of departure.
    fn detect(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        let mut outcome = LossOutcome::default();
        while let (Some(&(number, sent_at)), Some(mxrtt)) = (self.sent.front(), self.mxrtt()) {
            let known = self.to_be_ack.get(number).copied().filter(|(at, _)| *at == sent_at);
            if let Some((_, cwnd)) = known {
                if sample.now.saturating_since(sent_at) <= mxrtt {
                    break;
                }
                outcome.marked |= board.mark_lost(number);
                self.on_drop(number, cwnd, sample.cwnd, &mut outcome);
            }
            self.sent.pop_front();
        }
        outcome
    }

    fn on_drop(&mut self, number: u32, cwnd_then: u32, cwnd: u32, outcome: &mut LossOutcome) {
        if self.memorize_end.is_none_or(|end| (number.wrapping_sub(end) as i32) >= 0) {
            // The first drop of a burst: halve the window that applied when the packet left.
            self.memorize_end = Some(self.to_be_ack.end());
            self.cburst = 0;
            outcome.response = CongestionResponse::ReduceFrom(cwnd_then);
            return;
        }
        self.cburst += 1;
        if self.cburst > cwnd / 2 + 1 {
            // Extreme losses: restart as after a timeout, with backoff.
            self.cburst = 0;
            let mxrtt = self.mxrtt().unwrap_or_default();
            let doubled = self.backoff.map_or(EXTREME_MXRTT, |backoff| backoff * 2);
            self.backoff = Some(doubled.max(mxrtt).min(MXRTT_MAX));
            outcome.response = CongestionResponse::Restart;
        }
    }
}

impl LossDetection for TcpPr {
    fn name(&self) -> DetectionName {
        DetectionName::TcpPr
    }

    fn owns_response(&self) -> bool {
        true
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.cwnd = sent.cwnd;
        let known = (sent.now, sent.cwnd);
        match self.to_be_ack.get_mut(sent.number) {
            Some(packet) => *packet = known,
            None if !sent.retransmission => self.to_be_ack.push(sent.number, sent.end, known),
            None => return,
        }
        self.sent.push_back((sent.number, sent.now));
    }

    fn on_delivered(&mut self, now: Instant, segment: &Segment) {
        // The RTT counts from the last transmission. If the ACK is for the original, it is too short, and does not
        // change the maximum.
        let Some((_, (sent_at, _))) = self.to_be_ack.remove(segment.end) else { return };
        self.update_ewrtt(now.saturating_since(sent_at));
        self.backoff = None;
        if self.memorize_end.is_some_and(|end| (self.to_be_ack.first().wrapping_sub(end) as i32) >= 0) {
            self.memorize_end = None;
            self.cburst = 0;
        }
        while self.sent.front().is_some_and(|&(n, at)| self.to_be_ack.get(n).is_none_or(|(t, _)| *t != at)) {
            self.sent.pop_front();
        }
    }

    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        self.detect(board, sample)
    }

    fn on_timeout(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        self.detect(board, sample)
    }

    fn next_timeout(&self) -> Option<Instant> {
        let (_, sent_at) = self.sent.front()?;
        Some(*sent_at + self.mxrtt()? + Duration::from_nanos(1))
    }

    /// TCP-PR has no timeout but mxrtt. The sender's timeout is longer, and repairs what would never be retransmitted
    /// otherwise.
    fn least_rto(&self) -> Duration {
        self.mxrtt().unwrap_or_default() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::super::rack::tests::{sample_at, stamp};
    use super::*;

    struct Flight {
        pr: TcpPr,
        board: Scoreboard,
    }

    impl Flight {
        /// A flight after RTTs of 40 ms.
        fn new(packets: u64, cwnd: u32) -> Flight {
            let pr = TcpPr { ewrtt: Duration::from_millis(40), ..TcpPr::default() };
            let mut flight = Flight { pr, board: Scoreboard::new(1_000, 100) };
            (0..packets).for_each(|n| flight.send(n, cwnd));
            flight
        }

        fn send(&mut self, ms: u64, cwnd: u32) {
            let (number, end) = (self.board.numbers().1, self.board.nxt() + 100);
            self.board.push(end, false, stamp(ms));
            self.pr.on_sent(&Sent { now: stamp(ms).now, number, end, retransmission: false, cwnd });
        }

        fn expire(&mut self, ms: u64) -> LossOutcome {
            self.pr.on_timeout(&mut self.board, &LossSample { cwnd: 10, ..sample_at(ms) })
        }
    }

    #[test]
    fn a_drop_halves_the_window_of_its_sending_once() {
        let mut flight = Flight::new(4, 16);
        assert!(!flight.expire(120).marked);
        assert_eq!(flight.expire(121).response, CongestionResponse::ReduceFrom(16));
        let outcome = flight.expire(123);
        assert_eq!(
            (outcome.marked, outcome.response, flight.board.lost_out()),
            (true, CongestionResponse::None, 3)
        );
        // Packets sent later are not memorized.
        flight.send(130, 8);
        assert_eq!(flight.expire(251).response, CongestionResponse::ReduceFrom(8));
    }

    #[test]
    fn more_than_half_a_window_is_an_extreme_loss() {
        let mut flight = Flight::new(10, 10);
        assert_eq!(flight.expire(121).response, CongestionResponse::ReduceFrom(10));
        assert_eq!(flight.expire(140).response, CongestionResponse::Restart);
        assert_eq!(flight.pr.mxrtt(), Some(EXTREME_MXRTT));
        let segment = flight.board.get(3).unwrap().clone();
        flight.pr.on_delivered(stamp(150).now, &segment);
        assert!(flight.pr.mxrtt().unwrap() > Duration::from_millis(300));
        assert_eq!(flight.pr.backoff, None);
    }

    #[test]
    fn the_longest_rtt_fades_by_half_a_percent_a_round_trip() {
        let mut flight = Flight::new(0, 10);
        flight.pr.ewrtt = Duration::from_millis(100);
        for n in 0..10 {
            flight.send(n, 10);
            let segment = flight.board.iter().last().unwrap().clone();
            flight.pr.on_delivered(stamp(n + 40).now, &segment);
        }
        let faded = flight.pr.ewrtt.as_micros();
        assert!((99_495..=99_505).contains(&faded), "{faded}");
    }
}
