//! Finds whether round trips are long for another reason than a queue.
//!
//! A radio scheduler holds packets for varying times. Under load round trips are then longer than the shortest without
//! any queue. A bound by the shortest is less than the path holds: the rate and the bound pull each other down. Round
//! trips alone cannot distinguish that from a queue. But when more is sent, a queue grows and the rate does not. So if
//! round trips are longer than the target explains, the bound is released for a try to what the longest need. It stays
//! released if the rate grew and they did not. From time to time half of it is tried, which shortens a queue but not a
//! scheduler's delay.

use paceline_wire::{Duration, Instant, Rate};

use super::UNNOTICED;

/// Our choice: number of long rounds in a row before a try. A round in which packets waited at each report counts
/// twice. With two rounds of any kind a link that fell from 20 to 5 Mbit/s had 70 ms of queue a second later. It now
/// has less than 60.
const LONG_ROUNDS: u32 = 4;
/// Our choice: within this many rounds a try must raise the rate by an eighth, which shows that no queue was the
/// reason. Half as many gave the same.
const TRY_ROUNDS: u32 = 16;
/// Our choice: time between checks, as long as the shortest round trip is kept. The radio may have changed by then. A
/// check costs a server two round trips of half the rate. When the whole bound came back instead, BBR over 104 Mbit/s
/// with jitter of 37 ms fell from 98 to 4 Mbit/s.
const RELEASED: Duration = Duration::from_secs(10);
/// Our choice: wait after a try that failed, doubled each time.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Report of one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    pub(super) now: Instant,
    /// Departure time of the newest reported packet.
    pub(super) sent: Instant,
    pub(super) rtt: Duration,
    pub(super) rtt_min: Duration,
    /// Shortest recent round trip: a standing queue is in all of them (RFC 8289, Section 3).
    pub(super) recent: Duration,
    /// Queueing delay of a steady link.
    pub(super) target: Duration,
    /// Packets waited because of the bound. If they do at less than half of the reports, the supply is uneven, and
    /// bursts queue. Our choice of half: if jitter clumps ACKs, all waiting packets leave at the first ACK of a clump.
    /// With all in place of half, 61 drawn downloads over radio jitter had .972 of their throughput without a gateway
    /// and 37 ms of wait. With half they have .997 and 34 ms.
    pub(super) limited: bool,
    /// No more than the bound is outstanding.
    pub(super) held: bool,
    /// Expected rate of the link.
    pub(super) forecast: Rate,
}

/// The round trips of one round. It ends when a packet sent after its start is reported.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Round {
    since: Instant,
    sum: Duration,
    #[serde(default)]
    longest: Duration,
    samples: u64,
    limited: u64,
    held: bool,
}

impl Round {
    fn new(since: Instant) -> Self {
        Round { since, sum: Duration::ZERO, longest: Duration::ZERO, samples: 0, limited: 0, held: true }
    }
}

/// A released bound.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct ReleasedBound {
    #[serde(default)]
    since: Instant,
    /// Longest round trip that is no queue's.
    longest: Duration,
    /// Expected rate of the link before the release.
    #[serde(default)]
    forecast: Rate,
    rounds: u32,
    /// Rounds of the current check, and the mean round trip before it.
    #[serde(default)]
    check: Option<(u32, Duration)>,
}

/// Whether the bound is released.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct BoundRelease {
    round: Round,
    /// Long rounds in a row, and the sum of their longest round trips, both weighted.
    long: (u32, Duration),
    free: Option<ReleasedBound>,
    wait: Duration,
    since: Instant,
    /// When the last check ended.
    #[serde(default)]
    checked: Instant,
}

impl Default for BoundRelease {
    fn default() -> Self {
        BoundRelease {
            round: Round::new(Instant::ZERO),
            long: (0, Duration::ZERO),
            free: None,
            wait: Duration::ZERO,
            since: Instant::ZERO,
            checked: Instant::ZERO,
        }
    }
}

impl BoundRelease {
    /// While the bound is released: round trips up to this are no queue's.
    pub(super) fn longest(&self) -> Option<Duration> {
        self.free.map(|free| free.longest)
    }

    /// True during a check, which allows half: its round trips show whether a queue stands.
    pub(super) fn is_checked(&self) -> bool {
        self.free.is_some_and(|free| free.check.is_some())
    }

    /// True for packets whose rate is what a check allowed.
    pub(super) fn in_check(&self, sent: Instant) -> bool {
        self.is_checked() || sent < self.checked
    }

    /// Handles a measured round trip.
    pub(super) fn on_rtt(&mut self, sample: &RoundTrip) {
        let round = &mut self.round;
        round.sum += sample.rtt;
        round.longest = round.longest.max(sample.rtt);
        round.samples += 1;
        round.limited += u64::from(sample.limited);
        round.held &= sample.held;
        if sample.sent < round.since {
            return;
        }
        let round = core::mem::replace(&mut self.round, Round::new(sample.now));
        match self.free {
            Some(free) => self.judge(sample, &round, free),
            None => self.watch(sample, &round),
        }
    }

    /// Judges a round of the released bound.
    fn judge(&mut self, sample: &RoundTrip, round: &Round, mut free: ReleasedBound) {
        free.rounds += 1;
        let mean = round.sum / round.samples;
        let is_vain = free.rounds == TRY_ROUNDS && sample.forecast < free.forecast.mul_ratio(9, 8);
        let mut is_queue = round.longest > with_room(free.longest, sample.rtt_min, sample.target);
        match free.check {
            // The first round of a check measures packets sent before it.
            Some((0, before)) => free.check = Some((1, before)),
            Some((_, before)) => {
                is_queue |= mean + before.saturating_sub(sample.rtt_min) / 2 < before;
                (free.check, free.since, self.checked) = (None, sample.now, sample.now);
            }
            None if sample.now.saturating_since(free.since) > RELEASED => free.check = Some((0, mean)),
            None => {}
        }
        if free.rounds == TRY_ROUNDS && !is_vain {
            self.wait = Duration::ZERO;
        }
        self.free = Some(free);
        if is_queue || is_vain {
            self.free = None;
            self.wait = (self.wait * 2).clamp(WAIT_MIN, WAIT_MAX);
            self.since = sample.now;
        }
    }

    /// Judges a round in which the bound was in force.
    fn watch(&mut self, sample: &RoundTrip, round: &Round) {
        let mean = round.sum / round.samples;
        let weight = if round.held { (round.limited * 2 / round.samples).min(2) as u32 } else { 0 };
        // Our choice: a round is long half a target above what the bound aims at, and an eighth above the shortest
        // round trip. With two targets and the eighth, jitter of 18 ms over 33 ms was never examined. It took a quarter
        // of a BBR flow's rate.
        let least = sample.rtt_min + (sample.rtt_min / 8).max(sample.target * 3 / 2);
        let long = mean > least && mean <= sample.rtt_min + UNNOTICED;
        if weight == 0 || !long || sample.recent > sample.rtt_min + sample.rtt_min / 8 + sample.target {
            self.long = (0, Duration::ZERO);
            return;
        }
        self.long = (self.long.0 + weight, self.long.1 + round.longest * u64::from(weight));
        if self.long.0 >= LONG_ROUNDS && sample.now.saturating_since(self.since) >= self.wait {
            let longest = with_room(self.long.1 / u64::from(self.long.0), sample.rtt_min, sample.target);
            // A hand-over's queue made single round trips of 200 ms. No try may add more wait than users do not notice.
            let longest = longest.min(sample.rtt_min + UNNOTICED);
            self.free = Some(ReleasedBound {
                since: sample.now,
                longest,
                forecast: sample.forecast,
                rounds: 0,
                check: None,
            });
            self.long = (0, Duration::ZERO);
        }
    }
}

/// Adds a third of what exceeds the shortest round trip. It is at least an eighth of the whole, and the queueing delay
/// of a steady link. Our choice. The forecast's error is subtracted from what this round trip holds. Where jitter is
/// several times the shortest round trip, an eighth alone was less than the error, and the released rate did not grow.
/// With 36 ms over 10 ms CUBIC had .72 of 20 Mbit/s, now all of it. With a half, links that vary waited up to 80 ms more.
fn with_room(rtt: Duration, rtt_min: Duration, target: Duration) -> Duration {
    let spread = rtt.saturating_sub(rtt_min);
    rtt + (spread / 3).max(rtt / 8).max(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a packet each millisecond for `ms`; `rtt_ms` gives its round trip by the time and the bound's state. The
    /// released link carries `gain` percent more. Returns the number of packets with the bound released.
    fn run(ms: u64, recent_ms: u64, gain: u64, rtt_ms: impl Fn(u64, &BoundRelease) -> u64) -> u64 {
        let (mut release, mut released) = (BoundRelease::default(), 0);
        for at in 1_000..1_000 + ms {
            let is_released = release.longest().is_some();
            let rtt = Duration::from_millis(rtt_ms(at, &release));
            let now = Instant::ZERO + Duration::from_millis(at);
            release.on_rtt(&RoundTrip {
                now,
                sent: now - rtt,
                rtt,
                rtt_min: Duration::from_millis(20),
                recent: Duration::from_millis(recent_ms),
                target: Duration::from_millis(8),
                limited: !is_released,
                held: true,
                forecast: Rate::from_mbps(10.0).mul_ratio(100 + u64::from(is_released) * gain, 100),
            });
            released += u64::from(release.longest().is_some());
        }
        released
    }

    #[test]
    fn where_round_trips_are_long_and_the_rate_grows_the_bound_stays_released() {
        assert!(run(30_000, 22, 30, |at, _| 40 + at % 25) > 28_500);
    }

    #[test]
    fn where_a_queue_grows_it_comes_back_and_is_tried_more_and_more_seldom() {
        let released = run(60_000, 22, 30, |_, release| if release.longest().is_some() { 90 } else { 45 });
        assert!((1..1_500).contains(&released), "{released}");
    }

    #[test]
    fn a_queue_that_stands_where_jitter_was_is_found() {
        let path = |at, release: &BoundRelease| match at {
            ..8_000 => 40 + at % 25,
            _ if release.longest().is_none() => 28,
            _ => {
                if release.is_checked() {
                    25
                } else {
                    55
                }
            }
        };
        let released = run(30_000, 22, 30, path);
        assert!((9_000..12_000).contains(&released), "{released}");
    }

    #[test]
    fn where_the_rate_does_not_grow_it_comes_back_too() {
        let released = run(60_000, 22, 5, |at, _| 40 + at % 25);
        assert!((1..9_000).contains(&released), "{released}");
    }

    #[test]
    fn what_the_target_explains_and_what_anybody_would_notice_is_left_alone() {
        assert_eq!(run(10_000, 22, 30, |_, _| 30), 0);
        assert_eq!(run(10_000, 22, 30, |_, _| 200), 0);
        assert_eq!(run(10_000, 40, 30, |_, _| 45), 0, "a queue or a longer path: it is there all the time");
    }
}
