//! The round-trip time without a queue of our own, kept true by draining.

use paceline_wire::{Duration, Instant};

/// Rounds in a row with an unexplained delay before a drain.
const SUSPICIOUS_ROUNDS: u32 = 20;

/// Such rounds in a row when all are as long as each other: a queue varies, a path does not.
const FLAT_ROUNDS: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Watch,
    /// Waits until little enough is outstanding.
    Lower,
    /// Waits for `samples` more packets that were sent since, and found no queue of ours.
    Listen {
        since: Instant,
        samples: u32,
        min: Duration,
    },
}

/// What a finished drain found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drained {
    /// The known minimum, or less.
    Confirmed,
    /// Delay that does not go away: the path is longer, or somebody else's queue stands there.
    Raised,
}

/// The smallest round-trip time.
///
/// A standing queue hides the minimum, so a minimum that was not seen for `window` is refreshed by a drain: what is
/// outstanding goes down to three quarters of rate x rtt_min until packets sent at that level return. Only a drain raises
/// the minimum. It also runs early when rounds stay longer than the bound explains, as after a hand-over.
#[derive(Clone, Debug)]
pub(super) struct Baseline {
    window: Duration,
    min: Option<Duration>,
    seen: Instant,
    phase: Phase,
    round_start: Instant,
    round_min: Duration,
    suspicious: u32,
    /// Of them, those at the end that were as long as each other.
    flat: u32,
    level: Duration,
    /// Packets sent until then belong to a drain.
    drained: Instant,
}

impl Baseline {
    pub(super) fn new(window: Duration) -> Self {
        Baseline {
            window,
            min: None,
            seen: Instant::ZERO,
            phase: Phase::Watch,
            round_start: Instant::ZERO,
            round_min: Duration::MAX,
            suspicious: 0,
            flat: 0,
            level: Duration::ZERO,
            drained: Instant::ZERO,
        }
    }

    pub(super) fn rtt_min(&self) -> Option<Duration> {
        self.min
    }

    /// True while less than the bound is wanted.
    pub(super) fn draining(&self) -> bool {
        self.phase != Phase::Watch
    }

    /// True for packets whose rate says what a drain allowed.
    pub(super) fn in_drain(&self, sent: Instant) -> bool {
        self.draining() || sent < self.drained
    }

    /// A packet sent `rtt` ago was reported at `now`; the bound explains a round trip of `explained`, and `held` says that no
    /// more than it was outstanding.
    pub(super) fn on_rtt(
        &mut self,
        now: Instant,
        rtt: Duration,
        explained: Option<Duration>,
        limit: Option<Duration>,
        held: bool,
    ) -> Option<bool> {
        let min = self.min.map_or(rtt, |min| min.min(rtt));
        // Our choice: within a sixteenth of the minimum counts as having seen it, jitter hides the rest.
        if rtt <= min + min / 16 {
            self.seen = now;
        }
        self.min = Some(min);
        self.round_min = self.round_min.min(rtt);
        if now - rtt < self.round_start {
            return None;
        }
        let min = self.round_min;
        let unexplained = held && explained.is_some_and(|explained| min > explained);
        self.suspicious = if unexplained { self.suspicious + 1 } else { 0 };
        let same = min.abs_diff(self.level) <= min / 16;
        if held && same && limit.is_some_and(|limit| min > limit) {
            self.flat += 1;
        } else {
            self.flat = 0;
            self.level = min;
        }
        self.round_start = now;
        self.round_min = Duration::MAX;
        let stale = now.saturating_since(self.seen) > self.window;
        let longer = self.flat >= FLAT_ROUNDS || self.suspicious >= SUSPICIOUS_ROUNDS;
        if self.phase == Phase::Watch && explained.is_some() && (stale || longer) {
            self.phase = Phase::Lower;
        }
        Some(min > limit.unwrap_or(Duration::MAX) && held)
    }

    /// Continues a drain to `drain_limit`.
    pub(super) fn on_drain(
        &mut self,
        now: Instant,
        rtt: Duration,
        outstanding: u64,
        drain_limit: u64,
    ) -> Option<Drained> {
        match &mut self.phase {
            Phase::Watch => None,
            Phase::Lower => {
                if outstanding <= drain_limit {
                    self.phase = Phase::Listen { since: now, samples: 4, min: Duration::MAX };
                }
                None
            }
            Phase::Listen { since, samples, min } => {
                if now - rtt < *since {
                    return None;
                }
                *min = (*min).min(rtt);
                *samples -= 1;
                if *samples > 0 {
                    return None;
                }
                let found = *min;
                self.phase = Phase::Watch;
                self.suspicious = 0;
                self.flat = 0;
                self.seen = now;
                self.drained = now;
                let before = self.min.replace(found);
                Some(if before.is_some_and(|before| found > before + before / 4) {
                    Drained::Raised
                } else {
                    Drained::Confirmed
                })
            }
        }
    }
}
