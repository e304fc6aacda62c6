//! Whose losses are they: those of a buffer that overflows, or the radio's?
//!
//! A long queue answers that by itself (`backoff`). A short buffer overflows with hardly any queue, and then it takes a test: what may be
//! outstanding goes down to what the path holds without a queue. A buffer loses nothing any more, and who sends gives way to it
//! (RFC 2914, Section 6); a radio link loses as before, and the bound goes on as before.

use paceline_wire::{Duration, Instant, Rate};

use super::cubic::SEGMENT;

/// Losses below a fiftieth are no more than what a sender makes at a full buffer by itself (draft-ietf-ccwg-bbr, BBR.LossThresh).
const SHARE_MIN: u64 = 50;
/// So many lost packets, or so many packets in all, make a share.
const LOST_MIN: u64 = 8 * SEGMENT;
const SEEN_MAX: u64 = 400 * SEGMENT;
/// Our choice: a test lasts until so many should have been lost by that share. With eight, a radio link of 1 % was taken for a buffer in the
/// tests. Losses in bursts are fewer events: see [`AGAIN_ROUNDS`].
const EXPECTED: u64 = 16 * SEGMENT;
/// Our choice: a tenth may be lost by a policer with an empty queue, or by a buffer so short that nothing is known of the link's rate; by the
/// radio seldom.
const SHARE_EMPTY: u64 = 10;
/// Our choice: so many round trips after its first loss a sender has left slow start, of whose last round any buffer drops half.
const SLOW_START_ENDS: u64 = 8;
/// The radio loses again: a quarter of the share that was lost before.
const LOST_AGAIN: u64 = 4;
/// Our choice: as long as BBR keeps its shortest round trip, the answer holds; the same answer again holds for twice as long, and then for four times.
const HOLDS: Duration = Duration::from_secs(10);
/// A first buffer has time to be overflowed no more.
const HOLDS_ONCE: Duration = Duration::from_secs(2);
/// Our choice: long enough for a server to have its rate again after it first heard of losses. On a short path 16 of its round trips are enough.
const REVIEW_EVERY: Duration = Duration::from_secs(5);
const REVIEW_LEAST: Duration = Duration::from_millis(1_500);
/// Our choice: a second test lasts for so many round trips. Bursts on the radio made the share that was lost before, so the next one is rarely in
/// as short a test as that share asks for. With 12 they were taken for a buffer more often, with 24 BBR was held for too long.
const AGAIN_ROUNDS: u64 = 16;
/// Our choice: buffers stay as they are, and each test before one makes it overflow again.
const HOLDS_BUFFER: Duration = Duration::from_secs(60);

/// The best rate of ten round trips counts, as BBR's (draft-ietf-ccwg-bbr, BBR.MaxBwFilterLen, in its cycles of eight): the newest is that of
/// the limit itself.
const SPAN: u32 = 10;

/// What became of some bytes.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Tally {
    delivered: u64,
    /// While packets waited before the link.
    lost: u64,
    /// While none did.
    lost_empty: u64,
}

impl Tally {
    fn all(self) -> u64 {
        self.delivered + self.lost + self.lost_empty
    }

    /// So much was lost that it is to be found out by what.
    fn is_odd(self, rate_known: bool) -> bool {
        let lost =
            if self.lost_empty * SHARE_EMPTY >= self.all() { self.lost + self.lost_empty } else { self.lost };
        lost * if rate_known { SHARE_MIN } else { SHARE_EMPTY } >= self.all()
    }

    /// Our choice: a tenth is lost, and twice what was lost before a test, so its answer says nothing of this. Without this a buffer that was taken
    /// for a radio's losses once was overfilled for ten seconds, and a third of what was sent was lost.
    fn is_worse_than(self, tested: Tally) -> bool {
        let lost = |tally: Tally| tally.lost + tally.lost_empty;
        lost(self) * SHARE_EMPTY >= self.all() && lost(self) * tested.all() >= 2 * lost(tested) * self.all()
    }
}

#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
enum Phase {
    #[default]
    Watch,
    /// Waits until the rate grows no more, and no more is outstanding than the path holds.
    Lower,
    /// Counts what becomes of packets sent since.
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
    /// When what it reports had left.
    pub(super) sent: Instant,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// A sender of the gateway's own takes it for lost, as it does much at the end of its slow start.
    pub(super) untimed: bool,
    /// When the first of it had left.
    pub(super) lost_sent: Instant,
    /// The bound was the limit.
    pub(super) limited: bool,
    /// It is lower than without overflows and tests.
    pub(super) lowered: bool,
    /// There is an estimate of the link's rate.
    pub(super) rate_known: bool,
    pub(super) outstanding: u64,
    /// Flows that share the link.
    pub(super) flows: u32,
    /// They pass if the buffer is short: the gateway is not their sender.
    pub(super) may_pass: bool,
    /// What the path holds without a queue.
    pub(super) path: u64,
    /// Round-trip time between the sender and the gateway.
    pub(super) server_rtt: Duration,
    /// Newest and shortest round trip.
    pub(super) rtt: Duration,
    pub(super) rtt_min: Duration,
}

/// Finds out what loses packets.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct LossTest {
    phase: Phase,
    /// Since the last time that it made a share.
    tally: Tally,
    /// The first loss that a sender of the gateway's own found.
    #[serde(default)]
    first_lost: Option<Instant>,
    /// The most that was outstanding since.
    outstanding_max: u64,
    /// What was lost before the test, of so many bytes.
    before: Tally,
    /// What was found last, when, and for how long that holds.
    found: Option<(Cause, Instant)>,
    holds: Duration,
    /// What arrived since a time after that, how much of it found no queue, and the rate before.
    #[serde(default)]
    since: (Instant, u64),
    #[serde(default)]
    unqueued: u64,
    #[serde(default)]
    rate_before: Rate,
    /// For so long the bound allowed all that it ever does, and nothing was lost.
    #[serde(default)]
    held: Duration,
    #[serde(default)]
    heard: Instant,
    /// How often in a row.
    #[serde(default)]
    times: u32,
    /// None before the first report.
    round_start: Option<Instant>,
    /// When what arrived at its beginning had left.
    round_sent: Instant,
    round_delivered: u64,
    /// Rounds of this span, and the best rate in it and in the one before.
    rounds: u32,
    best: [Rate; 2],
    /// The rate when it last grew by a quarter, and rounds since then (draft-ietf-ccwg-bbr, Section 4.3.1.2).
    #[serde(default)]
    full_bw: Rate,
    #[serde(default)]
    full_bw_count: u32,
    /// The best rate since this round of the sender began.
    #[serde(default)]
    sender_round: (Instant, Rate),
}

impl LossTest {
    /// The best rate of late.
    pub(super) fn rate(&self) -> Rate {
        self.best[0].max(self.best[1])
    }

    /// The rate still grows as in slow start: in the last three rounds by a quarter.
    pub(super) fn grows(&self) -> bool {
        self.full_bw_count < 3
    }

    /// A test lets what is outstanding of so many flows grow as slow start does. Our choice: where the rate grew in the last round or the one before, and of a single
    /// flow: the slow start of four lost half as much again in front of 15 KB, and with a round more twice as much.
    pub(super) fn lets_grow(&self, flows: u32) -> bool {
        self.full_bw_count < 2 && flows < 2
    }

    /// A buffer was found twice in a row, not so long ago that it is to be found out anew. By chance a radio link, too, seems to be one now
    /// and then, above all if it loses in bursts.
    pub(super) fn is_buffer(&self, now: Instant) -> bool {
        let found = self
            .found
            .is_some_and(|(cause, at)| cause == Cause::Buffer && now.saturating_since(at) < self.holds);
        found && self.times >= 2
    }

    /// A test lasts; no more may be outstanding than the path holds without a queue.
    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self.phase, Phase::Watch)
    }

    /// What was outstanding when a buffer overflowed, if one has.
    pub(super) fn on_report(&mut self, sample: &LossSample) -> Option<u64> {
        self.measure(sample);
        let empty = sample.rtt <= sample.rtt_min + sample.rtt_min / 16;
        self.review(sample, empty);
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
                    // For two round trips more, losses of before are found, and their room makes bursts.
                    let since = sample.now + sample.rtt_min * 2;
                    self.phase = Phase::Listen { since, tally: Tally::default() };
                }
            }
            Phase::Listen { since, tally } => {
                if sample.sent > *since {
                    tally.delivered += sample.delivered;
                    tally.lost += if sample.lost_sent > *since { sample.lost } else { 0 };
                    let (since, tally) = (*since, *tally);
                    return self.conclude(sample, since, tally);
                }
            }
        }
        None
    }

    /// Flows that pass through before a short buffer have what they had. If they have much less, and leave the link idle, the radio lost their
    /// packets after all: where it does, a server that hears of it gives up most of its rate. A link that fades has a queue.
    fn review(&mut self, sample: &LossSample, empty: bool) {
        let (from, delivered) = self.since;
        self.since.1 += sample.delivered;
        self.unqueued += if empty { sample.delivered } else { 0 };
        if !self.is_buffer(sample.now) {
            (self.since, self.unqueued) = ((sample.now, 0), 0);
        } else if sample.now.saturating_since(from)
            >= ((sample.rtt_min + sample.server_rtt) * AGAIN_ROUNDS).clamp(REVIEW_LEAST, REVIEW_EVERY)
        {
            let rate = Rate::from_bytes_in(delivered, sample.now.saturating_since(from));
            if rate < self.rate_before.mul_ratio(3, 5) && 2 * self.unqueued > delivered {
                (self.found, self.times, self.holds) = (Some((Cause::Radio, sample.now)), 1, HOLDS_BUFFER);
            }
            (self.since, self.unqueued) = ((sample.now, 0), 0);
        }
    }

    /// A short buffer overflows whenever the bound allows all that it ever does. Where that holds for long without a loss, what was lost before
    /// was something else's: a standstill loses all that is on its way.
    fn hold(&mut self, sample: &LossSample) {
        let passed = sample.now.saturating_since(self.heard);
        self.heard = sample.now;
        self.held = if sample.lost > 0 || sample.lowered { Duration::ZERO } else { self.held };
        self.held += if sample.limited { passed } else { Duration::ZERO };
        let found_buffer = self.found.is_some_and(|(cause, _)| cause == Cause::Buffer);
        if self.held >= REVIEW_EVERY && found_buffer && !self.is_buffer(sample.now) {
            (self.found, self.times) = (None, 0);
        }
    }

    /// The rate at which data arrived, in rounds: a round ends when what left after its beginning arrives.
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
            // ACKs that come in clumps make no rate (draft-ietf-ccwg-bbr, Section 4.1.1).
            let elapsed = elapsed.max(sample.sent.saturating_since(self.round_sent));
            let rate = Rate::from_bytes_in(self.round_delivered, elapsed);
            self.best[0] = self.best[0].max(rate);
            self.note_growth(sample, rate);
            (self.round_start, self.round_sent, self.round_delivered) = (Some(sample.now), sample.sent, 0);
        }
    }

    /// A round of the link had this rate. Slow start grows once in a round of the sender, which may be many of the link. Unlike BBR's, the start may
    /// come again, after a hand-over or a break.
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

    /// `tally` is what became of what left during the test, since a time. As many packets as should have lost [`EXPECTED`] by the share of before
    /// tell. A single flow of a server that seems to have a buffer for the second time is to pass: it is asked for longer, and what is lost then is the radio's.
    fn conclude(&mut self, sample: &LossSample, since: Instant, tally: Tally) -> Option<u64> {
        let now = sample.now;
        let again = matches!(self.found, Some((Cause::Buffer, _))) && sample.may_pass && sample.flows < 2;
        if again && now.saturating_since(since) < sample.rtt_min * AGAIN_ROUNDS {
            return None;
        }
        let before = self.before.lost + self.before.lost_empty;
        // A link that varies overflows a short buffer with what it holds on average, too: what loses so much is no radio.
        let much = tally.lost * SHARE_EMPTY >= tally.all();
        let as_before = tally.lost * LOST_AGAIN * self.before.all() >= before * tally.all();
        let radio = !much && (as_before || again && tally.lost > 0);
        let enough = tally.all() * before >= EXPECTED * self.before.all();
        if !enough {
            return None;
        }
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
        self.rate_before = self.rate();
        self.phase = Phase::Watch;
        self.tally = Tally::default();
        Some(core::mem::take(&mut self.outstanding_max)).filter(|_| !radio)
    }
}

#[cfg(test)]
mod tests;
