//! Whether the server keeps the gateway supplied, judged once per round trip.

use paceline_wire::{Duration, Instant};

/// The verdict on one round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Verdict {
    /// Packets waited whenever the client reported: the server is ahead.
    Ahead,
    /// Packets waited now and then: the server just keeps up.
    #[default]
    Even,
    /// Nothing ever waited: the server is the limit.
    Behind,
}

/// Watches one flow.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Supply {
    round_start: Instant,
    waited: bool,
    ran_dry: bool,
    verdict: Verdict,
    rounds_ahead: u32,
}

impl Supply {
    /// An ACK arrived while `waiting` bytes waited; a round is `round` long. Returns the verdict when a round ends.
    pub(crate) fn on_ack(&mut self, now: Instant, waiting: u64, round: Duration) -> Option<Verdict> {
        if waiting > 0 {
            self.waited = true
        } else {
            self.ran_dry = true
        }
        if now.saturating_since(self.round_start) < round {
            return None;
        }
        self.verdict = match (self.waited, self.ran_dry) {
            (true, false) => Verdict::Ahead,
            (false, _) => Verdict::Behind,
            (true, true) => Verdict::Even,
        };
        self.rounds_ahead =
            if self.verdict == Verdict::Ahead { self.rounds_ahead.saturating_add(1) } else { 0 };
        (self.round_start, self.waited, self.ran_dry) = (now, false, false);
        Some(self.verdict)
    }

    /// True if the server fills whatever window it is given. BBR empties the queue once in its gain cycle of eight
    /// round trips (draft-ietf-ccwg-bbr). A server that was ahead for longer fills its window.
    pub(crate) fn is_window_filling(&self) -> bool {
        self.rounds_ahead > 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_judged_by_what_waited_in_it() {
        let (round, mut supply) = (Duration::from_millis(100), Supply::default());
        let mut judge = |from_ms: u64, waiting: [u64; 3]| {
            let at = |ms| Instant::ZERO + Duration::from_millis(from_ms + ms);
            assert_eq!(supply.on_ack(at(10), waiting[0], round), None);
            assert_eq!(supply.on_ack(at(20), waiting[1], round), None);
            supply.on_ack(at(100), waiting[2], round)
        };
        assert_eq!(judge(0, [1, 1, 1]), Some(Verdict::Ahead));
        assert_eq!(judge(100, [1, 0, 1]), Some(Verdict::Even));
        assert_eq!(judge(200, [0, 0, 0]), Some(Verdict::Behind));
    }
}
