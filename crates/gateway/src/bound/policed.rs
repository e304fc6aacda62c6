//! Detects a policer: a token bucket that drops packets above its rate, however few bytes are in flight.
//!
//! Its losses go on when less is outstanding, so the loss test takes them for the radio's. No queue shows its rate. The
//! first BBR has a rule for this, its long-term bandwidth (Flach et al., An Internet-Wide Analysis of Traffic Policing,
//! SIGCOMM 2016). If a fifth is lost in two successive intervals, and as much arrives in both, that is a policer's
//! rate. After a while it is tested again. Intervals and shares are those of the first BBR. Our choices: the lesser of
//! the two rates holds, and intervals go on while it does. Only losses without a queue count (`bound.rs`): with those
//! of full buffers mixed traffic had .6 % less. docs/design/queue-bound.md has drawn points with a policer.

use paceline_wire::{Duration, Instant, Rate};

/// Least length of an interval, in round trips.
const ROUNDS: u64 = 4;
/// An interval ends with a loss. Without one it is given up after this many round trips.
const ROUNDS_MAX: u64 = 16;
/// Round trips for which a rate holds.
const HOLDS_ROUNDS: u64 = 48;

/// Detector of a policer.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct PolicerDetector {
    /// When the interval under way began.
    since: Option<Instant>,
    /// Bytes that arrived in it, and that were found lost.
    delivered: u64,
    lost: u64,
    /// The rate of the interval before; zero where less than a fifth was lost.
    before: Rate,
    /// The policer's rate, and until when it holds.
    rate: Option<(Rate, Instant)>,
}

impl PolicerDetector {
    /// Records bytes that arrived and bytes that were found lost.
    pub(super) fn on_report(&mut self, now: Instant, delivered: u64, lost: u64, rtt: Duration) {
        self.rate = self.rate.filter(|(_, until)| now < *until);
        let Some(since) = self.since else {
            // An interval begins with a loss: the bucket is empty then.
            if lost > 0 {
                self.begin(Some(now), Rate::ZERO);
            }
            return;
        };
        self.delivered += delivered;
        self.lost += lost;
        let elapsed = now.saturating_since(since);
        if elapsed > rtt * ROUNDS_MAX {
            self.begin(None, Rate::ZERO);
        } else if lost > 0 && elapsed >= rtt * ROUNDS {
            let rate = Rate::from_bytes_in(self.delivered, elapsed);
            let a_fifth = self.lost * 5 >= self.delivered + self.lost;
            let alike = rate <= self.before.mul_ratio(9, 8) && self.before <= rate.mul_ratio(9, 8);
            if a_fifth && alike {
                self.rate = Some((rate.min(self.before), now + rtt * HOLDS_ROUNDS));
            }
            self.begin(Some(now), if a_fifth { rate } else { Rate::ZERO });
        }
    }

    fn begin(&mut self, since: Option<Instant>, before: Rate) {
        (self.since, self.delivered, self.lost, self.before) = (since, 0, 0, before);
    }

    /// Returns the policer's rate while it is known.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate.map(|(rate, _)| rate)
    }

    /// Returns the link's `rate`, at most the policer's.
    pub(super) fn cap(&self, rate: Rate) -> Rate {
        self.rate().map_or(rate, |most| rate.min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);
    const MBIT: u64 = 125_000;

    /// Returns the policer's rate found after `rounds` round trips. In each, bytes arrive at `mbit` Mbit/s, and `lost`
    /// percent of the sent bytes are lost.
    fn after(
        policed: &mut PolicerDetector,
        from: u64,
        rounds: core::ops::Range<u64>,
        mbit: u64,
        lost: u64,
    ) -> Option<Rate> {
        for round in rounds {
            let delivered = mbit * MBIT / 20;
            policed.on_report(
                Instant::ZERO + RTT * (from + round),
                delivered,
                delivered * lost / (100 - lost),
                RTT,
            );
        }
        policed.rate()
    }

    #[test]
    fn a_fifth_lost_at_the_same_rate_twice_is_a_policer() {
        let mut policed = PolicerDetector::default();
        assert_eq!(after(&mut policed, 0, 0..8, 2, 25), None, "one interval is not enough");
        let rate = after(&mut policed, 0, 8..9, 2, 25).expect("two are");
        assert_eq!(rate, Rate::from_mbps(2.0));
        assert_eq!(policed.cap(Rate::from_mbps(10.0)), rate);
        assert_eq!(policed.cap(Rate::from_mbps(1.0)), Rate::from_mbps(1.0));
    }

    #[test]
    fn it_is_asked_again() {
        let mut policed = PolicerDetector::default();
        assert!(after(&mut policed, 0, 0..9, 2, 25).is_some());
        assert!(after(&mut policed, 9, 0..47, 2, 0).is_some());
        assert_eq!(after(&mut policed, 56, 0..1, 2, 0), None);
    }

    #[test]
    fn fewer_losses_and_rates_that_differ_are_no_policer() {
        let mut radio = PolicerDetector::default();
        assert_eq!(after(&mut radio, 0, 0..100, 2, 15), None, "15 % lost");
        let mut link = PolicerDetector::default();
        let rates = (0..40)
            .map(|interval| after(&mut link, 4 * interval, 0..4, if interval % 2 == 0 { 2 } else { 4 }, 25));
        assert!(rates.into_iter().all(|rate| rate.is_none()), "a link that varies");
    }
}
