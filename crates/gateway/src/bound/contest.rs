//! Sharing the bottleneck with a flow that fills its queue.
//!
//! A sender that bounds only its own queue starves beside one that fills the whole queue. When round trips show a queue
//! that is not ours, the bytes in flight no longer shrink. A check then halves them for a round trip, between two round
//! trips with the whole window. Alone on the link, we keep the rate, and the contest is over. Otherwise the rate falls
//! too, and the bound follows CUBIC's window (RFC 9438), with slow start and losses, as the other sender does. The
//! check is repeated as long as the contest lasts.

use paceline_wire::{Duration, Instant, Rate};

use super::BoundSample;
use super::cubic::{self, W_EST_STEP};

/// Rounds without a sudden change before a check, so that it compares like with like.
const CALM_ROUNDS: u32 = 2;
/// The shortest time between two checks.
const CHECK_MIN: Duration = Duration::from_secs(10);
/// The longest time between two checks for the other sender.
const CHECK_MAX: Duration = Duration::from_secs(15);

/// Limit of the window, far beyond any link's buffer.
const WINDOW_MAX: u64 = 1 << 32;

/// A check: half the window for a round trip, between two round trips of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Check {
    Due(Instant),
    /// Waits until half the window is outstanding.
    Lower,
    /// Waits for the first packet sent after `since`. `half`: it was sent with half the window.
    Return {
        since: Instant,
        half: bool,
    },
    /// Measures the rate of a round trip that began at `since`.
    Measure {
        since: Instant,
        delivered: u64,
        half: bool,
    },
}

/// A competing window.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct CompetingWindow {
    window: u64,
    floor: u64,
    /// RFC 9438: W_max, W_est, the start of the epoch, K.
    w_max: u64,
    w_est: u64,
    epoch: Instant,
    k: Duration,
    /// Losses of packets sent before this belong to the last reduction.
    reduced: Instant,
    rtt: Duration,
    rtt_max: Duration,
    rtt_felt: Duration,
    check: Check,
    check_start: Instant,
    /// The rates before a check and with half the window.
    before: Rate,
    halved: Rate,
    /// A check has found another sender.
    confirmed: bool,
    /// The last check has not.
    doubt: bool,
    interval: Duration,
    /// As in slow start: from the confirmation until the queue is full or long.
    starting: bool,
    /// A loss has shown a full queue.
    lost: bool,
    round_start: Instant,
    round_delivered: u64,
    round_min: Duration,
    /// Rounds since the last sudden change of the window.
    calm: u32,
    rate: Rate,
}

impl CompetingWindow {
    /// Begins with `window` and the current `rate` and `rtt`.
    pub(super) fn new(now: Instant, window: u64, floor: u64, rate: Rate, rtt: Duration) -> Self {
        CompetingWindow {
            window,
            floor,
            w_max: window,
            w_est: window,
            epoch: now,
            k: Duration::ZERO,
            reduced: now,
            rtt,
            rtt_max: rtt,
            rtt_felt: rtt,
            check: Check::Due(now),
            check_start: now,
            before: rate,
            halved: rate,
            confirmed: false,
            doubt: false,
            interval: rtt * 2,
            starting: false,
            lost: false,
            round_start: now,
            round_delivered: 0,
            round_min: Duration::MAX,
            calm: 0,
            rate,
        }
    }

    /// Returns the bytes that may be outstanding.
    pub(super) fn limit(&self) -> u64 {
        let half = matches!(
            self.check,
            Check::Lower | Check::Return { half: true, .. } | Check::Measure { half: true, .. }
        );
        if half { (self.window / 2).max(self.floor) } else { self.window }
    }

    /// Handles a loss. The queue is full if round trips are nearer to the longest than to `rtt_min`; otherwise the loss
    /// is the radio's.
    pub(super) fn on_loss(&mut self, now: Instant, rtt_min: Duration) {
        let full = self.rtt >= (rtt_min + self.rtt_max) / 2;
        if !full || !self.confirmed || now.saturating_since(self.reduced) < self.rtt + self.rtt / 4 {
            return;
        }
        self.starting = false;
        self.lost = true;
        self.calm = 0;
        self.w_max = cubic::w_max(self.window, self.w_max);
        self.window = cubic::reduced(self.window).max(self.floor);
        self.w_est = self.window;
        self.epoch = now;
        self.reduced = now;
        self.rtt_max = self.rtt;
        self.k = cubic::k(self.w_max.saturating_sub(self.window));
        if !matches!(self.check, Check::Due(_)) {
            self.check = Check::Due(now);
        }
    }

    /// Handles an acknowledgement. True if the other sender is gone, which a round trip up to `empty` shows too.
    pub(super) fn on_ack(&mut self, sample: &BoundSample, rtt: Duration, empty: Duration) -> bool {
        let &BoundSample { now, delivered, .. } = sample;
        self.rtt = rtt;
        self.rtt_max = self.rtt_max.max(rtt);
        self.round_delivered += delivered;
        self.round_min = self.round_min.min(rtt);
        let sent = now - rtt;
        if sent >= self.round_start {
            if self.round_min <= empty {
                return true;
            }
            self.end_round(now);
        }
        match &mut self.check {
            Check::Due(at) => {
                if now >= *at && self.calm >= CALM_ROUNDS {
                    self.check = Check::Lower;
                    self.check_start = now;
                    self.before = self.rate;
                } else if self.confirmed && sample.limited {
                    self.grow(now, delivered);
                }
            }
            Check::Lower => {
                if sample.outstanding <= (self.window / 2).max(self.floor) {
                    self.check = Check::Return { since: now, half: true };
                }
            }
            Check::Return { since, half } => {
                if sent >= *since {
                    self.check = Check::Measure { since: now, delivered: 0, half: *half };
                }
            }
            Check::Measure { since, delivered: sum, half } => {
                *sum += delivered;
                let elapsed = now.saturating_since(*since);
                if elapsed >= rtt {
                    let rate = Rate::from_bytes_in(*sum, elapsed);
                    if *half {
                        self.halved = rate;
                        self.check = Check::Return { since: now, half: false };
                    } else {
                        return self.conclude(now, rate);
                    }
                }
            }
        }
        false
    }

    fn end_round(&mut self, now: Instant) {
        self.rate = Rate::from_bytes_in(self.round_delivered, now.saturating_since(self.round_start));
        self.round_start = now;
        self.round_delivered = 0;
        self.round_min = Duration::MAX;
        self.calm = if self.starting { 0 } else { self.calm + 1 };
    }

    /// Ends a check. `after` is the rate with the whole window after it. True if there is no other sender.
    fn conclude(&mut self, now: Instant, after: Rate) -> bool {
        // A sender alone keeps its rate with half the window. One with a small share keeps half of the rate or little
        // more.
        let felt = self.halved < self.before.min(after).mul_ratio(17, 20);
        if felt {
            self.confirmed = true;
        } else if !self.confirmed || self.doubt {
            return true;
        }
        self.doubt = !felt;
        self.starting = felt && !self.lost;
        if self.starting {
            self.rtt_felt = self.rtt;
        }
        self.calm = 0;
        self.epoch += now.saturating_since(self.check_start);
        self.interval = if self.doubt { self.rtt } else { (self.interval * 2).clamp(CHECK_MIN, CHECK_MAX) };
        self.check = Check::Due(now + self.interval);
        false
    }

    /// RFC 9438, Sections 4.2 to 4.5.
    fn grow(&mut self, now: Instant, delivered: u64) {
        // Without a loss the queue may be unlimited, or our own after all.
        if !self.lost && self.rtt >= self.rtt_felt * 2 {
            self.starting = false;
            return;
        }
        // No more than the outstanding bytes can be delivered. A false report must not open the window.
        let delivered = delivered.min(self.window);
        if self.starting {
            self.window = (self.window + delivered).min(WINDOW_MAX);
            return;
        }
        let t = now.saturating_since(self.epoch) + self.rtt;
        let cubic = cubic::window(self.w_max, self.k, t);
        let target = cubic.clamp(self.window, self.window / 2 * 3);
        let per_window =
            |bytes: u64| (u128::from(bytes) * u128::from(delivered) / u128::from(self.window.max(1))) as u64;
        let w_est = self.w_est + per_window(W_EST_STEP);
        self.window = (self.window + per_window(target - self.window)).max(w_est).min(WINDOW_MAX);
        self.w_est = w_est.min(WINDOW_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::packet;
    use super::*;
    use crate::test_time::ms;

    fn start() -> CompetingWindow {
        CompetingWindow::new(Instant::ZERO, 150_000, 6_000, Rate::from_mbps(4.0), ms(300))
    }

    /// An acknowledgement `after_ms` later; true when the contest is over.
    fn ack(
        contest: &mut CompetingWindow,
        now: &mut Instant,
        after_ms: u64,
        delivered: u64,
        rtt_ms: u64,
    ) -> bool {
        *now += ms(after_ms);
        let rtt = ms(rtt_ms);
        let sample = BoundSample { delivered, limited: true, ..packet(*now, rtt, contest.limit()) };
        contest.on_ack(&sample, rtt, ms(100))
    }

    /// A contest that has found another sender. A full window was acknowledged in each round trip.
    fn confirmed(now: &mut Instant) -> CompetingWindow {
        let mut contest = start();
        while !contest.confirmed {
            let delivered = contest.limit() / 100;
            assert!(!ack(&mut contest, now, 3, delivered, 300));
            assert!(*now < Instant::ZERO + ms(10_000));
        }
        contest
    }

    #[test]
    fn a_rate_that_follows_the_window_confirms_and_lets_it_grow() {
        let mut now = Instant::ZERO;
        let mut contest = confirmed(&mut now);
        let before = contest.limit();
        for _ in 0..100 {
            let delivered = contest.limit() / 100;
            ack(&mut contest, &mut now, 3, delivered, 300);
        }
        assert!(contest.limit() > before * 3 / 2);
    }

    #[test]
    fn a_rate_that_does_not_follow_the_window_ends_it() {
        let (mut contest, mut now) = (start(), Instant::ZERO);
        while !ack(&mut contest, &mut now, 3, 1_500, 300) {
            assert!(now < Instant::ZERO + ms(5_000));
        }
    }

    #[test]
    fn a_short_round_trip_ends_it() {
        let mut now = Instant::ZERO;
        let mut contest = confirmed(&mut now);
        assert!(ack(&mut contest, &mut now, 400, 1_500, 90));
    }

    #[test]
    fn losses_count_once_a_round_trip_and_only_when_the_queue_is_full() {
        let mut now = Instant::ZERO;
        let mut contest = confirmed(&mut now);
        ack(&mut contest, &mut now, 1_000, 0, 150);
        let before = contest.limit();
        contest.on_loss(now, ms(100));
        assert_eq!(contest.limit(), before);
        ack(&mut contest, &mut now, 1, 0, 300);
        contest.on_loss(now, ms(100));
        contest.on_loss(now + ms(10), ms(100));
        assert_eq!(contest.limit(), before / 10 * 7);
    }
}
