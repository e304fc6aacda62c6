//! One TCP connection that passes through the gateway.
//!
//! "Downlink" is the stream from the server to the client. The gateway keeps it until the client has it, sends it by
//! the schedule and repairs it. The uplink passes. Positions are 64-bit stream offsets.
//!
//! Each part of the state owns its fields and has a file. A part does not know the flow, and is handed what it needs of
//! other parts. The rules are in a file for each kind of event, and ask the parts in their order. `uplink` has those
//! for an ACK of the client, `downlink` for a packet of the server, `departure` for a packet that leaves.

// The parts, and what is computed from several of them.
mod account;
mod ack_filter;
mod ack_steps;
mod client_stream;
mod client_window;
mod clocks;
mod early_answers;
mod forwarded_headers;
mod lifecycle;
mod missing;
mod monitor;
mod overshoot;
mod path_mtu;
mod proof;
mod pure_acks;
mod recovery;
mod resumption;
mod round_trips;
mod server_stream;
mod server_window;
mod stale_promise;
mod timers;
mod trial;

// The rules.
mod acceptance;
mod decisions;
mod departure;
mod downlink;
mod losses;
mod opening;
mod sound;
mod tail_probe;
mod timeouts;
mod uplink;
mod upload;
#[cfg(test)]
mod work;

use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, PortId, Seq};

use crate::config::{FlowMode, GatewayConfig, RetransmissionMode, ScheduleMode};
use crate::context::Context;
use crate::flight::Flight;
use crate::handshake::{Handshake, Shifts};
use crate::ids::SubscriberId;
use crate::link_report::LinkReport;
use crate::modulation::Modulation;
use crate::observe::Event;
use crate::path_estimate::PathEstimate;
use crate::pool::MemoryUse;
use crate::retransmit_buffer::RetransmitBuffer;
use crate::scoreboard::Scoreboard;
use crate::status::{FlowStage, FlowStatus, FlowTotals};
use crate::{RADIO, WAN};

pub(crate) use acceptance::SynMatch;
use account::Account;
use ack_filter::AckFilter;
use client_stream::ClientStream;
use client_window::ClientWindow;
use clocks::Clocks;
use forwarded_headers::ForwardedHeaders;
use lifecycle::Lifecycle;
pub(crate) use lifecycle::Phase;
use monitor::FlowMonitor;
pub(crate) use path_mtu::PathMtu;
use proof::HandshakeProof;
use pure_acks::PureAcks;
use recovery::Recovery;
use round_trips::RoundTrips;
use server_stream::ServerStream;
use server_window::ServerWindow;
use timers::Timers;

/// The state of one flow. Its parts are serialised flat, as older programs without parts read and write them.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Flow {
    /// Source is the client.
    pub(crate) key: FlowKey,
    #[serde(flatten)]
    account: Account,
    #[serde(flatten)]
    life: Lifecycle,
    #[serde(flatten)]
    proof: HandshakeProof,
    handshake: Handshake,
    shifts: Shifts,
    #[serde(flatten)]
    upstream: ClientStream,
    /// Both ends' timestamps.
    #[serde(default)]
    clocks: Clocks,
    #[serde(flatten)]
    stream: ServerStream,
    #[serde(rename = "store")]
    buffer: RetransmitBuffer,
    board: Scoreboard,
    flight: Flight,
    recovery: Recovery,
    #[serde(rename = "bare")]
    pure_acks: PureAcks,
    #[serde(flatten)]
    passed_on: ForwardedHeaders,
    #[serde(flatten)]
    round_trips: RoundTrips,
    #[serde(flatten)]
    client: ClientWindow,
    #[serde(flatten)]
    shown: ServerWindow,
    /// Not a part of `shown`: a part that is serialised flat cannot have types with a separate human-readable form,
    /// like its flags.
    filter: AckFilter,
    modulation: Modulation,
    timers: Timers,
    path: PathEstimate,
    #[serde(default)]
    path_mtu: PathMtu,
    totals: FlowTotals,
    watch: FlowMonitor,
}

impl Flow {
    pub(crate) fn new(
        key: FlowKey,
        subscriber: SubscriberId,
        weight: u32,
        ack_interval: usize,
        now: Instant,
    ) -> Self {
        Flow {
            key,
            account: Account::new(subscriber, weight),
            life: Lifecycle::new(now),
            proof: HandshakeProof::default(),
            handshake: Handshake::default(),
            shifts: Shifts::default(),
            upstream: ClientStream::default(),
            clocks: Clocks::default(),
            stream: ServerStream::default(),
            buffer: RetransmitBuffer::default(),
            board: Scoreboard::default(),
            flight: Flight::default(),
            recovery: Recovery::default(),
            pure_acks: PureAcks::default(),
            passed_on: ForwardedHeaders::default(),
            round_trips: RoundTrips::new(),
            client: ClientWindow::new(ack_interval, now),
            shown: ServerWindow::new(),
            filter: AckFilter::default(),
            modulation: Modulation::default(),
            timers: Timers::default(),
            path: PathEstimate::default(),
            path_mtu: PathMtu::default(),
            totals: FlowTotals::default(),
            watch: FlowMonitor::default(),
        }
    }

    /// Bounds its virtual window, if a rule says so.
    pub(crate) fn bounded(mut self, window_max_bytes: Option<u64>) -> Self {
        self.account.window_max_bytes = window_max_bytes;
        self
    }

    /// Turns it into a flow that was open before the gateway started. Its shifts were stored.
    pub(crate) fn resumed(mut self, shifts: Shifts) -> Self {
        self.shifts = shifts;
        self.life.resume();
        self.proof.on_proof();
        self.handshake.mss = 1448;
        self
    }

    /// Returns the bytes in flight to the client. After a timeout there are none: they are lost (RFC 5681, Section 3.1,
    /// the loss window), or a full buffer has dropped them. If they still counted, the subscriber's other flows would
    /// not get the link until the client is heard.
    pub(crate) fn in_flight(&self) -> u64 {
        if self.timers.is_silent(self.client.newest()) { 0 } else { self.timers.counted(self.flight.bytes()) }
    }

    /// True if not both ends have answered: anybody may have sent its SYN.
    pub(crate) fn is_half_open(&self) -> bool {
        !self.proof.is_proven() && !self.has_ended()
    }

    /// True if `packet`, which came before both SYNs, refuses the one that has come (RFC 9293, Section 3.10.7.3).
    pub(crate) fn is_refused_by(&self, from: PortId, packet: &Packet) -> bool {
        let isn = self.proof.isn(if from == WAN { RADIO } else { WAN });
        let refuses = |tcp: paceline_wire::Tcp<'_>| {
            tcp.flags().contains(Flags::RST | Flags::ACK)
                && isn.is_some_and(|isn| tcp.ack() == Seq(isn).add(1))
        };
        packet.verify_checksum() && packet.tcp().is_some_and(refuses)
    }

    pub(crate) fn subscriber(&self) -> SubscriberId {
        self.account.subscriber()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.life.phase()
    }

    pub(crate) fn on_packet(&mut self, now: Instant) {
        self.life.on_packet(now);
    }

    /// Sets what the subscriber knows of the path.
    pub(crate) fn set_path(&mut self, path: PathEstimate) {
        self.path = path;
    }

    /// True if there is data to send, now or later.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.board.lost_bytes() > 0 || self.buffer.from(self.board.sent()).is_some()
    }

    /// True if the first segment that the client lacks is to be sent again. Everything waits for it, so it does not
    /// wait for the subscriber's bound. One segment a round trip is no load.
    pub(crate) fn head_is_lost(&self) -> bool {
        self.board.first_lost().is_some_and(|lost| lost.start == self.board.una())
    }

    /// True if both ends have closed or one has reset. The flow is kept for late packets.
    pub(crate) fn has_ended(&self) -> bool {
        self.life.phase() == Phase::Closed
    }

    /// Returns when the flow is forgotten if nothing more comes.
    pub(crate) fn expires_at(&self, idle_timeout_s: u64) -> Instant {
        self.life.expires_at(self.proof.is_proven(), idle_timeout_s)
    }

    /// True if it is time to forget the flow.
    pub(crate) fn is_expired(&self, now: Instant, idle_timeout_s: u64) -> bool {
        self.expires_at(idle_timeout_s) <= now
    }

    /// Returns its part of the shared memory, as it was counted last.
    pub(crate) fn memory_use(&self) -> MemoryUse {
        self.account.memory_use()
    }

    /// Charges what the flow keeps to the memory of all flows, after each event. Logs and queues count with the data:
    /// with small packets they are the larger part.
    pub(crate) fn settle(&mut self, all_kept: &mut u64) {
        let kept = self.buffer.bytes()
            + self.pure_acks.memory()
            + self.modulation.bytes()
            + self.flight.memory()
            + self.board.memory()
            + self.recovery.memory()
            + self.upstream.memory();
        self.account.charge(all_kept, kept);
    }

    /// Charges it as if nothing had been charged yet.
    pub(crate) fn recount(&mut self, all_kept: &mut u64) {
        self.account.forget_charge();
        self.settle(all_kept);
    }

    /// True if there is memory for `bytes` more of this flow.
    fn has_room(&self, ctx: &Context<'_>, bytes: usize) -> bool {
        self.account.has_room(ctx, bytes)
    }

    /// Bytes that wait to leave for the client, for the first time or again.
    pub(crate) fn waiting(&self) -> u64 {
        self.stream.received().saturating_sub(self.board.sent()) + self.board.lost_bytes()
    }

    fn segment(&self) -> u64 {
        u64::from(self.handshake.mss).max(64)
    }

    /// Returns the smoothed RTT: before the first sample the path's, or 1 s (RFC 6298, Section 2.1).
    fn smoothed_rtt(&self) -> Duration {
        self.round_trips.smoothed().or(self.path.rtt).unwrap_or(Duration::from_secs(1))
    }

    /// Returns the shortest RTT. Nothing that left less than this long ago can have been answered yet.
    fn shortest_rtt(&self) -> Duration {
        self.path.rtt.unwrap_or(self.smoothed_rtt() / 2)
    }

    /// True if the gateway repairs losses of this flow.
    fn repairs(&self, config: &GatewayConfig) -> bool {
        config.retransmission.mode != RetransmissionMode::None && !self.leaves_repairs()
    }

    /// True if the server repairs its losses, whatever the configuration says.
    fn leaves_repairs(&self) -> bool {
        self.life.gave_up() || self.watch.server_repairs || self.watch.passes
    }

    /// True if nothing of this flow is ever held back.
    fn is_passive(&self, config: &GatewayConfig) -> bool {
        self.life.gave_up()
            || (config.retransmission.mode == RetransmissionMode::None
                && config.schedule.mode == ScheduleMode::OnArrival
                && config.queue_bound.mode == crate::config::QueueBoundMode::None)
    }

    /// Starts the downlink stream at `position`, where it begins or is first seen.
    pub(crate) fn start_stream(&mut self, position: u64) {
        self.stream.start(position);
        self.board.reset(position);
        self.client.start(position);
        self.shown.start(position);
        self.filter.reset(position);
    }

    /// Drops everything that is kept; the ends are on their own.
    fn abandon(&mut self, ctx: &mut Context<'_>) {
        self.account.advertise(ctx, 0);
        self.buffer.clear();
        self.flight.clear();
        let position = self.stream.received();
        self.board.reset(position);
        self.recovery = Recovery::default();
        self.timers = Timers::default();
        self.pure_acks.release(ctx, u64::MAX);
    }

    /// Gives up repair. The server's own recovery passes from here on, and the server sees everything.
    fn give_up(&mut self, ctx: &mut Context<'_>) {
        self.life.give_up();
        ctx.counters.pass(crate::counters::PassReason::GaveUp);
        ctx.observer.on_event(ctx.now, &self.key, &Event::GaveUp);
        self.abandon(ctx);
    }

    /// Closes the flow: nothing more will be repaired.
    pub(crate) fn close(&mut self, ctx: &mut Context<'_>, end: FlowStage) {
        if self.life.close(end) {
            ctx.observer.on_event(ctx.now, &self.key, &Event::Ended(self.status(ctx.config)));
            ctx.observer.on_event(ctx.now, &self.key, &Event::Closed);
        }
    }

    /// A copy of its state for an operator.
    pub(crate) fn status(&self, config: &GatewayConfig) -> FlowStatus {
        FlowStatus {
            key: self.key,
            mode: FlowMode::Transparent,
            reason: self.watch.reason,
            subscriber: config.sharing.subscriber(self.key.src.ip()),
            stage: self.life.stage(),
            since: self.life.since(),
            last_packet: self.life.last_packet(),
            weight: self.account.weight(),
            rescaled: self.shifts.rescaled(),
            gave_up: self.life.gave_up(),
            rtt: self.round_trips.smoothed(),
            server_rtt: self.round_trips.of_server(),
            rate: self.client.rate().rate().unwrap_or_default(),
            client_window: self.client.newest(),
            in_flight: self.flight.bytes(),
            waiting: self.waiting(),
            buffered: self.buffer.bytes(),
            ack_delay: self.modulation.delay(),
            totals: self.totals,
        }
    }
}
