//! Which data the radio link lost (Chapter 5).
//!
//! The text retransmits on the first duplicate ACK. Here a transmission is lost when a later one has arrived and this
//! one is not reported, which is the same for the first loss and also finds lost retransmissions. While the link shows
//! no reordering there is no tolerance; afterwards the reordering window of RFC 8985, Section 6.2, applies.

use core::ops::Range;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use paceline_wire::{Duration, Instant};

use super::early_answers::EarlyAnswers;
use super::timers::Timers;
use super::{Context, Flow};
use crate::config::RetransmissionMode;
use crate::flight::{Arrived, Flight, Transmission};
use crate::observe::Event;

/// Suspected ranges that may wait for the reordering window; beyond it the oldest count as lost.
const SUSPECTS_MAX: usize = 4096;
/// DupThresh of RFC 6675.
const SURPLUS_MIN: u32 = 3;

/// What an ACK says to have left the link.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Left {
    pub(super) bytes: u64,
    /// Departure of the last of it.
    pub(super) sent_at: Option<Instant>,
}

/// What was found lost.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Found {
    pub(super) bytes: u64,
    pub(super) sent_at: Option<Instant>,
}

/// A range that should have been reported.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Suspect {
    gone: Transmission,
    deadline: Instant,
}

/// The hole at the front of the stream: the cumulative ACK stands still until it is filled.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Hole {
    pub(super) position: u64,
    /// First departure of the missing packet.
    pub(super) sent_at: Instant,
}

/// The head was sent again because the client was silent. Was it loss, or only delay? As in F-RTO (RFC 5682): if the
/// answer covers more than the head, the first copies are arriving and nothing else is lost.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Probe {
    /// Where the head ends.
    end: u64,
    /// The answer covered just the head: the rest is lost unless more is reported by this time.
    decide_at: Option<Instant>,
}

/// Everything in flight was given up by the answer to a probe, which was only a guess: behind an outage the first copies may follow
/// slowly. As in RFC 5682, Section 2.1, step 3, what arrives without having been sent again proves it wrong.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Guess {
    /// When.
    at: Instant,
    /// What was in flight.
    flight: Flight,
    /// Where that ended.
    end: u64,
    /// Bytes of it that may leave again before the client is heard.
    #[cfg_attr(feature = "serde", serde(rename = "may_repeat"))]
    may_retransmit: u64,
}

/// Our choice: in RFC 5681, Section 3.1, one segment leaves after a timeout; here the client has been heard, so it is as at the
/// beginning (RFC 6928).
const RETRANSMIT_FIRST: u64 = 10;

/// Loss detection of one flow.
#[derive(Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Recovery {
    pub(super) hole: Option<Hole>,
    suspects: VecDeque<Suspect>,
    probe: Option<Probe>,
    guess: Option<Box<Guess>>,
    /// Without SACK: what had left when the newest episode of losses began (`recover` of RFC 6582), and when a repair left last.
    #[cfg_attr(feature = "serde", serde(default))]
    recover: u64,
    #[cfg_attr(feature = "serde", serde(default))]
    repaired_at: Instant,
    #[cfg_attr(feature = "serde", serde(default))]
    pub(super) early_answers: EarlyAnswers,
    /// Duplicate ACKs beyond the number of packets that left before the repair of the head.
    surplus: u32,
    /// Quarters of the RTT that the reordering window has; none while no reordering was seen.
    reordering_quarters: u64,
    /// Holes still to be closed until the window is taken back (RACK.reo_wnd_persist).
    reordering_persist: u32,
    /// What was found lost since the last report, and when the first of it had left.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(super) found: Found,
    /// Scratch space, kept so that an ACK allocates nothing.
    parts: Vec<Range<u64>>,
    pub(super) newly: Vec<Range<u64>>,
}

impl Recovery {
    /// When the next suspect or the answer to a probe is to be judged.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let decision = self.probe.and_then(|probe| probe.decide_at);
        [self.suspects.front().map(|s| s.deadline), decision].into_iter().flatten().min()
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> u64 {
        let suspects = (self.suspects.len() * size_of::<Suspect>()) as u64;
        suspects + self.guess.as_ref().map_or(0, |guess| guess.flight.memory())
    }

    /// The client was silent and is being asked.
    pub(super) fn is_asking(&self) -> bool {
        self.probe.is_some()
    }

    /// Lost bytes that may leave again now.
    pub(super) fn may_retransmit(&self) -> u64 {
        self.guess.as_ref().map_or(u64::MAX, |guess| guess.may_retransmit)
    }

    /// Lost data left again.
    pub(super) fn on_retransmitted(&mut self, now: Instant, bytes: u64) {
        self.repaired_at = now;
        if let Some(guess) = &mut self.guess {
            guess.may_retransmit = guess.may_retransmit.saturating_sub(bytes);
        }
    }

    /// Everything below `una` has arrived.
    fn review_end(&mut self, una: u64) {
        self.guess.take_if(|guess| guess.end <= una);
    }

    /// RFC 8985, Section 6.2, Step 4: a quarter of the RTT at first, one more for each retransmission that proves to
    /// have been needless, up to the RTT.
    fn on_reordering(&mut self) {
        self.reordering_quarters = (self.reordering_quarters + 1).min(4);
        self.reordering_persist = 16;
    }

    /// A hole is closed. The same step of RFC 8985 takes the window back after 16 recoveries without a needless
    /// retransmission; here to none, since radio links reorder at hand-overs, and not before or after.
    fn on_hole_closed(&mut self) {
        self.hole = None;
        self.surplus = 0;
        self.reordering_persist = self.reordering_persist.saturating_sub(1);
        if self.reordering_persist == 0 {
            self.reordering_quarters = 0;
        }
    }
}

impl Flow {
    /// All that departed before `arrived` has left the link, and what is missing of it is marked.
    pub(super) fn on_left_until(&mut self, ctx: &mut Context<'_>, arrived: Arrived) -> Left {
        let mut left = Left::default();
        while let Some(gone) = self.flight.pop_until(arrived) {
            left.bytes += gone.end - gone.start;
            left.sent_at = Some(gone.sent_at);
            self.on_left(ctx, gone);
        }
        left
    }

    /// A duplicate ACK without news: one more segment has left the link.
    pub(super) fn on_left_one(&mut self, ctx: &mut Context<'_>) -> Left {
        let too_young = |sent_at| ctx.now.saturating_since(sent_at) < self.shortest_rtt();
        if self.flight.oldest_sent_at().is_none_or(too_young) {
            return Left::default();
        }
        if self.flight.oldest_retransmits(self.board.una()) {
            // By this count the head's repair is lost, too; a count may be off by what the client acknowledged twice.
            self.recovery.surplus += 1;
            if self.recovery.surplus < SURPLUS_MIN {
                return Left::default();
            }
        }
        let Some(gone) = self.flight.pop_segment(self.segment()) else { return Left::default() };
        let found = self.recovery.found;
        self.on_left(ctx, gone);
        if self.handshake.sack() {
            // A client with SACK names what arrives. Whoever guesses its numbers makes it send duplicates, too (RFC 5961, Section 5.2).
            self.recovery.found = found;
        }
        Left { bytes: gone.end - gone.start, sent_at: Some(gone.sent_at) }
    }

    fn on_left(&mut self, ctx: &mut Context<'_>, gone: Transmission) {
        let una = self.board.una();
        if gone.end <= una || !self.repairs(ctx.config) {
            return;
        }
        // Without SACK only the first missing segment is known.
        let carried_head = gone.start <= una && una < gone.end;
        if !self.handshake.sack() && !carried_head {
            return;
        }
        if !self.handshake.sack()
            && self.client.overshoot.had_no_room(gone.end)
            && self.client.overshoot.on_discard(ctx.now)
        {
            // So was all that lies behind it. One repair a round trip (RFC 6582) would take a minute for it.
            self.board.mark_lost(gone.start.max(una)..self.board.sent());
        }
        self.suspect(ctx, gone);
    }

    fn suspect(&mut self, ctx: &mut Context<'_>, gone: Transmission) {
        if self.recovery.reordering_quarters == 0 {
            return self.judge(ctx, gone);
        }
        let tolerance = self.smoothed_rtt().mul_ratio(self.recovery.reordering_quarters, 4);
        self.recovery.suspects.push_back(Suspect { gone, deadline: ctx.now + tolerance });
        if self.recovery.suspects.len() > SUSPECTS_MAX
            && let Some(oldest) = self.recovery.suspects.pop_front()
        {
            self.judge(ctx, oldest.gone);
        }
    }

    /// Suspects whose time is up are lost.
    pub(super) fn judge_due(&mut self, ctx: &mut Context<'_>) {
        let decision = self.recovery.probe.and_then(|probe| probe.decide_at);
        if decision.is_some_and(|at| at <= ctx.now) {
            self.lose_all(ctx.now);
        }
        while let Some(suspect) = self.recovery.suspects.front()
            && suspect.deadline <= ctx.now
        {
            if let Some(suspect) = self.recovery.suspects.pop_front() {
                self.judge(ctx, suspect.gone);
            }
        }
    }

    /// Marks what is still missing of a transmission as lost.
    fn judge(&mut self, ctx: &mut Context<'_>, gone: Transmission) {
        let mut parts = core::mem::take(&mut self.recovery.parts);
        self.board.missing(&gone, &mut parts);
        let end = self.watch.trial.repaired_to();
        parts.retain_mut(|part| {
            part.end = part.end.min(end);
            part.start < part.end
        });
        if !self.handshake.sack() {
            let head_end = self.head_end();
            parts.truncate(1);
            parts.iter_mut().for_each(|part| part.end = part.end.min(head_end));
        }
        let una = self.board.una();
        // A client for which more is on its way than it has room for discards some of it itself, while a hole is open.
        let discards = self.board.sent() > self.client.right_edge();
        let (mut bytes, mut of_link) = (0, 0);
        for part in &parts {
            let lost = self.board.mark_lost(part.clone());
            bytes += lost;
            of_link += if discards { 0 } else { lost };
        }
        if of_link > 0 {
            let found = &mut self.recovery.found;
            found.bytes += of_link;
            found.sent_at = found.sent_at.into_iter().chain([gone.sent_at]).min();
        }
        if parts.iter().any(|part| part.start == una) {
            bytes += self.on_head_lost(ctx, &gone);
        }
        self.recovery.parts = parts;
        if bytes > 0 {
            self.totals.lost_bytes += bytes;
            ctx.observer.on_event(ctx.now, &self.key, &Event::Lost { bytes });
        }
    }

    /// The front of the stream is missing, so whatever lies beyond the client's window has been, or will be,
    /// discarded, if it left before the repair: Eq. (12). Returns the bytes found lost by that.
    fn on_head_lost(&mut self, ctx: &mut Context<'_>, gone: &Transmission) -> u64 {
        let una = self.board.una();
        if self.recovery.hole.is_none() {
            self.open_hole(gone.sent_at);
        }
        if ctx.config.retransmission.mode != RetransmissionMode::Proactive {
            return 0;
        }
        // A segment across the edge is kept by some receivers and discarded by others: send it again.
        let edge = una + self.client.newest();
        let from = self.buffer.at(edge).map_or(edge, |chunk| {
            let segment = chunk.segment_len().max(1);
            chunk.start + (edge - chunk.start) / segment * segment
        });
        let mut bytes = self.board.mark_lost(from.max(una + 1)..self.board.sent());
        ctx.counters.proactive_retransmissions += bytes.div_ceil(self.segment());
        if !self.handshake.sack() && self.client.overshoot.on_retransmissions(ctx.now, bytes) {
            // What lies within the window has holes that nothing tells of, each of which would take a round trip (RFC 6582).
            bytes += self.board.mark_lost(una + 1..self.board.sent());
        }
        bytes
    }

    /// After an ACK advanced: is the next byte missing, too? Without SACK, a partial ACK tells (RFC 6582).
    pub(super) fn check_head(&mut self, ctx: &mut Context<'_>, was_in_hole: bool) {
        let una = self.board.una();
        self.recovery.review_end(una);
        if self.recovery.hole.is_some_and(|hole| una > hole.position) {
            self.recovery.on_hole_closed();
            self.client.on_hole();
        }
        if self.handshake.sack() || una >= self.board.sent() || !self.repairs(ctx.config) {
            return;
        }
        // The first copies of what lies before `recover` have arrived or are lost. An ACK that comes too soon is not for the repair (RFC 8985,
        // Section 6.2, Step 2), but for a first copy that was late: there one repair in a round trip is all that may be needless.
        let answers = ctx.now.saturating_since(self.recovery.repaired_at) >= self.shortest_rtt();
        let partial = una < self.recovery.recover && answers && self.board.retransmission_at(una).is_none();
        if partial || was_in_hole && !self.board.in_flight(una, &self.flight) {
            let order = self.flight.left_order();
            let end = self.head_end();
            self.suspect(ctx, Transmission { start: una, end, sent_at: ctx.now, order, first: false });
        }
    }

    /// The client has bytes that were sent again less than an RTT ago: it got the first copy, late. (RFC 8985 learns
    /// this from D-SACKs, one round trip later. They do not tell a copy sent for the order of arrivals from one sent for
    /// Eq. (12) or as a probe, which may be needless without any reordering.)
    pub(super) fn check_needless(&mut self, now: Instant, newly: &Range<u64>) {
        if !self.board.has_retransmissions() || self.recovery.is_asking() {
            return;
        }
        let Some(retransmission) = self.board.retransmission_at(newly.start) else { return };
        // A copy that Eq. (12) had given up was kept by the client after all.
        let expected = retransmission.is_behind_older(&self.flight);
        if !expected && now.saturating_since(retransmission.sent_at) < self.shortest_rtt() {
            self.recovery.on_reordering();
        }
    }

    /// Sends the head again, and leaves open what became of the rest.
    pub(super) fn probe_head(&mut self) {
        let end = self.head_end();
        self.recovery.probe = Some(Probe { end, decide_at: None });
        self.board.mark_lost(self.board.una()..end);
    }

    /// Where the cumulative ACK will stand if a probe's head arrives and nothing else.
    pub(super) fn expected_answer(&self) -> Option<u64> {
        let end = self.recovery.probe?.end;
        Some(self.board.sacked_until(end).unwrap_or(end))
    }

    /// The client reported after a probe: `more` than the head has arrived. Without SACK that may be what had arrived before.
    pub(super) fn on_probe_answer(&mut self, ctx: &Context<'_>, more: bool) {
        if !self.handshake.sack() && self.recovery.probe.take().is_some() {
            self.recovery.recover = self.board.sent();
            return;
        }
        // Packets that were only delayed follow each other closely.
        let wait = (self.smoothed_rtt() / 4).max(Duration::from_millis(20));
        let Some(probe) = &mut self.recovery.probe else { return };
        if more {
            self.recovery.probe = None;
        } else if probe.decide_at.is_none() {
            probe.decide_at = Some(ctx.now + wait);
        }
    }

    /// Where the first missing segment ends.
    fn head_end(&self) -> u64 {
        let una = self.board.una();
        self.buffer
            .at(una)
            .map_or(una + self.segment(), |chunk| self.path_mtu.piece_end(chunk, una, self.segment()))
    }

    /// Only the head had arrived: everything in flight is lost.
    fn lose_all(&mut self, now: Instant) {
        self.recovery.suspects.clear();
        self.recovery.probe = None;
        let (una, sent) = (self.board.una(), self.board.sent());
        // What an earlier guess gave up, and nothing has shown to be lost or not, still belongs to it.
        let (at, may_retransmit) = match self.recovery.guess.take() {
            Some(earlier) => {
                self.flight.put_back(earlier.flight, una);
                (earlier.at, earlier.may_retransmit)
            }
            None => (now, RETRANSMIT_FIRST * self.segment()),
        };
        let flight = self.flight.take();
        self.recovery.guess = Some(Box::new(Guess { at, flight, end: sent, may_retransmit }));
        self.board.mark_lost(una..sent);
        if self.recovery.hole.is_none() {
            self.open_hole(self.client.acked_at());
        }
    }

    /// The client reports `arrived`: of a copy that left after the guess, or of a first copy, which proves it wrong?
    pub(super) fn review_guess(&mut self, now: Instant, arrived: &Range<u64>) {
        let soon = self.shortest_rtt();
        let Some(guess) = self.recovery.guess.as_mut().filter(|guess| arrived.start < guess.end) else {
            return;
        };
        let retransmission =
            self.board.retransmission_at(arrived.start).filter(|copy| copy.sent_at >= guess.at);
        let early_answers = &mut self.recovery.early_answers;
        if retransmission.is_some_and(|copy| early_answers.is_answer(now, copy.sent_at, soon)) {
            // Slow start (RFC 5681, Section 3.1).
            guess.may_retransmit += 2 * (arrived.end - arrived.start);
        } else if let Some(guess) = self.recovery.guess.take() {
            self.flight.put_back(guess.flight, self.board.una());
            self.board.remove_lost(self.board.una()..guess.end);
            self.board.put_behind(&self.flight, guess.at);
        }
    }

    /// Somebody else repairs from here on.
    pub(super) fn forget_repairs(&mut self, now: Instant) {
        let (una, sent) = (self.board.una(), self.board.sent());
        if let Some(guess) = self.recovery.guess.take() {
            self.flight.put_back(guess.flight, una);
        }
        self.recovery = Recovery::default();
        self.timers = Timers::default();
        self.timers.on_sent(now);
        self.board.remove_lost(una..sent);
    }

    fn open_hole(&mut self, sent_at: Instant) {
        self.recovery.hole = Some(Hole { position: self.board.una(), sent_at });
        if self.board.una() >= self.recovery.recover {
            self.recovery.recover = self.board.sent();
        }
        self.client.on_hole();
    }

    /// The server sent again what is kept here. If that has been on its way for longer than it takes, the copy here
    /// is due, too.
    pub(super) fn on_absorbed(&mut self, ctx: &mut Context<'_>, start: u64) {
        let una = self.board.una();
        if start > una || una >= self.board.sent() {
            return;
        }
        let usual = self.smoothed_rtt() + (self.round_trips.deviation() * 4).max(Duration::from_millis(10));
        let last = self.board.retransmission_at(una).map(|r| r.sent_at).or(self.flight.oldest_sent_at());
        if last.is_none_or(|sent_at| ctx.now.saturating_since(sent_at) > usual) {
            self.timers.allow_probe();
            self.probe_head();
        }
    }
}
