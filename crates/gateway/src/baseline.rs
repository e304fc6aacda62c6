//! The round-trip time without a queue of our own, kept true by draining.

use paceline_wire::{Duration, Instant};

/// Rounds in a row that are longer than the target explains, before a drain.
const LONG_ROUNDS: u32 = 20;
/// The same, longer than even the bound explains; or as long as each other, while the link carries less than of late.
const UNEXPLAINED_ROUNDS: u32 = 8;
/// The same, when all are as long as each other: a queue varies, a path does not.
const FLAT_ROUNDS: u32 = 4;
/// The same, four times as long: no need to drain.
const FAR_ROUNDS: u32 = 2;
/// Our choice: round trips between two drains for a closer look, at least. One takes two or three, of somewhat less than the link carries.
const DRAIN_EVERY: u64 = 100;
/// Packets of a round that a drain listens to.
const LISTEN_SAMPLES: u32 = 4;
/// Rounds more that it listens to while they get shorter.
const LISTEN_MORE: u32 = 3;
/// A second rise in this time is no second hand-over.
const RAISE_AGAIN: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Phase {
    Watch,
    /// Waits until little enough is outstanding.
    Lower,
    /// Listens to packets sent since then, which found no queue of ours.
    Listen {
        since: Instant,
        samples: u32,
        min: Duration,
        last: Duration,
        more: u32,
    },
}

/// The end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// It was longer than the bound explains.
    pub(crate) unexplained: bool,
    /// It and those before were so long that it takes somebody else's queue.
    pub(crate) occupied: bool,
}

/// What a finished drain found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// The round-trip time that was known, about.
    Confirmed,
    /// A longer path. `queued`: a queue stood before that, as where the link has become slower, too.
    Longer { queued: bool },
    /// A round trip that is longer and varies: somebody else's queue, it seems.
    Occupied,
}

/// What a round trip should be, at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// With the target alone.
    pub(crate) target: Duration,
    /// With all that the bound allows.
    pub(crate) bound: Duration,
    /// The link carries less than it did of late, as it does on a longer path.
    pub(crate) slower: bool,
    /// So little is outstanding, and of its own accord, that no queue of ours is left.
    pub(crate) drained: bool,
}

/// The smallest round-trip time.
///
/// A standing queue hides the minimum, so a minimum that was not seen for `window` is refreshed by a drain: what is
/// outstanding goes down below rate x rtt_min until packets sent at that level return. Only a drain raises the minimum. It
/// also runs early when rounds stay longer than expected, as after a hand-over, and where a server leaves that little outstanding by itself.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Baseline {
    window: Duration,
    min: Option<Duration>,
    seen: Instant,
    #[serde(default)]
    seen_closely: Instant,
    phase: Phase,
    round_start: Instant,
    round_min: Duration,
    long: u32,
    far: u32,
    unexplained: u32,
    flat: u32,
    level: Duration,
    /// The longest round since the minimum was seen.
    #[serde(default)]
    longest: Duration,
    /// Packets sent until then belong to a drain.
    drained: Instant,
    /// The minimum as it was when the last drain began.
    #[serde(default)]
    before: Duration,
    /// When a longer path was last taken for true, and how long it was.
    raised: Option<Instant>,
    #[serde(default)]
    raised_to: Duration,
    /// The drain only refreshes the minimum, or uses a pause of the server's.
    routine: bool,
    /// The next drain decides alone.
    trusted: bool,
}

impl Baseline {
    pub(crate) fn new(window: Duration) -> Self {
        Baseline {
            window,
            min: None,
            seen: Instant::ZERO,
            seen_closely: Instant::ZERO,
            phase: Phase::Watch,
            round_start: Instant::ZERO,
            round_min: Duration::MAX,
            long: 0,
            far: 0,
            unexplained: 0,
            flat: 0,
            level: Duration::ZERO,
            longest: Duration::ZERO,
            drained: Instant::ZERO,
            before: Duration::ZERO,
            raised: None,
            raised_to: Duration::ZERO,
            routine: true,
            trusted: false,
        }
    }

    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        self.min
    }

    /// True while less than the bound is wanted.
    pub(crate) fn draining(&self) -> bool {
        self.phase != Phase::Watch
    }

    /// True for packets whose rate says what a drain allowed.
    pub(crate) fn in_drain(&self, sent: Instant) -> bool {
        self.draining() || sent < self.drained
    }

    /// Nobody else is there: what the next drain finds is the path.
    pub(crate) fn alone(&mut self) {
        self.trusted = true;
        self.phase = Phase::Lower;
    }

    /// Nothing measures a round trip: there is nothing to listen to.
    pub(crate) fn give_up_drain(&mut self) {
        self.phase = Phase::Watch;
    }

    /// A packet sent `rtt` ago was reported at `now`; `held` says that no more than the bound is outstanding.
    pub(crate) fn on_rtt(
        &mut self,
        now: Instant,
        rtt: Duration,
        target: Duration,
        expected: Option<Expected>,
        held: bool,
    ) -> Option<Round> {
        let min = self.min.map_or(rtt, |min| min.min(rtt));
        // Our choice: within a sixteenth of the minimum counts as having seen it, jitter hides the rest. Where a queue of our own, which is as
        // long as the target, would hide there, too, it has to be seen more closely now and then.
        if rtt <= min + min / 16 {
            self.seen = now;
        }
        if rtt <= min + if min / 16 < target { min / 16 } else { target / 2 } {
            self.seen_closely = now;
        }
        if min < self.raised_to - self.raised_to / 16 {
            // That hand-over is undone: the next one is not its repetition.
            self.raised = None;
        }
        self.min = Some(min);
        self.round_min = self.round_min.min(rtt);
        if now - rtt < self.round_start {
            return None;
        }
        let min = self.round_min;
        self.longest = if self.seen >= self.round_start { min } else { self.longest.max(min) };
        self.round_start = now;
        self.round_min = Duration::MAX;
        let expected = expected?;
        let unexplained = self.judge(min, expected, held);
        // Our choice: what was taken for a longer path is looked at as soon as any minimum is refreshed. It may have been a queue after all, and
        // some of that hides for a minute otherwise.
        let rounds = self.min.unwrap_or_default() * DRAIN_EVERY;
        let closely = if self.raised.is_some() { self.window } else { self.window.max(rounds) };
        let stale = now.saturating_since(self.seen) > self.window
            || now.saturating_since(self.seen_closely) > closely;
        let longer = unexplained && self.flat >= FLAT_ROUNDS
            || expected.slower && self.flat >= UNEXPLAINED_ROUNDS
            || self.unexplained >= UNEXPLAINED_ROUNDS
            || self.long >= LONG_ROUNDS;
        // Our choice: as BBR does, which looks for its own shortest round trip then (draft-ietf-ccwg-bbr, Section 4.3.4).
        let free = expected.drained && self.flat > 0;
        if self.phase == Phase::Watch && (stale || longer || free) {
            self.phase = Phase::Lower;
            self.routine = !longer;
            self.before = self.min.unwrap_or_default();
        }
        Some(Round {
            unexplained,
            occupied: self.phase == Phase::Watch && self.far >= FAR_ROUNDS && self.flat == 0,
        })
    }

    fn judge(&mut self, min: Duration, expected: Expected, held: bool) -> bool {
        let unexplained = held && min > expected.bound;
        self.far = if held && min > expected.target * 4 { self.far + 1 } else { 0 };
        let longest = expected.target + expected.bound.saturating_sub(expected.target) / 2;
        self.long = if held && min > longest { self.long + 1 } else { 0 };
        let weight = (min.as_nanos() / expected.bound.as_nanos().max(1)).clamp(1, 4) as u32;
        self.unexplained = if unexplained { self.unexplained + weight } else { 0 };
        // Whatever is outstanding: on a path that has become longer that is more than a limit which follows the rate allows, for six rounds and more.
        if min > expected.target && min.abs_diff(self.level) <= min / 16 {
            self.flat += 1;
        } else {
            self.flat = 0;
            self.level = min;
        }
        unexplained
    }

    /// Continues a drain to `drain_limit`.
    pub(crate) fn on_drain(
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
                    let (min, last) = (Duration::MAX, Duration::MAX);
                    self.phase =
                        Phase::Listen { since: now, samples: LISTEN_SAMPLES, min, last, more: LISTEN_MORE };
                }
                None
            }
            Phase::Listen { since, samples, min, last, more } => {
                if now - rtt < *since {
                    return None;
                }
                *min = (*min).min(rtt);
                *samples -= 1;
                if *samples > 0 {
                    return None;
                }
                let found = *min;
                let above = found.saturating_sub(self.min.unwrap_or(found)) > found / 16;
                if *more > 0 && above && found < *last - *last / 16 {
                    // Still getting shorter: somebody else's packets, or a slower link, take longer to leave.
                    (*since, *samples, *last) = (now, LISTEN_SAMPLES, found);
                    *min = Duration::MAX;
                    *more -= 1;
                    return None;
                }
                // Our choice: within a sixteenth, as for the minimum. A queue of our own would have gone, and somebody else's varies, as a rule.
                let steady = above && found.abs_diff(*last) <= found / 16;
                Some(self.finish(now, found, steady))
            }
        }
    }

    fn finish(&mut self, now: Instant, found: Duration, steady: bool) -> Drained {
        let flat = self.flat >= FLAT_ROUNDS || steady;
        self.phase = Phase::Watch;
        (self.long, self.far, self.unexplained, self.flat) = (0, 0, 0, 0);
        (self.seen, self.seen_closely) = (now, now);
        self.drained = now;
        let before = self.min.unwrap_or(found);
        let trusted = core::mem::take(&mut self.trusted);
        let near = if trusted { before * 4 } else { before + before / 4 };
        if found <= near {
            self.min = Some(found);
            if found < self.before - self.before / 16 {
                // What was taken for the path was a queue of our own, and some of it may be left. At first a drain that long rounds had begun was not
                // repeated, and 320 ms that another's queue had left stood for 42 s.
                (self.phase, self.before) = (Phase::Lower, found);
            }
            return Drained::Confirmed;
        }
        if self.routine && !trusted && !steady {
            // The path changed meanwhile, or the link is slow just now: if it lasts, the rounds will show.
            return Drained::Confirmed;
        }
        let again = self.raised.replace(now).is_some_and(|at| now.saturating_since(at) < RAISE_AGAIN);
        if !flat || again {
            return Drained::Occupied;
        }
        self.min = Some(found);
        self.raised_to = found;
        Drained::Longer { queued: self.longest > found + found / 8 }
    }
}
