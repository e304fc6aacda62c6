//! Decisions of `auto` (crate::auto) about a flow while it goes on, by what the flow shows.

use paceline_wire::Instant;

use super::missing::MissingData;
use super::monitor::Path;
use super::trial::Progress;
use super::{Context, Flow, Phase};
use crate::auto::{Decision, FlowObservation, KnownPath, Reason};
use crate::config::{RetransmissionMode, VirtualWindowMode};
use crate::observe::Event;

impl Flow {
    /// Sets what `auto` decided about the flow, by what is known of its client.
    pub(crate) fn decided(mut self, reason: Option<Reason>, known: &KnownPath) -> Self {
        self.watch.decided(reason, known);
        self
    }

    /// True if the flow passes through and nothing of it waits. Our choice: beside other flows, a trial leaves only
    /// repairs to the server. With room for all its data the flow filled the link. The others, which are held, then
    /// waited: for 30 s at a drawn point of mixed traffic.
    pub(crate) fn needs_no_room(&self) -> bool {
        let for_path = self.path.late_acks || self.watch.ends_passing();
        self.watch.passes && (for_path || self.path.alone)
    }

    /// Starts or stops passing the flow through at an ACK, as its subscriber's path asks. It waits until the client
    /// lacks nothing. A hole that the server has not heard of must be repaired here: a client repeats no old SACK
    /// blocks. A hole that the server has heard of is the server's.
    pub(super) fn follow_path(&mut self, ctx: &mut Context<'_>) {
        self.try_passing(ctx);
        let trial = self.watch.trial.passes();
        let late = self.path.late_acks.then_some(Reason::LateAcks);
        let passes = late.or(trial.then_some(Reason::ServerRecovers));
        if self.watch.keeps_passing(passes)
            || passes.is_some() == self.watch.passes
            || !(trial || self.lacks_nothing())
        {
            return;
        }
        if let Some(decision) = self.watch.set_passes(passes) {
            self.forget_repairs(ctx.now);
            self.modulation.stop();
            ctx.counters.decide(decision.reason);
            ctx.observer.on_event(ctx.now, &self.key, &Event::Decided(decision));
        }
    }

    /// Lets the flow pass through for a trial where repair does not help. The profiles of the text have no such rule.
    fn try_passing(&mut self, ctx: &Context<'_>) {
        let is_ours = ctx.config.virtual_window.mode == VirtualWindowMode::Sized;
        if !self.handshake.sack() || !is_ours || ctx.config.retransmission.mode == RetransmissionMode::None {
            return;
        }
        let Some(rtt) = self.round_trips.smoothed() else { return };
        let missing = MissingData::of(&self.board, &self.buffer, &self.stream);
        self.watch.trial.on_ack(&Progress {
            now: ctx.now,
            una: self.board.una(),
            received: self.stream.received(),
            rtt,
            server_rtt: self.round_trips.of_server(),
            edge: self.shown.edge(),
            segment: self.segment(),
            waits: self.waiting() > 0,
            hides: !self.board.is_whole() && !missing.server_is_repairing(),
        });
    }

    /// True if nothing is missing or may be: the first copy of all unacknowledged data is in flight. If data has left
    /// the link and is only suspected to be lost, nobody would report it again.
    fn lacks_nothing(&self) -> bool {
        let una = self.board.una();
        self.board.is_whole() && (una == self.board.sent() || self.flight.first_at(una).is_some())
    }

    /// Returns what the flow showed since the last time, once a second and at its end.
    pub(crate) fn seen(&mut self, now: Instant) -> Option<FlowObservation> {
        let ends = self.life.phase() == Phase::Closed;
        if !self.watch.is_due(now, self.life.phase() == Phase::Opening, ends) {
            return None;
        }
        let path = Path {
            rtt: self.totals.rtt_min.into_iter().chain(self.path.rtt).min(),
            smoothed: self.round_trips.smoothed().unwrap_or_default(),
            server_rtt: self.round_trips.of_server(),
            rate: self.path.share.max(self.client.rate().rate().unwrap_or_default()),
            window: self.client.largest(),
        };
        Some(self.watch.seen(now, ends, &path, &self.totals))
    }

    /// Checks an ACK that advances to `ack`, perhaps beyond what has left for the client.
    pub(super) fn watch_claim(&mut self, ctx: &mut Context<'_>, ack: u64) {
        if self.life.gave_up() {
            return;
        }
        if let Some(decision) = self.watch.check_claimed_ack(self.board.una(), self.board.sent(), ack) {
            self.note_decision(ctx, decision);
            self.give_up(ctx);
        }
    }

    /// Checks at each ACK whether repairs from here were needless.
    pub(super) fn stop_needless_repairs(&mut self, ctx: &mut Context<'_>) {
        let is_repairing =
            self.board.lost_bytes() > 0 || self.recovery.hole.is_some() || self.recovery.is_asking();
        if let Some(decision) = self.watch.stop_needless_repairs(is_repairing, self.totals.retransmissions) {
            self.note_decision(ctx, decision);
        }
    }

    /// Reports a decision of `auto` about the flow.
    fn note_decision(&mut self, ctx: &mut Context<'_>, decision: Decision) {
        self.watch.reason = Some(decision.reason);
        ctx.counters.decide(decision.reason);
        ctx.observer.on_event(ctx.now, &self.key, &Event::Decided(decision));
    }
}
