//! What a flow shows of its client and its path, for `auto` (crate::auto) and for rules about round trips.

use paceline_wire::{Duration, Instant, Tcp};

use super::missing::Missing;
use super::trial::{Progress, Trial};
use super::{Context, Flow, Phase};
use crate::auto::{Claim, Decision, Known, Reason, Seen, UplinkDelay, What, is_late};
use crate::config::RetransmissionMode;
use crate::mode::Mode;
use crate::observe::Event;
use crate::virtual_window::FIRST_WINDOW;

/// What is watched of one flow.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Watch {
    /// When the memory was told last, and what of it.
    told_at: Option<Instant>,
    told_delivered: u64,
    told_lost: u64,
    uplink: UplinkDelay,
    claim: Claim,
    /// The highest acknowledgement, of what has left or not.
    #[cfg_attr(feature = "serde", serde(default))]
    claimed: u64,
    /// Copies that the client reported to have had already.
    needless: u64,
    /// Its end was told.
    over: bool,
    /// The server repairs: what was repaired here had not been lost.
    pub(super) server_repairs: bool,
    /// That was known from the beginning.
    was_told: bool,
    /// It passes through, until nothing of its subscriber's path speaks against help any more.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(super) passes: bool,
    /// Whether it passes through for a trial.
    #[cfg_attr(feature = "serde", serde(default))]
    trial: Trial,
    /// Seconds in a row in which the application lagged.
    lags: u8,
    /// It reads slowly: the server sees the client's own window.
    own_window: bool,
    /// The most that is advertised before there is a rate, where something is known of the link.
    first_window: Option<u64>,
    /// The newest decision.
    pub(super) reason: Option<Reason>,
}

/// How often the memory is told of a flow that goes on.
const INTERVAL: Duration = Duration::from_secs(1);
/// Our choice: in a single look a hole may have left half of the buffer full.
const LAGS_MIN: u8 = 2;
/// Our choice: twice what the path holds is what slow start brings when it has filled it.
const FIRST_PATHS: u64 = 2;
/// Delayed ACKs and super-packets alone make a round trip so much longer.
const LOADED: Duration = Duration::from_millis(20);
/// Our choice: no single ACK counts for more than a window without scaling. Somebody who does not see the flow may guess one.
const CLAIM_MAX: u64 = 65_535;
/// Our choice: fewer needless copies than this cost nothing.
const NEEDLESS_MIN: u64 = 64;

impl Flow {
    /// `auto` decided so about it, by what is known of its client.
    pub(crate) fn decided(mut self, reason: Option<Reason>, known: &Known) -> Self {
        self.watch.reason = reason;
        if let Some(client) = known.client.filter(|_| reason.is_some()) {
            self.watch.server_repairs = known.has_needless_repairs();
            self.watch.was_told = self.watch.server_repairs;
            self.watch.own_window = client.slow_reader;
            let rtt = client.rtt.map(|rtt| rtt + known.server_rtt.unwrap_or_default());
            let path = rtt.map_or(0, |rtt| client.rate.bytes_in(rtt));
            self.watch.first_window = (path > 0).then_some(FIRST_PATHS * path);
        }
        self
    }

    /// The most that is advertised before there is a rate.
    pub(super) fn first_window(&self) -> u64 {
        self.watch.first_window.unwrap_or(FIRST_WINDOW).min(FIRST_WINDOW)
    }

    /// The server sees what the client says.
    pub(super) fn shows_own_window(&self) -> bool {
        self.watch.own_window || self.watch.passes
    }

    /// It passes through, and nothing of it waits.
    pub(crate) fn passes(&self) -> bool {
        self.watch.passes
    }

    /// With each ACK: the flow begins or ends to pass through as its subscriber's path asks for it, when the client lacks nothing. A hole that
    /// the server has not heard of is to be repaired here: a client repeats no old SACK blocks. One that it heard of is the server's.
    pub(super) fn follow_path(&mut self, ctx: &mut Context<'_>) {
        self.try_passing(ctx);
        let trial = self.watch.trial.passes();
        let passes = self.path.passes.or(trial.then_some(Reason::ServerRecovers));
        if passes.is_some() == self.watch.passes || !(trial || self.lacks_nothing()) {
            return;
        }
        self.watch.passes = passes.is_some();
        if let Some(reason) = passes {
            self.forget_repairs(ctx.now);
            self.modulation.stop();
            ctx.counters.decide(reason);
            let decision = Decision { what: What::Passes, reason };
            ctx.observer.on_event(ctx.now, &self.key, &Event::Decided(decision));
        }
    }

    /// Where help does not help, the flow passes through for a trial.
    fn try_passing(&mut self, ctx: &Context<'_>) {
        if !self.handshake.sack() || ctx.config.retransmission.mode == RetransmissionMode::None {
            return;
        }
        let Some(rtt) = self.round_trips.smoothed() else { return };
        let window_is_used = self.stream.received() + 2 * self.segment() >= self.shown.edge();
        self.watch.trial.on_ack(&Progress {
            now: ctx.now,
            una: self.board.una(),
            received: self.stream.received(),
            rtt,
            server_rtt: self.round_trips.of_server(),
            window_is_used,
            waits: self.waiting() > 0,
            hides: !self.board.is_whole()
                && !Missing::of(&self.board, &self.buffer, &self.stream).server_is_repairing(),
        });
    }

    /// What left from here on is the server's to repair.
    pub(super) fn repaired_to(&self) -> u64 {
        self.watch.trial.repaired_to()
    }

    /// Nothing that left before what is on its way is missing.
    fn lacks_nothing(&self) -> bool {
        let una = self.board.una();
        self.board.is_whole() && (una == self.board.sent() || self.board.in_flight(una, &self.flight))
    }

    /// What the newest ACK waited on the uplink.
    pub(super) fn uplink_queue(&self) -> Duration {
        self.watch.uplink.queue()
    }

    /// The longest queue that the newest packet can have met on the uplink, if its client's clock is known.
    pub(super) fn uplink_at_most(&self) -> Option<Duration> {
        self.watch.uplink.at_most()
    }

    /// Once a second: a reader that lags takes no more than its own window says, and whatever else is sent only gets old here.
    pub(crate) fn watch_reader(&mut self, ctx: &mut Context<'_>) {
        // One that does not read at all (window zero) may come back at any time, and fast.
        let lags = self.client.reader_lags() && !self.client.is_closed();
        self.watch.lags = if lags { self.watch.lags.saturating_add(1) } else { 0 };
        if self.watch.reason.is_some() && !self.watch.own_window && self.watch.lags >= LAGS_MIN {
            self.watch.own_window = true;
            self.note_decision(ctx, Decision { what: What::OwnWindow, reason: Reason::SlowReader });
        }
    }

    /// With each ACK: it may read as it should again.
    pub(super) fn watch_room(&mut self, ctx: &mut Context<'_>) {
        if self.watch.own_window && self.client.reads_well() {
            self.watch.own_window = false;
            self.note_decision(
                ctx,
                Decision { what: What::Mode(Mode::Transparent), reason: Reason::Ordinary },
            );
        }
    }

    /// What it showed since the last time, once a second and at its end.
    pub(crate) fn seen(&mut self, now: Instant) -> Option<Seen> {
        let since = *self.watch.told_at.get_or_insert(now);
        let ends = self.life.phase() == Phase::Closed;
        let due = ends || now.saturating_since(since) >= INTERVAL;
        if !due || self.watch.over || self.life.phase() == Phase::Opening {
            return None;
        }
        self.watch.over = ends;
        let (delivered, lost) = (self.totals.downlink_bytes, self.totals.lost_bytes);
        let queue = self.watch.uplink.standing();
        let rtt = self.totals.rtt_min.into_iter().chain(self.path.rtt).min();
        // Our choice: a queue of a quarter of the round trip is load.
        let smoothed = self.round_trips.smoothed().unwrap_or_default();
        let loaded = rtt.is_some_and(|rtt| smoothed > rtt + rtt / 4 + LOADED);
        let seen = Seen {
            delivered: delivered.saturating_sub(self.watch.told_delivered),
            lost: if loaded { 0 } else { lost.saturating_sub(self.watch.told_lost) },
            rate: self.path.share.max(self.client.rate().rate().unwrap_or_default()),
            rtt,
            server_rtt: self.round_trips.of_server(),
            window: self.client.largest(),
            late_acks: queue.is_some_and(|queue| is_late(queue, rtt)),
            slow_reader: self.watch.own_window,
            needless_repairs: self.watch.server_repairs && !self.watch.was_told,
            split: false,
        };
        (self.watch.told_at, self.watch.told_delivered, self.watch.told_lost) = (Some(now), delivered, lost);
        Some(seen)
    }

    /// `auto` decided something about it.
    pub(crate) fn note_decision(&mut self, ctx: &mut Context<'_>, decision: Decision) {
        self.watch.reason = Some(decision.reason);
        ctx.counters.decide(decision.reason);
        ctx.observer.on_event(ctx.now, &self.key, &Event::Decided(decision));
    }

    /// A packet of the client came.
    pub(super) fn watch_uplink(&mut self, ctx: &Context<'_>, tcp: Tcp<'_>) {
        if let Some((value, _)) = tcp.timestamps() {
            self.watch.uplink.on_timestamp(ctx.now, value, self.path.uploaded);
        }
    }

    /// The client acknowledges up to `ack`, which is more than before, and perhaps more than has left for it.
    pub(super) fn watch_claim(&mut self, ctx: &mut Context<'_>, ack: u64) {
        let (una, sent) = (self.board.una(), self.board.sent());
        if self.watch.reason.is_none() || self.life.gave_up() {
            return;
        }
        let before = self.watch.claimed.max(una);
        self.watch.claimed = before.max(ack);
        let unsent = ack.saturating_sub(sent.max(before)).min(CLAIM_MAX);
        if self.watch.claim.on_ack(ack.saturating_sub(before), unsent) {
            self.note_decision(ctx, Decision { what: What::Passes, reason: Reason::OptimisticAcks });
            self.give_up(ctx);
        }
    }

    /// The client reported data that it had already (RFC 2883).
    pub(super) fn watch_duplicate(&mut self) {
        self.watch.needless += 1;
    }

    /// Where delay looks like loss again and again, as on a link with outages, every repair takes the place of data. The server's own
    /// timeout is longer, and it learns from spurious ones (RFC 5682). Only between two repairs.
    pub(super) fn stop_needless_repairs(&mut self, ctx: &mut Context<'_>) {
        let watch = &self.watch;
        if watch.reason.is_none() || watch.server_repairs || watch.needless < NEEDLESS_MIN {
            return;
        }
        let is_idle =
            self.board.lost_bytes() == 0 && self.recovery.hole.is_none() && !self.recovery.is_asking();
        if is_idle && 2 * watch.needless > self.totals.retransmissions {
            self.watch.server_repairs = true;
            self.note_decision(ctx, Decision { what: What::ServerRepairs, reason: Reason::NeedlessRepairs });
        }
    }
}
