//! The round-trip time without a queue of our own, kept true by draining.

use paceline_wire::{Duration, Instant};

/// Number of successive rounds beyond half of the margin that start a drain.
const LONG_ROUNDS: u32 = 20;
/// Number of successive rounds beyond the bound that start a drain; also of equal rounds while the link carries less.
const UNEXPLAINED_ROUNDS: u32 = 8;
/// Our choice: such a drain that finds nothing new doubles the number of rounds before the next, so often at most. This
/// holds where the margin is less than the target: on a slow link it is shorter than a packet takes. There `split` had
/// 92.5 to 94 % of 0.5 to 0.8 Mbit/s because of these drains. Without the condition a link that stood still and then was
/// slow had half more copies.
const DOUBLED_MAX: u32 = 5;
/// Number of successive equal rounds beyond the bound that start a drain: a queue varies, a path does not.
const FLAT_ROUNDS: u32 = 4;
/// Number of successive varying rounds above four times the target that show another sender's queue without a drain.
const FAR_ROUNDS: u32 = 2;
/// Our choice: least number of round trips between two drains for a closer look. A drain costs a part of the rate for
/// two or three round trips.
const DRAIN_EVERY: u64 = 100;
/// Number of packets of a round that a drain measures.
const LISTEN_SAMPLES: u32 = 4;
/// Number of further rounds that it measures while round trips fall.
const LISTEN_MORE: u32 = 3;
/// A second rise within this time is not taken for a second hand-over.
const RAISE_AGAIN: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Phase {
    Watch,
    /// Waits until few enough bytes are outstanding.
    Lower,
    /// Measures packets sent since then, which met no queue of ours.
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
    /// Only another sender's queue explains this and the previous rounds.
    pub(crate) occupied: bool,
}

/// Result of a finished drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrainResult {
    /// About the known round-trip time.
    Confirmed,
    /// A longer path. `queued`: a queue stood before the drain, as when the link has become slower too.
    Longer { queued: bool },
    /// A longer round trip that varies or is the second rise: probably another sender's queue.
    Occupied,
}

/// The longest round trips to expect, and the state of the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Longest round trip with a queue as long as the target.
    pub(crate) target: Duration,
    /// Longest round trip with everything in flight that the bound allows.
    pub(crate) bound: Duration,
    /// The link carries less than recently, as it does on a longer path.
    pub(crate) slower: bool,
    /// So few bytes are outstanding that no queue of ours is left.
    pub(crate) drained: bool,
}

/// Tracks the smallest round-trip time.
///
/// A standing queue hides the minimum. If it was not seen for `window`, a drain refreshes it. The bytes outstanding go
/// below rate x rtt_min until packets sent at that level return. Only a drain raises the minimum. A drain starts early
/// if rounds stay longer than expected, as after a hand-over. It also starts where a server itself leaves that few
/// bytes outstanding.
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
    /// Packets sent before this time belong to a drain.
    drained: Instant,
    /// Minimum at the start of the last drain.
    #[serde(default)]
    before: Duration,
    /// Time of the last rise that a drain found, and the last round-trip time accepted as a longer path.
    raised: Option<Instant>,
    #[serde(default)]
    raised_to: Duration,
    /// The drain only refreshes the minimum, or uses a pause of the server's.
    routine: bool,
    /// The result of the next drain is accepted, up to four times the minimum.
    trusted: bool,
    /// How many drains in a row that rounds started found nothing new.
    #[serde(default)]
    in_vain: u32,
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
            in_vain: 0,
        }
    }

    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        self.min
    }

    /// True during a drain.
    pub(crate) fn draining(&self) -> bool {
        self.phase != Phase::Watch
    }

    /// True for a packet of a drain, which limits its delivery rate.
    pub(crate) fn in_drain(&self, sent: Instant) -> bool {
        self.draining() || sent < self.drained
    }

    /// No other sender is left: starts a drain that finds the path.
    pub(crate) fn alone(&mut self) {
        self.trusted = true;
        self.phase = Phase::Lower;
    }

    /// Ends a drain, because nothing measures a round trip.
    pub(crate) fn give_up_drain(&mut self) {
        self.phase = Phase::Watch;
    }

    /// Handles the report at `now` of a packet sent `rtt` ago. `held`: no more than the bound is outstanding.
    pub(crate) fn on_rtt(
        &mut self,
        now: Instant,
        rtt: Duration,
        target: Duration,
        expected: Option<Expected>,
        held: bool,
    ) -> Option<Round> {
        let min = self.min.map_or(rtt, |min| min.min(rtt));
        // Our choice: a round trip within a sixteenth above the minimum counts as the minimum, because jitter hides
        // smaller differences. A queue of our own, as long as the target, may hide there too. So the minimum must be
        // seen more closely from time to time.
        if rtt <= min + min / 16 {
            self.seen = now;
        }
        if rtt <= min + if min / 16 < target { min / 16 } else { target / 2 } {
            self.seen_closely = now;
        }
        if min < self.raised_to - self.raised_to / 16 {
            // The path is short again, so the next rise is a new hand-over.
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
        // Our choice: after a rise the closer look is due as soon as any refresh. The longer path may have been a
        // queue, and part of that would otherwise hide for a minute.
        let rounds = self.min.unwrap_or_default() * DRAIN_EVERY;
        let closely = if self.raised.is_some() { self.window } else { self.window.max(rounds) };
        let stale = now.saturating_since(self.seen) > self.window
            || now.saturating_since(self.seen_closely) > closely;
        let doubled = if expected.bound < expected.target { self.in_vain } else { 0 };
        let longer = unexplained && self.flat >= FLAT_ROUNDS
            || expected.slower && self.flat >= UNEXPLAINED_ROUNDS
            || self.unexplained >= UNEXPLAINED_ROUNDS << doubled
            || self.long >= LONG_ROUNDS;
        // Our choice: a drain also uses a pause of the server. BBR pauses to measure its shortest round trip
        // (draft-ietf-ccwg-bbr, Section 4.3.4).
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
        // `held` does not matter here. On a path that has become longer, more than the limit is outstanding for six
        // rounds or more, because the limit follows the rate down.
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
    ) -> Option<DrainResult> {
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
                    // Round trips still fall: another sender's packets, or a slower link's, take longer to leave.
                    (*since, *samples, *last) = (now, LISTEN_SAMPLES, found);
                    *min = Duration::MAX;
                    *more -= 1;
                    return None;
                }
                // Our choice: within a sixteenth, as for the minimum. A queue of our own is gone by now, and another
                // sender's usually varies.
                let steady = above && found.abs_diff(*last) <= found / 16;
                Some(self.finish(now, found, steady))
            }
        }
    }

    fn finish(&mut self, now: Instant, found: Duration, steady: bool) -> DrainResult {
        let flat = self.flat >= FLAT_ROUNDS || steady;
        self.phase = Phase::Watch;
        (self.long, self.far, self.unexplained, self.flat) = (0, 0, 0, 0);
        (self.seen, self.seen_closely) = (now, now);
        self.drained = now;
        let before = self.min.unwrap_or(found);
        let in_vain = core::mem::take(&mut self.in_vain);
        let trusted = core::mem::take(&mut self.trusted);
        let near = if trusted { before * 4 } else { before + before / 4 };
        if found <= near {
            self.min = Some(found);
            if found < self.before - self.before / 16 {
                // The former minimum included a queue of our own, and some of it may be left: drain again. When only
                // routine drains were repeated, 320 ms that another sender's queue had left stood for 42 s.
                (self.phase, self.before) = (Phase::Lower, found);
            } else {
                self.in_vain = if self.routine { in_vain } else { (in_vain + 1).min(DOUBLED_MAX) };
            }
            return DrainResult::Confirmed;
        }
        if self.routine && !trusted && !steady {
            // The path changed during the drain, or the link is slow at the moment. If it lasts, the rounds show it.
            return DrainResult::Confirmed;
        }
        let again = self.raised.replace(now).is_some_and(|at| now.saturating_since(at) < RAISE_AGAIN);
        if !flat || again {
            return DrainResult::Occupied;
        }
        self.min = Some(found);
        self.raised_to = found;
        DrainResult::Longer { queued: self.longest > found + found / 8 }
    }
}
