//! Finds whether an overflowing buffer or the radio loses packets.
//!
//! A long queue shows a buffer by itself (`backoff`). A short buffer overflows with hardly any queue, which takes a
//! test: the outstanding bytes go down to what the path holds without a queue. If losses stop, a buffer made them, and
//! the sender gives way to it (RFC 2914, Section 6). If they go on, the radio made them, and the bound stays as before.

use paceline_wire::{Duration, Instant, Rate};

use super::cubic::SEGMENT;

/// A smaller share is no more than a sender itself loses at a full buffer (draft-ietf-ccwg-bbr, BBR.LossThresh).
const SHARE_MIN: u64 = 50;
/// Number of bytes lost, or of bytes in all, after which the share of losses is judged.
const LOST_MIN: u64 = 8 * SEGMENT;
const SEEN_MAX: u64 = 400 * SEGMENT;
/// Our choice: a test lasts until this many bytes should have been lost at the earlier share. With eight packets, a
/// radio link of 1 % was taken for a buffer in the tests.
const EXPECTED: u64 = 16 * SEGMENT;
/// Our choice: a tenth may be lost by a policer without a queue, or by a buffer so short that the link's rate is
/// unknown. The radio seldom loses a tenth.
const SHARE_EMPTY: u64 = 10;
/// Our choice: number of round trips from a sender's first loss until it has left slow start. Any buffer drops half of
/// slow start's last round.
const SLOW_START_ENDS: u64 = 8;
/// The radio is the cause if a test loses at least a quarter of the earlier share.
const LOST_AGAIN: u64 = 4;
/// Our choice: an answer holds as long as BBR keeps its shortest round trip. The same answer again holds twice as long,
/// then four times.
const HOLDS: Duration = Duration::from_secs(10);
/// How long a first finding of a buffer holds: time to stop overflowing it.
const HOLDS_ONCE: Duration = Duration::from_secs(2);
/// Our choice: a buffer found once that held the full bound for this long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);
/// Our choice: a buffer found twice does not change soon, and each test makes it overflow again.
const HOLDS_BUFFER: Duration = Duration::from_secs(60);

/// The best rate of ten round trips counts, as in BBR (draft-ietf-ccwg-bbr, BBR.MaxBwFilterLen, in its cycles of
/// eight). The newest rate is only what the limit allows.
const SPAN: u32 = 10;

/// What became of a number of bytes.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Tally {
    delivered: u64,
    /// Lost while packets waited before the link.
    lost: u64,
    /// Lost while none waited.
    lost_empty: u64,
}

impl Tally {
    fn all(self) -> u64 {
        self.delivered + self.lost + self.lost_empty
    }

    /// True if so much was lost that a test must find the cause.
    fn is_odd(self, rate_known: bool) -> bool {
        let lost =
            if self.lost_empty * SHARE_EMPTY >= self.all() { self.lost + self.lost_empty } else { self.lost };
        lost * if rate_known { SHARE_MIN } else { SHARE_EMPTY } >= self.all()
    }

    /// Our choice: true if a tenth is lost, and twice the share before the last test, whose answer then holds no more.
    /// Without this, a buffer once taken for radio losses was overfilled for ten seconds, and a third of the packets
    /// was lost.
    fn is_worse_than(self, tested: Tally) -> bool {
        let lost = |tally: Tally| tally.lost + tally.lost_empty;
        lost(self) * SHARE_EMPTY >= self.all() && lost(self) * tested.all() >= 2 * lost(tested) * self.all()
    }
}

#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
enum Phase {
    #[default]
    Watch,
    /// Waits until the rate no longer grows and the path holds what is outstanding.
    Lower,
    /// Counts the fate of packets sent since.
    Listen { since: Instant, tally: Tally },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Cause {
    Radio,
    Buffer,
}

/// One report of a subscriber's clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossSample {
    pub(super) now: Instant,
    /// Departure time of the newest reported packet.
    pub(super) sent: Instant,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// The gateway's own sender declared the loss, as it often does at the end of slow start.
    pub(super) untimed: bool,
    /// Departure time of the first lost packet.
    pub(super) lost_sent: Instant,
    /// The bound was the limit.
    pub(super) limited: bool,
    /// Overflows or tests lower the bound.
    pub(super) lowered: bool,
    /// There is an estimate of the link's rate.
    pub(super) rate_known: bool,
    pub(super) outstanding: u64,
    /// Flows that share the link.
    pub(super) flows: u32,
    /// What the path holds without a queue.
    pub(super) path: u64,
    /// Round-trip time between the sender and the gateway.
    pub(super) server_rtt: Duration,
    /// Newest and shortest round trip.
    pub(super) rtt: Duration,
    pub(super) rtt_min: Duration,
}

/// Finds the cause of losses.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct LossTest {
    phase: Phase,
    /// Bytes since a share was last judged.
    tally: Tally,
    /// Time of the first loss that the gateway's own sender found.
    #[serde(default)]
    first_lost: Option<Instant>,
    /// Most bytes outstanding since then.
    outstanding_max: u64,
    /// The share before the test.
    before: Tally,
    /// The last cause found, when it was found, and how long it holds.
    found: Option<(Cause, Instant)>,
    holds: Duration,
    /// How long the bound was the limit, not lowered, without a loss.
    #[serde(default)]
    held: Duration,
    #[serde(default)]
    heard: Instant,
    /// How often in a row the same cause was found.
    #[serde(default)]
    times: u32,
    /// Start of the round; `None` before the first report.
    round_start: Option<Instant>,
    /// Departure time of the packet that arrived at its start.
    round_sent: Instant,
    round_delivered: u64,
    /// Rounds of this span, and the best rates of this span and the previous one.
    rounds: u32,
    best: [Rate; 2],
    /// The rate when it last grew by a quarter, and rounds since (draft-ietf-ccwg-bbr, Section 4.3.1.2).
    #[serde(default)]
    full_bw: Rate,
    #[serde(default)]
    full_bw_count: u32,
    /// Start of the sender's round, and the best rate since.
    #[serde(default)]
    sender_round: (Instant, Rate),
}

impl LossTest {
    /// Returns the best recent rate.
    pub(super) fn rate(&self) -> Rate {
        self.best[0].max(self.best[1])
    }

    /// True if the rate still grows as in slow start: by a quarter within the last three rounds.
    pub(super) fn grows(&self) -> bool {
        self.full_bw_count < 3
    }

    /// True if a test lets the outstanding bytes grow as in slow start. Our choice: only for a single flow, and only if
    /// its rate grew within two rounds. With four flows slow start lost half more before 15 KB, and with three rounds
    /// twice as much.
    pub(super) fn lets_grow(&self, flows: u32) -> bool {
        self.full_bw_count < 2 && flows < 2
    }

    /// True if a buffer was found twice in a row and the answer still holds. By chance a radio link sometimes looks
    /// like a buffer, above all if it loses in bursts.
    pub(super) fn is_buffer(&self, now: Instant) -> bool {
        let found = self
            .found
            .is_some_and(|(cause, at)| cause == Cause::Buffer && now.saturating_since(at) < self.holds);
        found && self.times >= 2
    }

    /// True during a test: no more may be outstanding than the path holds without a queue.
    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self.phase, Phase::Watch)
    }

    /// Handles a report. Returns the bytes that were outstanding when a buffer overflowed, if one did.
    pub(super) fn on_report(&mut self, sample: &LossSample) -> Option<u64> {
        self.measure(sample);
        let empty = sample.rtt <= sample.rtt_min + sample.rtt_min / 16;
        self.hold(sample);
        let (lost, lost_empty) = if empty { (0, sample.lost) } else { (sample.lost, 0) };
        let grows = self.lets_grow(sample.flows);
        match &mut self.phase {
            Phase::Watch => {
                self.tally.delivered += sample.delivered;
                self.tally.lost += lost;
                self.tally.lost_empty += lost_empty;
                if sample.untimed {
                    self.first_lost.get_or_insert(sample.now);
                }
                self.outstanding_max = self.outstanding_max.max(sample.outstanding);
                return self.watch(sample);
            }
            Phase::Lower => {
                if sample.outstanding <= sample.path && !grows {
                    // For two more round trips earlier losses are found, and the room that they free makes bursts.
                    let since = sample.now + sample.rtt_min * 2;
                    self.phase = Phase::Listen { since, tally: Tally::default() };
                }
            }
            Phase::Listen { since, tally } => {
                if sample.sent > *since {
                    tally.delivered += sample.delivered;
                    tally.lost += if sample.lost_sent > *since { sample.lost } else { 0 };
                    let tally = *tally;
                    return self.conclude(sample.now, tally);
                }
            }
        }
        None
    }

    /// Forgets a buffer that was not found again. A short buffer overflows whenever the full bound is used. If that
    /// goes on for long without a loss, the losses had another cause: a standstill loses everything in flight.
    fn hold(&mut self, sample: &LossSample) {
        let passed = sample.now.saturating_since(self.heard);
        self.heard = sample.now;
        self.held = if sample.lost > 0 || sample.lowered { Duration::ZERO } else { self.held };
        self.held += if sample.limited { passed } else { Duration::ZERO };
        let found_buffer = self.found.is_some_and(|(cause, _)| cause == Cause::Buffer);
        if self.held >= FORGOTTEN_AFTER && found_buffer && !self.is_buffer(sample.now) {
            (self.found, self.times) = (None, 0);
        }
    }

    /// Measures the delivery rate in rounds. A round ends when a packet arrives that was sent after its start.
    fn measure(&mut self, sample: &LossSample) {
        let start = *self.round_start.get_or_insert_with(|| {
            self.round_sent = sample.sent;
            sample.sent
        });
        self.round_delivered += sample.delivered;
        let elapsed = sample.now.saturating_since(start);
        if sample.sent >= start && elapsed >= sample.rtt_min {
            if self.rounds == SPAN {
                (self.rounds, self.best) = (0, [Rate::ZERO, self.best[0]]);
            }
            self.rounds += 1;
            // Clumped ACKs make no rate (draft-ietf-ccwg-bbr, Section 4.1.1).
            let elapsed = elapsed.max(sample.sent.saturating_since(self.round_sent));
            let rate = Rate::from_bytes_in(self.round_delivered, elapsed);
            self.best[0] = self.best[0].max(rate);
            self.note_growth(sample, rate);
            (self.round_start, self.round_sent, self.round_delivered) = (Some(sample.now), sample.sent, 0);
        }
    }

    /// Records the rate of a round of the link. Slow start grows once per round of the sender, which may be many of the
    /// link. Unlike in BBR, the start may come again, after a hand-over or a break.
    fn note_growth(&mut self, sample: &LossSample, rate: Rate) {
        let (since, best) = self.sender_round;
        let rate = best.max(rate);
        if sample.now.saturating_since(since) < sample.rtt_min + sample.server_rtt {
            self.sender_round.1 = rate;
            return;
        }
        self.sender_round = (sample.now, Rate::ZERO);
        if rate >= self.full_bw.mul_ratio(5, 4) {
            (self.full_bw, self.full_bw_count) = (rate, 0);
            return;
        }
        self.full_bw_count = self.full_bw_count.saturating_add(1);
        if !self.grows() {
            self.full_bw = self.rate();
        }
    }

    fn watch(&mut self, sample: &LossSample) -> Option<u64> {
        let LossSample { now, rtt_min, server_rtt, rate_known, .. } = *sample;
        let tally = self.tally;
        if tally.lost + tally.lost_empty < LOST_MIN && tally.all() < SEEN_MAX {
            return None;
        }
        self.tally = Tally::default();
        let starts = self
            .first_lost
            .is_some_and(|at| now.saturating_since(at) < (rtt_min + server_rtt) * SLOW_START_ENDS);
        if !tally.is_odd(rate_known) || (!rate_known && starts) {
            self.outstanding_max = 0;
            return None;
        }
        match self.found.filter(|(_, at)| now.saturating_since(*at) < self.holds) {
            Some((Cause::Buffer, _)) => return Some(core::mem::take(&mut self.outstanding_max)),
            Some((Cause::Radio, _)) if !tally.is_worse_than(self.before) => self.outstanding_max = 0,
            _ => (self.phase, self.before) = (Phase::Lower, tally),
        }
        None
    }

    /// Ends a test when [`EXPECTED`] bytes should have been lost at the earlier share. `tally` counts packets sent
    /// during the test.
    fn conclude(&mut self, now: Instant, tally: Tally) -> Option<u64> {
        let before = self.before.lost + self.before.lost_empty;
        if tally.all() * before < EXPECTED * self.before.all() {
            return None;
        }
        // On a varying link the path's average content already overflows a short buffer. A radio does not lose this
        // much.
        let much = tally.lost * SHARE_EMPTY >= tally.all();
        let as_before = tally.lost * LOST_AGAIN * self.before.all() >= before * tally.all();
        let radio = !much && as_before;
        let cause = if radio { Cause::Radio } else { Cause::Buffer };
        let same = self.found.is_some_and(|(found, _)| found == cause);
        self.times = if same { self.times + 1 } else { 1 };
        let first = match (cause, self.times) {
            (Cause::Radio, times) => (HOLDS, times),
            (Cause::Buffer, 1) => (HOLDS_ONCE, 1),
            (Cause::Buffer, times) => (HOLDS_BUFFER, times - 1),
        };
        self.holds = first.0 * (1 << (first.1 - 1).min(2));
        self.found = Some((cause, now));
        self.phase = Phase::Watch;
        self.tally = Tally::default();
        Some(core::mem::take(&mut self.outstanding_max)).filter(|_| !radio)
    }
}

#[cfg(test)]
mod tests;
