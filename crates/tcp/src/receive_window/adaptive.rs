//! A lambda that follows the variation of the link (left open by DRWA, Section 4.3).
//!
//! A queue is there so that the link never runs dry in its faster moments; what never empties is delay for nothing. A receiver sees
//! which of both it has: in a round in which the queue ran dry, the shortest RTT comes near RTTmin. So lambda grows with every such
//! round, and shrinks with every other. A steady link ends just above 1, and the more a link varies, the higher lambda is.

use paceline_wire::Duration;

/// Lambda in hundredths, and the shortest RTT of the round.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct AdaptiveLambda {
    percent: u32,
    shortest: Duration,
}

/// Our choice, as the next two, among some twenty settings on the generated links after an earlier pick had been worse than a fixed
/// lambda on recorded ones (`reproduce drwa --part adaptive`): with more, lambda overshoots, as a round shows what the lambda of two rounds before has done.
const UP_PERCENT: u32 = 3;
/// Our choice: what exceeds 1 shrinks by a quarter.
const DOWN: u32 = 4;
/// Our choice: RTTs within a sixteenth of RTTmin are those of an empty queue.
const NEAR: u64 = 16;
/// Our choice: no queue at all is told from a dry one by nothing.
const MIN_PERCENT: u32 = 110;
/// The largest that the text has (Fig. 10).
const MAX_PERCENT: u32 = 500;

impl AdaptiveLambda {
    pub(super) fn new(percent: u32) -> Self {
        AdaptiveLambda { percent: percent.clamp(MIN_PERCENT, MAX_PERCENT), shortest: Duration::MAX }
    }

    pub(super) fn percent(&self) -> u32 {
        self.percent
    }

    /// A sample of the RTT.
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
