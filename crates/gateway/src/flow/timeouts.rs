//! What a flow does when its timers expire.

use paceline_wire::{Duration, Flags, Instant};

use super::{Context, Flow, Phase};
use crate::observe::Event;

impl Flow {
    /// When [`Flow::on_timeout`] wants to be called.
    pub(crate) fn deadline(&self, ctx_repairs: bool) -> Option<Instant> {
        let mut next = self.modulation.next_release();
        let mut consider = |at: Option<Instant>| next = [next, at].into_iter().flatten().min();
        consider(self.recovery.next_deadline());
        if self.life.phase() == Phase::Opening {
            return next;
        }
        if ctx_repairs && !self.leaves_repairs() {
            consider(self.retransmission_deadline());
        } else {
            consider(self.silence_deadline());
        }
        consider(self.window_probe_deadline());
        next
    }

    /// Does what is due.
    pub(crate) fn on_timeout(&mut self, ctx: &mut Context<'_>) {
        self.release_held(ctx);
        self.judge_due(ctx);
        if !self.repairs(ctx.config) {
            if self.silence_deadline().is_some_and(|at| at <= ctx.now) {
                self.timers.on_silence(self.flight.bytes());
            }
        } else if self.retransmission_deadline().is_some_and(|at| at <= ctx.now) {
            self.on_retransmission_timeout(ctx);
        }
        if self.window_probe_deadline().is_some_and(|at| at <= ctx.now) {
            self.send_window_probe(ctx);
        }
    }

    fn retransmission_deadline(&self) -> Option<Instant> {
        let una = self.board.una();
        let unanswered = una < self.board.sent() && self.buffer.at(una).is_some();
        // A lost head that has not left again waits for the scheduler, not for the timer.
        let head_waits = self.board.first_lost().is_some_and(|lost| lost.start == una);
        if !unanswered || (head_waits && (!self.client.is_closed() || self.recovery.is_asking())) {
            return None;
        }
        if self.client.is_closed() {
            return Some(self.timers.since() + self.window_probe_interval());
        }
        Some(self.timers.retransmission_deadline(&self.round_trips))
    }

    fn silence_deadline(&self) -> Option<Instant> {
        self.timers.silence_deadline(self.flight.bytes(), &self.round_trips)
    }

    /// When to probe the window: nothing is in flight, waiting data does not fit, and an update may have been lost. The
    /// gateway probes even if the server repairs: what the server repeats is kept here and does not leave.
    fn window_probe_deadline(&self) -> Option<Instant> {
        let next = self.buffer.from(self.board.sent())?;
        if self.board.una() < self.board.sent() || self.client.newest() >= self.path_mtu.segment_of(next) {
            return None;
        }
        Some(self.timers.since().max(self.client.acked_at()) + self.window_probe_interval())
    }

    fn window_probe_interval(&self) -> Duration {
        self.timers.window_probe_interval(self.smoothed_rtt(), self.round_trips.deviation())
    }

    /// Sends the head again, as a probe of a lost tail or after a timeout. Its answer tells what became of the rest
    /// (losses.rs).
    fn on_retransmission_timeout(&mut self, ctx: &mut Context<'_>) {
        if self.client.is_closed() {
            // The client is there, but takes nothing: no reason to give up (RFC 9293, Section 3.8.6.1).
            self.timers.on_window_probe(ctx.now);
            ctx.counters.window_probes += 1;
            return self.probe_head();
        }
        let Some(timeouts) = self.timers.on_expiry(ctx.now, self.round_trips.smoothed().is_some()) else {
            ctx.counters.tail_probes += 1;
            return self.probe_head();
        };
        ctx.counters.local_timeouts += 1;
        self.totals.timeouts += 1;
        ctx.observer.on_event(ctx.now, &self.key, &Event::Timeout);
        if timeouts > ctx.config.retransmission.give_up_after_timeouts {
            return self.give_up(ctx);
        }
        self.probe_head();
    }

    /// Sends an old sequence number without data. The client answers with its window (RFC 9293, Section 3.8.6.1).
    /// Otherwise a lost window update would stop the flow for ever.
    fn send_window_probe(&mut self, ctx: &mut Context<'_>) {
        let Some(chunk) = self.buffer.from(self.board.sent()) else { return };
        let mut packet = chunk.packet(chunk.start, chunk.end).slice_payload(0..0);
        let Some(mut tcp) = packet.tcp_mut() else { return };
        tcp.set_seq((self.board.una() - 1).into());
        tcp.set_flags(Flags::ACK);
        self.timers.on_window_probe(ctx.now);
        ctx.counters.window_probes += 1;
        ctx.pass_to_client(packet);
    }
}
