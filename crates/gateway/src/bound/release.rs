//! Whether round trips are long for another reason than a queue.
//!
//! A radio scheduler holds packets for now more, now less, so that round trips under load are longer than the shortest, and no queue is the
//! reason. A bound by the shortest is less than the path holds then; the rate follows the bound, the bound follows the rate, and both
//! go down together. Round trips alone cannot tell that from a queue, but a queue grows when more is sent. So, where they are longer than
//! the target explains, the bound is released for a try, and stays released as long as they grow no longer.

use paceline_wire::{Duration, Instant};

use super::UNNOTICED;

/// Our choice: so many long round trips in a row before a try; one in which packets waited at each report counts twice. With two of any kind a
/// link that fell from 20 to 5 Mbit/s had 70 ms of queue a second later, now less than 60.
const LONG_ROUNDS: u32 = 4;
/// Our choice: a try that lasts for so many has shown that no queue was the reason.
const PROVEN_ROUNDS: u32 = 16;
/// Our choice: after a try that found a queue the next one waits for so long, and each time for twice as long.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What one acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    pub(super) now: Instant,
    /// When what it reports had left.
    pub(super) sent: Instant,
    pub(super) rtt: Duration,
    pub(super) rtt_min: Duration,
    /// The shortest round trip of the last moments: a queue that stands is in all of them (RFC 8289, Section 3).
    pub(super) recent: Duration,
    /// The queue that a steady link has.
    pub(super) target: Duration,
    /// Packets waited because of the bound. Where they do at less than half of the reports, the supply is uneven, and what then comes at once
    /// queues. Our choice of half: where jitter lets ACKs come in clumps, all that waits leaves at the first ACK of one. With all in place of
    /// half 61 drawn downloads over radio jitter had .972 of what they have without a gateway, now .997, and 34 in place of 37 ms of wait.
    pub(super) limited: bool,
    /// No more than the bound is outstanding.
    pub(super) held: bool,
}

/// The round trips of one round: from a time on until what left then is reported.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Round {
    since: Instant,
    sum: Duration,
    samples: u64,
    limited: u64,
    held: bool,
}

impl Round {
    fn new(since: Instant) -> Self {
        Round { since, sum: Duration::ZERO, samples: 0, limited: 0, held: true }
    }
}

/// The bound is released.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Free {
    /// Round trips that are longer show a queue.
    longest: Duration,
    rounds: u32,
}

/// Whether the bound is released.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Release {
    round: Round,
    /// Long rounds in a row, and the sum of their means.
    long: (u32, Duration),
    free: Option<Free>,
    wait: Duration,
    since: Instant,
}

impl Default for Release {
    fn default() -> Self {
        Release {
            round: Round::new(Instant::ZERO),
            long: (0, Duration::ZERO),
            free: None,
            wait: Duration::ZERO,
            since: Instant::ZERO,
        }
    }
}

impl Release {
    /// While it is released: round trips up to this are no queue's.
    pub(super) fn longest(&self) -> Option<Duration> {
        self.free.map(|free| free.longest)
    }

    /// A round trip was measured.
    pub(super) fn on_rtt(&mut self, sample: &RoundTrip) {
        let round = &mut self.round;
        round.sum += sample.rtt;
        round.samples += 1;
        round.limited += u64::from(sample.limited);
        round.held &= sample.held;
        if sample.sent < round.since {
            return;
        }
        let round = core::mem::replace(&mut self.round, Round::new(sample.now));
        let mean = round.sum / round.samples;
        match &mut self.free {
            Some(free) => {
                free.rounds += 1;
                if free.rounds == PROVEN_ROUNDS {
                    self.wait = Duration::ZERO;
                }
                if mean > free.longest {
                    self.free = None;
                    self.since = sample.now;
                    self.wait = (self.wait * 2).clamp(WAIT_MIN, WAIT_MAX);
                }
            }
            None => {
                let weight = (round.limited * 2 / round.samples).min(2) as u32;
                self.watch(sample, mean, if round.held { weight } else { 0 });
            }
        }
    }

    fn watch(&mut self, sample: &RoundTrip, mean: Duration, weight: u32) {
        let empty = sample.rtt_min + sample.rtt_min / 8 + sample.target;
        let long = mean > empty + sample.target && mean <= sample.rtt_min + UNNOTICED;
        if weight == 0 || !long || sample.recent > empty {
            self.long = (0, Duration::ZERO);
            return;
        }
        self.long = (self.long.0 + weight, self.long.1 + mean * u64::from(weight));
        if self.long.0 >= LONG_ROUNDS && sample.now.saturating_since(self.since) >= self.wait {
            let mean = self.long.1 / u64::from(self.long.0);
            self.free = Some(Free { longest: mean + (mean / 8).max(sample.target), rounds: 0 });
            self.long = (0, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet each millisecond for so long; `rtt_ms` says its round trip by the time and by whether the bound is released.
    /// Returns for how many of them it was.
    fn run(ms: u64, recent_ms: u64, rtt_ms: impl Fn(u64, bool) -> u64) -> u64 {
        let (mut release, mut released) = (Release::default(), 0);
        for at in 1_000..1_000 + ms {
            let rtt = Duration::from_millis(rtt_ms(at, release.longest().is_some()));
            let now = Instant::ZERO + Duration::from_millis(at);
            release.on_rtt(&RoundTrip {
                now,
                sent: now - rtt,
                rtt,
                rtt_min: Duration::from_millis(20),
                recent: Duration::from_millis(recent_ms),
                target: Duration::from_millis(8),
                limited: release.longest().is_none(),
                held: true,
            });
            released += u64::from(release.longest().is_some());
        }
        released
    }

    #[test]
    fn where_round_trips_are_long_whatever_is_sent_the_bound_stays_released() {
        assert!(run(10_000, 22, |at, _| 40 + at % 25) > 9_500);
    }

    #[test]
    fn where_a_queue_grows_it_comes_back_and_is_tried_more_and_more_seldom() {
        let released = run(60_000, 22, |_, released| if released { 90 } else { 45 });
        assert!((1..1_500).contains(&released), "{released}");
    }

    #[test]
    fn what_the_target_explains_and_what_anybody_would_notice_is_left_alone() {
        assert_eq!(run(10_000, 22, |_, _| 30), 0);
        assert_eq!(run(10_000, 22, |_, _| 200), 0);
        assert_eq!(run(10_000, 40, |_, _| 45), 0, "a queue or a longer path: it is there all the time");
    }
}
