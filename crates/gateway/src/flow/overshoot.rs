//! Data that came to the client before it had room.
//!
//! The schedule counts on what the application will have read by then (Eq. (7)). If it reads less, or behind a hole,
//! the client discards data beyond its window. Without SACK each discarded packet takes a round trip to repair (RFC
//! 6582), so all of it leaves again. With SACK it leaves again, too. A flow can then have less than one window in each
//! round trip would bring. In that case nothing is sent beyond the window.

use paceline_wire::{Duration, Instant};

/// Our choice: a mistake counts as long as a bound's answer about losses, and each time twice as long.
const HOLDS: Duration = Duration::from_secs(10);
const HOLDS_MAX: Duration = Duration::from_secs(600);
/// Our choice: this many bytes, and this many of the client's windows, leave again before the gateway checks what that
/// brought. One hole on a long path costs as much. Of 400 drawn clients 7 are below .98 of what passing gives, and 8
/// with 4 windows in place of 16. There were 11 when retransmissions had to exceed new data by a megabyte and four
/// windows.
const BYTES_MAX: u64 = 1 << 18;
const WINDOWS_MAX: u64 = 16;
/// Our choice: the gateway checks after this many round trips to the client. A dozen with a hole in each come by
/// chance, above all in slow start. With 8 in place of 32, clients of 11 to 21 KB had at most half of their throughput.
/// These were five of 300 drawn points (seed 7777).
const ROUNDS_MIN: u64 = 32;
/// Our choice: data that is discarded within this time of the first belongs to the same mistake.
const ONE: Duration = Duration::from_secs(2);

/// When the newest mistake was found, and how long it counts.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Overshoot {
    at: Option<Instant>,
    holds: Duration,
    /// When the client discarded the first packet of the newest mistake for want of room.
    #[serde(default)]
    discarded_at: Option<Instant>,
    /// The right edge of the window in the newest ACK that advanced.
    edge: u64,
    /// Bytes that Eq. (12) retransmitted since the last check.
    #[serde(default)]
    retransmissions: u64,
    /// When the first of these left, and the bytes acknowledged since.
    #[serde(default)]
    since: Instant,
    #[serde(default)]
    brought: u64,
}

impl Overshoot {
    /// Notes an ACK that advanced by `bytes`.
    pub(super) fn on_advance(&mut self, right_edge: u64, bytes: u64) {
        self.edge = right_edge;
        self.brought = self.brought.saturating_add(bytes);
    }

    /// Notes that `bytes` beyond the client's window leave again behind a hole (Eq. (12)). The client's largest window
    /// is `window_max`, and its shortest round trip `rtt`. True if this is a new mistake.
    pub(super) fn on_retransmissions(
        &mut self,
        now: Instant,
        bytes: u64,
        window_max: u64,
        rtt: Duration,
    ) -> bool {
        // Nothing leaves beyond the window then, so that the flow cannot bring more than it.
        if self.is_on(now) {
            self.retransmissions = 0;
            return false;
        }
        if self.retransmissions == 0 {
            (self.since, self.brought) = (now, 0);
        }
        self.retransmissions = self.retransmissions.saturating_add(bytes);
        let elapsed = now.saturating_since(self.since);
        if self.retransmissions <= BYTES_MAX.max(WINDOWS_MAX * window_max) || elapsed < rtt * ROUNDS_MIN {
            return false;
        }
        self.retransmissions = 0;
        let elapsed = u128::from(elapsed.as_nanos());
        let by_window = u128::from(window_max) * elapsed / u128::from(rtt.as_nanos().max(1));
        if u128::from(self.brought) >= by_window || self.at.is_some_and(|at| is_same_mistake(now, at)) {
            return false;
        }
        self.at = Some(now);
        self.holds = (self.holds * 2).clamp(HOLDS, HOLDS_MAX);
        true
    }

    /// True if the client has discarded the segment that ends at `end`, as the first of a mistake. It had no room for
    /// it even at the newest ACK that advanced.
    pub(super) fn is_discarded(&mut self, now: Instant, end: u64) -> bool {
        if end <= self.edge || self.discarded_at.is_some_and(|at| is_same_mistake(now, at)) {
            return false;
        }
        self.discarded_at = Some(now);
        true
    }

    /// True while nothing is sent beyond the client's window.
    pub(super) fn is_on(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| now.saturating_since(at) < self.holds)
    }
}

/// True if `now` belongs to the mistake that was first seen at `first`.
fn is_same_mistake(now: Instant, first: Instant) -> bool {
    now.saturating_since(first) < ONE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each round trip of 1 s brings `brought` bytes, and 100,000 leave again. True if a window of 50,000 ends that.
    fn ends(brought: u64) -> bool {
        let (mut overshoot, rtt) = (Overshoot::default(), Duration::from_secs(1));
        (1..100).any(|s| {
            let now = Instant::ZERO + rtt * s;
            overshoot.on_advance(0, brought);
            overshoot.on_retransmissions(now, 100_000, 50_000, rtt) && overshoot.is_on(now + HOLDS / 2)
        })
    }

    #[test]
    fn what_leaves_again_and_brings_no_more_than_the_window_is_a_mistake() {
        assert!(ends(0) && ends(40_000) && !ends(60_000));
    }

    #[test]
    fn a_mistake_counts_for_ten_seconds_and_the_next_one_for_twenty() {
        let (mut overshoot, rtt) = (Overshoot::default(), Duration::from_millis(10));
        let mut mistake = |s: u64| {
            let at = |ms| Instant::ZERO + Duration::from_secs(s) + Duration::from_millis(ms);
            (0..100).for_each(|n| _ = overshoot.on_retransmissions(at(10 * n), 100_000, 50_000, rtt));
            [9, 11, 19, 21].map(|later| overshoot.is_on(at(1_000 * later)))
        };
        assert_eq!(mistake(100), [true, false, false, false]);
        assert_eq!(mistake(200), [true, true, true, false]);
    }

    /// A client of 17 KB at 2 % loss was held to its window for 10 s, and then at once for 20 s more.
    #[test]
    fn what_leaves_again_while_a_mistake_counts_does_not_make_the_next_one() {
        let (mut overshoot, rtt) = (Overshoot::default(), Duration::from_millis(10));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let found = |overshoot: &mut Overshoot, from, to| {
            (from..to).step_by(10).find(|&ms| overshoot.on_retransmissions(at(ms), 20_000, 50_000, rtt))
        };
        let first = found(&mut overshoot, 1_000, 2_000).unwrap();
        let end = first + 10_000;
        assert_eq!(found(&mut overshoot, first + 10, end + 100), None);
        assert!(found(&mut overshoot, end + 100, end + 1_000).is_some(), "a new account finds a new mistake");
    }

    #[test]
    fn what_is_discarded_within_two_seconds_is_one_mistake() {
        let (mut overshoot, at) = (Overshoot::default(), |s: u64| Instant::ZERO + Duration::from_secs(s));
        overshoot.on_advance(1_000, 0);
        assert!(!overshoot.is_discarded(at(5), 1_000), "there was room");
        assert!(overshoot.is_discarded(at(5), 1_001));
        assert!(!overshoot.is_discarded(at(6), 1_001));
        assert!(overshoot.is_discarded(at(8), 1_001));
        assert!(!overshoot.is_on(at(8)));
    }
}
