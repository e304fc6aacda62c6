//! Which data the radio link lost (Chapter 5).
//!
//! The text retransmits on the first duplicate ACK. Here a transmission is lost if a later one has arrived and this one
//! is not reported. For the first loss that is the same, and it also finds lost retransmissions. While the link shows
//! no reordering there is no tolerance. Afterwards the reordering window of RFC 8985, Section 6.2, applies.

use paceline_wire::{Duration, Instant};

use super::recovery::LeftLink;
use super::timers::Timers;
use super::{Context, Flow};
use crate::config::RetransmissionMode;
use crate::flight::{NewestArrival, Transmission};
use crate::observe::Event;

impl Flow {
    /// Takes all that left the link up to `arrived` off the log, and marks what is missing of it.
    pub(super) fn on_left_until(&mut self, ctx: &mut Context<'_>, arrived: NewestArrival) -> LeftLink {
        let mut left = LeftLink::default();
        while let Some(gone) = self.flight.pop_until(arrived) {
            left.bytes += gone.end - gone.start;
            left.sent_at = Some(gone.sent_at);
            self.on_left(ctx, gone);
        }
        left
    }

    /// Handles a duplicate ACK without news: one more segment has left the link.
    pub(super) fn on_left_one(&mut self, ctx: &mut Context<'_>) -> LeftLink {
        let too_young = |sent_at| ctx.now.saturating_since(sent_at) < self.shortest_rtt();
        if self.flight.oldest_sent_at().is_none_or(too_young) {
            return LeftLink::default();
        }
        if self.flight.oldest_retransmits(self.board.una()) && !self.recovery.on_surplus() {
            return LeftLink::default();
        }
        let Some(gone) = self.flight.pop_segment(self.segment()) else { return LeftLink::default() };
        let found = self.recovery.found;
        self.on_left(ctx, gone);
        if self.handshake.sack() {
            // A client with SACK names what arrives, so no loss is reported to the bound. Whoever guesses its numbers
            // makes it send duplicate ACKs, too (RFC 5961, Section 5.2).
            self.recovery.found = found;
        } else if gone.end <= self.client.right_edge() {
            // A segment beyond the client's window has left the link, too, but the client discards it.
            self.recovery.on_told(gone.end - gone.start);
        }
        LeftLink { bytes: gone.end - gone.start, sent_at: Some(gone.sent_at) }
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
        if !self.handshake.sack() && self.client.overshoot.is_discarded(ctx.now, gone.end) {
            // The client has discarded all data behind it, too. One repair a round trip (RFC 6582) would take a minute.
            self.board.mark_lost(gone.start.max(una)..self.board.sent());
        }
        self.suspect(ctx, gone);
    }

    /// Declares what is missing of a transmission lost, at once or after the reordering window.
    fn suspect(&mut self, ctx: &mut Context<'_>, gone: Transmission) {
        // RFC 8985, Section 6.2, Step 4, takes the shortest RTT. Without SACK a hole gives no RTT sample, so the
        // smoothed one keeps a queue that is gone. By it each of many holes took 2.1 s on a path of 117 ms: .005 of
        // 3.4 Mbit/s for 150 s.
        let rtt = if self.handshake.sack() { self.smoothed_rtt() } else { self.shortest_rtt() };
        if let Some(gone) = self.recovery.suspect(ctx.now, rtt, gone) {
            self.judge(ctx, gone);
        }
    }

    /// Declares suspects lost whose time is up.
    pub(super) fn judge_due(&mut self, ctx: &mut Context<'_>) {
        if self.recovery.answer_is_due(ctx.now) {
            self.lose_all(ctx.now);
        }
        while let Some(gone) = self.recovery.pop_due(ctx.now) {
            self.judge(ctx, gone);
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
        // If more is in flight than the client has room for, the client itself discards some of it while a hole is
        // open.
        let discards = self.board.sent() > self.client.right_edge();
        let (mut bytes, mut of_link) = (0, 0);
        for part in &parts {
            let lost = self.board.mark_lost(part.clone());
            bytes += lost;
            of_link += if discards { 0 } else { lost };
        }
        if of_link > 0 {
            self.recovery.note_found(of_link, gone.sent_at);
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

    /// Marks data beyond the client's window as lost, because the front of the stream is missing: Eq. (12). The client
    /// discards all of it that left before the repair. Returns the bytes marked.
    fn on_head_lost(&mut self, ctx: &mut Context<'_>, gone: &Transmission) -> u64 {
        let una = self.board.una();
        if self.recovery.hole.is_none() {
            self.open_hole(gone.sent_at);
        }
        self.recovery.only_reported = ctx.config.retransmission.mode != RetransmissionMode::Proactive;
        if self.recovery.only_reported {
            return 0;
        }
        // A segment across the edge is kept by some receivers and discarded by others: send it again.
        let edge = una + self.client.newest();
        let from = self.buffer.at(edge).map_or(edge, |chunk| {
            let segment = chunk.segment_len().max(1);
            chunk.start + (edge - chunk.start) / segment * segment
        });
        let mut bytes = self.board.mark_lost(from.max(una + 1)..self.board.sent());
        let copies = bytes.div_ceil(self.segment());
        ctx.counters.proactive_retransmissions += copies;
        self.watch.on_beyond_window(copies);
        let (window_max, rtt) = (self.client.largest(), self.shortest_rtt());
        let overshoots = self.client.overshoot.on_retransmissions(ctx.now, bytes, window_max, rtt);
        if overshoots && !self.handshake.sack() {
            // Data within the window has holes that no ACK reports. Each would take a round trip (RFC 6582).
            bytes += self.board.mark_lost(una + 1..self.board.sent());
        }
        bytes
    }

    /// Checks after an ACK advanced whether the next byte is missing, too. Without SACK a partial ACK says so (RFC
    /// 6582), unless a copy is in flight that left after the one `answered` now.
    pub(super) fn check_head(&mut self, ctx: &mut Context<'_>, was_in_hole: bool, answered: Option<Instant>) {
        let una = self.board.una();
        if self.recovery.on_advance(una) {
            self.client.on_hole();
        }
        if self.handshake.sack() || una >= self.board.sent() || !self.repairs(ctx.config) {
            return;
        }
        let copy = self.board.retransmission_at(una);
        let partial = self.recovery.is_partial(ctx.now, una, self.shortest_rtt())
            && copy.is_none_or(|copy| answered.is_some_and(|at| copy.sent_at < at));
        if partial || was_in_hole && !self.board.in_flight(una, &self.flight) {
            let order = self.flight.left_order().max(copy.map_or(0, |copy| copy.order));
            let end = self.head_end();
            self.suspect(ctx, Transmission { start: una, end, sent_at: ctx.now, order, first: false });
        }
    }

    /// Marks the head to be sent again, and leaves open what became of the rest.
    pub(super) fn probe_head(&mut self) {
        let end = self.head_end();
        self.recovery.ask(end);
        self.board.mark_lost(self.board.una()..end);
    }

    /// Handles a report of the client after a probe: `more` than the head has arrived. Without SACK that may be older.
    pub(super) fn on_probe_answer(&mut self, ctx: &Context<'_>, more: bool) {
        if self.handshake.sack() {
            let wait = (self.smoothed_rtt() / 4).max(Duration::from_millis(20));
            self.recovery.on_answer(more, ctx.now + wait);
        } else {
            self.recovery.on_answer_without_sack(self.board.sent());
        }
    }

    /// Returns where the first missing segment ends.
    fn head_end(&self) -> u64 {
        let una = self.board.una();
        self.buffer
            .at(una)
            .map_or(una + self.segment(), |chunk| self.path_mtu.piece_end(chunk, una, self.segment()))
    }

    /// Declares everything in flight lost: only the head has arrived.
    fn lose_all(&mut self, now: Instant) {
        let (una, sent) = (self.board.una(), self.board.sent());
        self.recovery.guess(now, una, sent, self.segment(), &mut self.flight);
        self.board.mark_lost(una..sent);
        if self.recovery.hole.is_none() {
            self.open_hole(self.client.acked_at());
        }
    }

    /// Forgets all repairs: the server repairs from here on.
    pub(super) fn forget_repairs(&mut self, now: Instant) {
        let (una, sent) = (self.board.una(), self.board.sent());
        self.recovery.forget(una, &mut self.flight);
        self.timers = Timers::default();
        self.timers.on_sent(now);
        self.board.remove_lost(una..sent);
    }

    fn open_hole(&mut self, sent_at: Instant) {
        self.recovery.open_hole(self.board.una(), self.board.sent(), sent_at);
        self.client.on_hole();
    }

    /// Handles data that is kept here and that the server sent again. The head leaves again, too, if its newest copy
    /// has been in flight for longer than usual, or if the server insists.
    pub(super) fn on_absorbed(&mut self, ctx: &mut Context<'_>, start: u64) {
        let una = self.board.una();
        if start > una || una >= self.board.sent() {
            return;
        }
        let usual = self.smoothed_rtt() + (self.round_trips.deviation() * 4).max(Duration::from_millis(10));
        let last = self.board.retransmission_at(una).map(|r| r.sent_at).or(self.flight.oldest_sent_at());
        let round_trip = self.shortest_rtt() + self.round_trips.of_server();
        if last.is_none_or(|sent_at| {
            ctx.now.saturating_since(sent_at) > usual
                || self.recovery.server_insists(ctx.now, una, sent_at, round_trip)
        }) {
            self.timers.allow_probe();
            self.probe_head();
        }
    }
}
