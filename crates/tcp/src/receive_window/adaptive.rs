//! A lambda that follows the variation of the link (left open by DRWA, Section 4.3).
//!
//! A queue keeps the link busy in its faster moments. The part of a queue that never empties is useless delay. A
//! receiver can tell the two apart: if the queue ran dry in a round, the shortest RTT of the round is near RTTmin. So
//! lambda grows after such a round, and shrinks after any other. On a steady link lambda ends just above 1. The more a
//! link varies, the higher lambda is.

use paceline_wire::Duration;

/// Lambda in hundredths, and the shortest RTT of the round.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct AdaptiveLambda {
    percent: u32,
    shortest: Duration,
}

/// Our choice, like the next two, among some twenty settings on the generated links. An earlier pick was worse than a
/// fixed lambda on recorded links (`reproduce drwa --part adaptive`). With a larger step lambda overshoots, because a
/// round shows the effect of the lambda of two rounds before.
const UP_PERCENT: u32 = 3;
/// Our choice: the part of lambda above 1 shrinks by a quarter.
const DOWN: u32 = 4;
/// Our choice: RTTs within a sixteenth of RTTmin show an empty queue.
const NEAR: u64 = 16;
/// Our choice: lambda stays above 1, because RTTs cannot tell a path without any queue from one whose queue ran dry.
const MIN_PERCENT: u32 = 110;
/// The largest lambda of the text (Fig. 10).
const MAX_PERCENT: u32 = 500;

impl AdaptiveLambda {
    pub(super) fn new(percent: u32) -> Self {
        AdaptiveLambda { percent: percent.clamp(MIN_PERCENT, MAX_PERCENT), shortest: Duration::MAX }
    }

    pub(super) fn percent(&self) -> u32 {
        self.percent
    }

    /// Takes an RTT sample.
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        self.shortest = self.shortest.min(rtt);
    }

    /// A round is over.
    pub(super) fn on_round(&mut self, rtt_min: Duration) {
        let shortest = core::mem::replace(&mut self.shortest, Duration::MAX);
        let ran_dry = shortest <= rtt_min + rtt_min / NEAR;
        let percent = match ran_dry {
            true => self.percent + UP_PERCENT,
            false => self.percent - (self.percent - 100) / DOWN,
        };
        self.percent = percent.clamp(MIN_PERCENT, MAX_PERCENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(shortest_ms: u64, count: u32) -> u32 {
        let mut lambda = AdaptiveLambda::new(300);
        for _ in 0..count {
            lambda.on_sample(Duration::from_millis(shortest_ms + 50));
            lambda.on_sample(Duration::from_millis(shortest_ms));
            lambda.on_round(Duration::from_millis(100));
        }
        lambda.percent()
    }

    #[test]
    fn a_queue_that_runs_dry_is_made_longer_and_one_that_stands_shorter() {
        assert_eq!((rounds(106, 5), rounds(106, 100)), (315, 500));
        assert!(rounds(130, 10) < 200 && rounds(130, 100) >= MIN_PERCENT);
    }
}
