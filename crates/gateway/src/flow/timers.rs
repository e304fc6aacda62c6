//! The gateway's own timers: probe of a lost tail, retransmission timeout, probe of a closed window; and, where the server repairs, how
//! long what is in flight counts.

use paceline_wire::{Duration, Flags, Instant};

use super::{Context, Flow, Phase};
use crate::observe::Event;

/// Before the first RTT sample (RFC 6298, Section 2.1).
const INITIAL: Duration = Duration::from_secs(1);
/// The delayed ACK of a Linux client takes 40 ms at least: a last segment is not late before that.
const DELAYED_ACK: Duration = Duration::from_millis(50);
/// Our choice: the floor of the timeout beyond the RTT. Smaller than a server's 200 ms, so that the gateway is first;
/// larger than what a radio scheduler holds back (some tens of ms).
const VARIATION_MIN: Duration = Duration::from_millis(100);
/// RFC 6298, Section 2.4: no timeout is shorter. Where the gateway repairs, [`VARIATION_MIN`] is enough; where it does not, nothing leaves
/// by the timer, and there is no hurry.
const TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// RFC 9293, Section 3.8.6.1 leaves the interval of window probes open; RFC 6298 bounds the backoff at 60 s or more.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// One flow's retransmission timer.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Timers {
    /// Last departure, or report of the client: the timer runs from here.
    since: Instant,
    /// The tail probe of this flight has left.
    probed: bool,
    /// Timeouts in a row.
    timeouts: u32,
    /// How often the interval has doubled. It is taken back with the next RTT that is measured, not with the next ACK (RFC 6298, Section 5;
    /// Karn and Partridge 1987, Section 4): where a path has become longer than the timer, each segment is retransmitted before it is acknowledged, and
    /// no ACK would ever tell of the RTT.
    #[cfg_attr(feature = "serde", serde(default))]
    backoff: u32,
    /// After a timeout: only the first segment is sent until the client is heard.
    probing: bool,
    /// Probes of a closed window in a row.
    window_probes: u32,
    /// Bytes in flight that were not answered in time, where the server repairs: they do not count until the client is heard.
    #[cfg_attr(feature = "serde", serde(default))]
    unanswered: u64,
}

impl Timers {
    /// Something left for the client. The timer runs from the last departure (RFC 6298, 5.1, restarts only if it is
    /// not running; a tail probe, RFC 8985, counts from the last departure).
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.since = now;
    }

    /// The cumulative ACK advanced.
    pub(super) fn on_progress(&mut self, now: Instant) {
        *self = Timers { since: now, backoff: self.backoff, ..Timers::default() };
    }

    /// The client reported an arrival.
    pub(super) fn on_evidence(&mut self, now: Instant) {
        self.since = now;
        self.probing = false;
        self.probed = false;
        self.unanswered = 0;
    }

    /// An RTT was measured.
    pub(super) fn on_rtt(&mut self) {
        self.backoff = 0;
    }

    /// One packet at a time.
    pub(super) fn is_probing(&self) -> bool {
        self.probing
    }

    /// The client has not said for a timeout that anything arrived.
    pub(super) fn is_silent(&self, window: u64) -> bool {
        self.probing || (window == 0 && self.window_probes > 0)
    }

    /// What counts of so many bytes in flight.
    pub(super) fn counted(&self, in_flight: u64) -> u64 {
        in_flight.saturating_sub(self.unanswered)
    }

    /// The next retransmission is due whatever the backoff says.
    pub(super) fn allow_probe(&mut self) {
        self.probed = false;
    }
}

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
                self.timers.unanswered = self.flight.bytes();
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
            return Some(self.timers.since + self.window_probe_interval());
        }
        let Some(rtt) = self.round_trips.smoothed() else {
            return Some(self.timers.since + backed_off(INITIAL, self.timers.backoff));
        };
        let deviation = self.round_trips.deviation() * 4;
        if !self.timers.probed && self.timers.backoff == 0 {
            return Some(self.timers.since + rtt + deviation.max(DELAYED_ACK));
        }
        Some(self.timers.since + backed_off(rtt + deviation.max(VARIATION_MIN), self.timers.backoff))
    }

    /// When what is in flight no longer counts, where the server repairs: the timeout of RFC 6298, Section 2.
    fn silence_deadline(&self) -> Option<Instant> {
        if self.timers.counted(self.flight.bytes()) == 0 {
            return None;
        }
        let timeout =
            self.round_trips.smoothed().map_or(INITIAL, |rtt| rtt + self.round_trips.deviation() * 4);
        Some(self.timers.since + timeout.max(TIMEOUT_MIN))
    }

    /// The head is sent again, whether as a probe of a lost tail or after a timeout; its answer tells what became of
    /// the rest (recovery.rs).
    fn on_retransmission_timeout(&mut self, ctx: &mut Context<'_>) {
        self.timers.since = ctx.now;
        if self.client.is_closed() {
            // The client is there, but takes nothing: no reason to give up (RFC 9293, Section 3.8.6.1).
            self.timers.window_probes += 1;
            ctx.counters.window_probes += 1;
            return self.probe_head();
        }
        if !self.timers.probed && self.timers.backoff == 0 && self.round_trips.smoothed().is_some() {
            self.timers.probed = true;
            ctx.counters.tail_probes += 1;
            return self.probe_head();
        }
        self.timers.timeouts += 1;
        self.timers.backoff += 1;
        ctx.counters.local_timeouts += 1;
        self.totals.timeouts += 1;
        ctx.observer.on_event(ctx.now, &self.key, &Event::Timeout);
        if self.timers.timeouts > ctx.config.retransmission.give_up_after_timeouts {
            return self.give_up(ctx);
        }
        self.timers.probing = true;
        self.probe_head();
    }

    /// Nothing is on its way, and what waits does not fit into the window: an update of it may have been lost. Whoever repairs, the gateway
    /// has to ask: what the server sends again begins with what is kept here, and does not leave.
    fn window_probe_deadline(&self) -> Option<Instant> {
        let next = self.buffer.from(self.board.sent())?;
        if self.board.una() < self.board.sent() || self.client.newest() >= self.path_mtu.segment_of(next) {
            return None;
        }
        Some(self.timers.since.max(self.client.acked_at()) + self.window_probe_interval())
    }

    fn window_probe_interval(&self) -> Duration {
        let interval = self.smoothed_rtt() + (self.round_trips.deviation() * 4).max(VARIATION_MIN * 2);
        backed_off(interval, self.timers.window_probes)
    }

    /// An old sequence number and no data: the client answers with its window (RFC 9293, Section 3.8.6.1), which a
    /// lost window update would otherwise have kept from us for ever.
    fn send_window_probe(&mut self, ctx: &mut Context<'_>) {
        let Some(chunk) = self.buffer.from(self.board.sent()) else { return };
        let mut packet = chunk.packet(chunk.start, chunk.end).slice_payload(0..0);
        let Some(mut tcp) = packet.tcp_mut() else { return };
        tcp.set_seq((self.board.una() - 1).into());
        tcp.set_flags(Flags::ACK);
        self.timers.window_probes += 1;
        self.timers.since = ctx.now;
        ctx.counters.window_probes += 1;
        ctx.pass_to_client(packet);
    }
}

fn backed_off(interval: Duration, doublings: u32) -> Duration {
    (interval * (1 << doublings.min(16))).min(INTERVAL_MAX)
}
