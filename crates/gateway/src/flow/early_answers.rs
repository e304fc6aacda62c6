//! Answers to retransmissions that come sooner than the shortest round trip.
//!
//! As a rule such an answer is for the first copy (RFC 8985, Section 6.2, Step 2). But a hand-over can make the path
//! shorter, and while only retransmissions are in flight, no RTT sample shows that. Taken for answers to first copies
//! they would leave nothing lost and nothing to send.

use paceline_wire::{Duration, Instant};

/// Our choice: no hand-over shortens a path to less than a quarter.
const SHORTER: u64 = 4;
/// Our choice: this many equal round trips, each of a retransmission that left after the answer before. A late first
/// copy comes only once.
const ALIKE: u8 = 4;

/// What early answers have shown.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct EarlyAnswers {
    rtt: Duration,
    times: u8,
    at: Instant,
}

impl EarlyAnswers {
    /// True if what arrives now answers the retransmission that left at `sent_at`. `shortest` is the path's shortest
    /// round trip.
    pub(super) fn is_answer(&mut self, now: Instant, sent_at: Instant, shortest: Duration) -> bool {
        let rtt = now.saturating_since(sent_at);
        if rtt >= shortest || rtt < shortest / SHORTER {
            return rtt >= shortest;
        }
        if self.times == 0 || rtt.abs_diff(self.rtt) > rtt / 16 {
            *self = EarlyAnswers { rtt, times: 1, at: now };
        } else if sent_at >= self.at {
            (self.times, self.at) = (self.times.saturating_add(1), now);
        }
        self.times >= ALIKE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_time::at;

    const SHORTEST: Duration = Duration::from_millis(40);

    #[test]
    fn four_that_follow_each_other_and_are_alike_tell_of_a_shorter_path() {
        let mut early = EarlyAnswers::default();
        let answers: [bool; 5] = core::array::from_fn(|n| {
            let sent = 1_000 + 30 * n as u64;
            early.is_answer(at(sent + 30), at(sent), SHORTEST)
        });
        assert_eq!(answers, [false, false, false, true, true]);
        assert!(early.is_answer(at(2_045), at(2_000), SHORTEST));
    }

    #[test]
    fn those_that_vary_left_together_or_come_at_once_do_not() {
        let never = |sent: fn(u64) -> u64, rtt: fn(u64) -> u64| {
            let mut early = EarlyAnswers::default();
            (0..100).all(|n| !early.is_answer(at(sent(n) + rtt(n)), at(sent(n)), SHORTEST))
        };
        assert!(never(|n| 1_000 + 100 * n, |n| 12 + 20 * (n % 2)), "vary");
        assert!(never(|_| 1_000, |_| 30), "left together");
        assert!(never(|n| 1_000 + 100 * n, |_| 9), "at once");
    }
}
