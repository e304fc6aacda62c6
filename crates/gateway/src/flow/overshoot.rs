//! Data that left before the client had room for it, and came too soon.
//!
//! The schedule counts on what the application will have read by then (Eq. (7)). An application that reads less leaves no room, and the client
//! discards what lies beyond its window; without SACK each such packet takes a round trip to repair (RFC 6582). Then the window alone counts. So it
//! does with SACK, too, where more leaves again than is new: 41 Mbit/s were sent to a reader of 20, each round trip brought one window and
//! discarded three, and the flow had .77 of what it has without a gateway.

use paceline_wire::{Duration, Instant};

/// Our choice: as long as a bound's answer about losses holds, and each time twice as long.
const HOLDS: Duration = Duration::from_secs(10);
const HOLDS_MAX: Duration = Duration::from_secs(600);
/// Our choice: a megabyte more was retransmitted than was new, and four of the client's windows. A hole now and then costs less than what is sent
/// beyond the window gains: with a megabyte alone a path that holds three of them had .89 of what passing gives, in place of 1.6.
const RETRANSMISSIONS_MAX: u64 = 1 << 20;
const WINDOWS_MAX: u64 = 4;
/// Our choice: what is discarded within this time of the first belongs to the same mistake.
const ONE: Duration = Duration::from_secs(2);

/// Since when, and for how long.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Overshoot {
    at: Option<Instant>,
    holds: Duration,
    /// The right edge of the window in the newest ACK that advanced.
    edge: u64,
    /// Bytes that Eq. (12) retransmitted beyond as many that were new.
    #[serde(default)]
    retransmissions: u64,
}

impl Overshoot {
    /// An ACK advanced, by so many bytes.
    pub(super) fn on_advance(&mut self, right_edge: u64, bytes: u64) {
        self.edge = right_edge;
        self.retransmissions = self.retransmissions.saturating_sub(bytes);
    }

    /// Behind a hole so many bytes lay beyond the client's window, the largest of which is `window_max`, and leave again (Eq. (12)).
    pub(super) fn on_retransmissions(&mut self, now: Instant, bytes: u64, window_max: u64) -> bool {
        self.retransmissions = self.retransmissions.saturating_add(bytes);
        if self.retransmissions <= RETRANSMISSIONS_MAX.max(WINDOWS_MAX * window_max) {
            return false;
        }
        self.retransmissions = 0;
        self.on_discard(now)
    }

    /// The client had no room for the segment that ends here when it had all before it: if it is missing, the client has discarded it.
    pub(super) fn had_no_room(&self, end: u64) -> bool {
        end > self.edge
    }

    /// A packet beyond the right edge of the client's window has arrived, and was not kept.
    /// Returns whether it is the first of its mistake.
    pub(super) fn on_discard(&mut self, now: Instant) -> bool {
        if self.at.is_some_and(|at| now.saturating_since(at) < ONE) {
            return false;
        }
        self.at = Some(now);
        self.holds = (self.holds * 2).clamp(HOLDS, HOLDS_MAX);
        true
    }

    /// Nothing is sent beyond the client's window.
    pub(super) fn is_on(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| now.saturating_since(at) < self.holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_retransmissions_than_news_are_a_mistake() {
        let (mut overshoot, at) = (Overshoot::default(), |s: u64| Instant::ZERO + Duration::from_secs(s));
        for _ in 0..1_000 {
            assert!(!overshoot.on_retransmissions(at(5), 100_000, 50_000));
            overshoot.on_advance(0, 100_000);
        }
        assert!(
            (0..20).any(|_| overshoot.on_retransmissions(at(5), 100_000, 50_000)) && overshoot.is_on(at(14))
        );
    }

    #[test]
    fn a_mistake_counts_for_ten_seconds_and_the_next_one_for_twenty() {
        let (mut overshoot, at) = (Overshoot::default(), |s: u64| Instant::ZERO + Duration::from_secs(s));
        assert!(!overshoot.is_on(at(5)));
        assert!(overshoot.on_discard(at(5)));
        assert!(!overshoot.on_discard(at(6)));
        assert!(overshoot.is_on(at(14)) && !overshoot.is_on(at(15)));
        overshoot.on_discard(at(20));
        assert!(overshoot.is_on(at(39)) && !overshoot.is_on(at(40)));
    }
}
