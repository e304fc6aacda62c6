//! Lowers the bound when a shared queue overflows.
//!
//! The bound follows the rate at once. CUBIC beside it (RFC 9438) gives up three tenths at each overflow and takes
//! seconds to return. In the end we would have the whole link. After an overflow the limit therefore follows CUBIC's
//! curve until it meets the bound again. Our choice of an overflow: round trips are nearer to the longest than to the
//! shortest, and at least half longer than without a queue. Other losses are the radio's.

use paceline_wire::{Duration, Instant};

use super::cubic;

/// Time after which the longest round trip and a loss are forgotten.
const LONGEST_WINDOW: Duration = Duration::from_secs(30);

/// The curve after an overflow.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Curve {
    /// W_max, in bytes.
    w_max: u64,
    /// K.
    k: Duration,
    /// Time of the overflow.
    since: Instant,
    /// Window after the reduction, and the round-trip time then.
    #[serde(default)]
    reduced: u64,
    #[serde(default)]
    rtt: Duration,
    /// Bytes that the path holds without a queue, if a short buffer overflowed; otherwise zero.
    #[serde(default)]
    least: u64,
    /// Growth since then in round trips without a queue, and the time of the last growth.
    #[serde(default)]
    grown: u64,
    #[serde(default)]
    grown_at: Instant,
}

impl Curve {
    fn window(&self, now: Instant) -> u64 {
        let t = now.saturating_since(self.since);
        let window = cubic::window(self.w_max, self.k, t) + self.grown;
        // Our choice: not before a buffer too short to show a queue. Each overflow would come sooner there, without
        // gain.
        if self.least == 0 { window.max(cubic::w_est(self.reduced, t, self.rtt)) } else { window }
    }
}

/// The reduction of the bound after overflows.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Backoff {
    curve: Option<Curve>,
    longest: Duration,
    longest_at: Instant,
    /// The previous round trip.
    #[serde(default)]
    before: Duration,
    /// Time of the newest loss.
    #[serde(default)]
    lost_at: Option<Instant>,
}

impl Backoff {
    /// Records a round trip. Our choice: the lesser of two successive round trips counts. A queue lengthens both, a
    /// delayed ACK (RFC 9293, Section 3.8.6.3) only one. Without this rule a delayed ACK of 40 ms made a buffer of 9 ms
    /// seem to hold 43 ms. Bursts half as long as that lost a third. On 60 paths that differ by a few percent, the
    /// worst had .59 of passing's throughput; with the rule it has .80 (docs/design/queue-bound.md).
    pub(super) fn on_rtt(&mut self, now: Instant, rtt: Duration) {
        let rtt = rtt.min(core::mem::replace(&mut self.before, rtt));
        if rtt >= self.longest || now.saturating_since(self.longest_at) > LONGEST_WINDOW {
            (self.longest, self.longest_at) = (rtt, now);
        }
    }

    /// Handles a loss while round trips took `rtt` and `outstanding` bytes were in flight.
    pub(super) fn on_loss(&mut self, now: Instant, rtt: Duration, rtt_min: Duration, outstanding: u64) {
        self.lost_at = Some(now);
        let full = rtt >= (rtt_min + self.longest) / 2 && rtt >= rtt_min + rtt_min / 2;
        let same = self.curve.is_some_and(|curve| now.saturating_since(curve.since) < rtt + rtt / 4);
        if full && !same {
            self.begin(now, rtt, outstanding, 0);
        }
    }

    /// Forgets the last overflow if long round trips indicated it, because no queue made them long. No queue indicated
    /// the overflow of a short buffer, so that one remains.
    pub(super) fn forget_queue(&mut self) {
        self.curve = self.curve.filter(|curve| curve.least > 0);
    }

    /// Returns the longest recent queueing delay.
    pub(super) fn longest_queue(&self, rtt_min: Duration) -> Duration {
        self.longest.saturating_sub(rtt_min)
    }

    /// True if a packet was lost recently.
    pub(super) fn lost_of_late(&self, now: Instant) -> bool {
        self.lost_at.is_some_and(|at| now.saturating_since(at) <= LONGEST_WINDOW)
    }

    /// Returns half of the longest recent queueing delay, if a packet was lost recently.
    pub(super) fn half_full(&self, now: Instant, rtt_min: Duration) -> Option<Duration> {
        self.lost_of_late(now).then_some(self.longest.saturating_sub(rtt_min) / 2)
    }

    /// Handles the overflow of a buffer too short to show a queue, with `outstanding` bytes in flight. The path holds
    /// `path` bytes without a queue. Fewer would leave it idle, and so short a buffer would not help.
    pub(super) fn overflow(&mut self, now: Instant, rtt: Duration, outstanding: u64, path: u64) {
        if self.curve.is_none_or(|curve| now.saturating_since(curve.since) >= rtt + rtt / 4) {
            self.begin(now, rtt, outstanding.max(path), path);
        }
    }

    fn begin(&mut self, now: Instant, rtt: Duration, outstanding: u64, least: u64) {
        let w_max = cubic::w_max(outstanding, self.curve.map_or(0, |curve| curve.w_max));
        let reduced = cubic::reduced(outstanding).max(least);
        let k = cubic::k(w_max.saturating_sub(reduced));
        self.curve = Some(Curve { w_max, k, since: now, reduced, rtt, least, grown: 0, grown_at: now });
    }

    /// True after the overflow of a short buffer: the queue tells nothing about the link's rate.
    pub(super) fn is_of_short_buffer(&self) -> bool {
        self.curve.is_some_and(|curve| curve.least > 0)
    }

    /// Grows the window while packets wait, although a round trip of `rtt_min` met no queue. The link then carries more
    /// than when a short buffer overflowed. Our choice: a sixteenth in each such round trip; a quarter gave the same.
    /// The curve alone stands still for seconds around W_max: four split downloads had a third of a link that had
    /// become three times as fast.
    pub(super) fn on_no_queue(&mut self, now: Instant, rtt_min: Duration) {
        let Some(curve) = self.curve.as_mut().filter(|curve| curve.least > 0) else { return };
        let window = curve.window(now);
        if now.saturating_since(curve.grown_at) >= rtt_min {
            curve.grown += window / 16;
            curve.grown_at = now;
        }
    }

    /// Returns the bytes that may be outstanding where the bound allows `limit`.
    pub(super) fn apply(&mut self, now: Instant, limit: u64) -> u64 {
        let Some(curve) = self.curve else { return limit };
        let window = curve.window(now);
        if window >= limit {
            self.curve = None;
        }
        window.min(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_time::ms;

    const RTT_MIN: Duration = Duration::from_millis(100);
    const LIMIT: u64 = 300_000;

    fn overflowed(rtt_ms: u64) -> (Backoff, Instant) {
        let (mut backoff, now) = (Backoff::default(), Instant::ZERO + ms(1_000));
        (0..2).for_each(|_| backoff.on_rtt(now, ms(200)));
        backoff.on_loss(now, ms(rtt_ms), RTT_MIN, LIMIT);
        (backoff, now)
    }

    #[test]
    fn an_overflow_takes_three_tenths_and_the_curve_brings_them_back() {
        let (mut backoff, now) = overflowed(200);
        assert!(backoff.apply(now, LIMIT).abs_diff(LIMIT / 10 * 7) < 2_000);
        let middle = backoff.apply(now + ms(2_000), LIMIT);
        assert!(middle > LIMIT / 10 * 8 && middle < LIMIT, "{middle}");
        assert_eq!(backoff.apply(now + ms(6_000), LIMIT), LIMIT);
        // The curve has met the bound and ended.
        assert_eq!(backoff.apply(now + ms(6_001), 2 * LIMIT), 2 * LIMIT);
    }

    #[test]
    fn where_round_trips_are_short_the_window_is_back_as_soon_as_renos() {
        let (mut backoff, now) = (Backoff::default(), Instant::ZERO + ms(1_000));
        (0..2).for_each(|_| backoff.on_rtt(now, ms(20)));
        backoff.on_loss(now, ms(20), ms(10), LIMIT);
        // 100 round trips of 0.53 segments each.
        assert_eq!(backoff.apply(now + ms(2_000), LIMIT), LIMIT / 10 * 7 + 100 * 795);
    }

    #[test]
    fn a_loss_with_short_round_trips_is_the_radios() {
        let (mut backoff, now) = overflowed(140);
        assert_eq!(backoff.apply(now, LIMIT), LIMIT);
    }

    #[test]
    fn a_single_long_round_trip_is_a_delayed_ack_s() {
        let mut backoff = Backoff::default();
        for rtt_ms in [100, 104, 140, 104, 108, 107] {
            backoff.on_rtt(Instant::ZERO + ms(1_000), ms(rtt_ms));
        }
        assert_eq!(backoff.longest_queue(RTT_MIN), ms(7));
    }

    #[test]
    fn before_a_short_buffer_the_window_grows_while_round_trips_meet_no_queue() {
        let (mut backoff, now) = (Backoff::default(), Instant::ZERO + ms(1_000));
        backoff.overflow(now, RTT_MIN, LIMIT, LIMIT / 2);
        let before = backoff.apply(now + ms(3_300), LIMIT);
        for at_ms in 3_001..3_300 {
            backoff.on_no_queue(now + ms(at_ms), RTT_MIN);
        }
        // Three round trips.
        let grown = backoff.apply(now + ms(3_300), 2 * LIMIT) - before;
        assert!(grown > before / 16 * 3 && grown < before / 16 * 4, "{grown}");
    }

    #[test]
    fn losses_of_one_round_trip_count_once() {
        let (mut backoff, now) = overflowed(200);
        let before = backoff.apply(now + ms(10), LIMIT);
        backoff.on_loss(now + ms(10), ms(200), RTT_MIN, LIMIT / 2);
        assert_eq!(backoff.apply(now + ms(10), LIMIT), before);
    }
}
