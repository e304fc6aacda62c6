//! One TCP connection that passes through the gateway.
//!
//! "Downlink" is the stream from the server to the client: it is kept here until the client has it, leaves by the
//! schedule and is repaired from here. The uplink passes. Positions are 64-bit stream offsets.

mod acceptance;
mod ack_filter;
mod clocks;
mod context;
mod departure;
mod downlink;
mod early_answers;
mod opening;
mod overshoot;
mod path_mtu;
mod recovery;
mod resumption;
#[cfg(feature = "serde")]
mod sound;
mod stale_promise;
mod tail_probe;
mod timers;
mod trial;
mod uplink;
mod upload;
mod watch;
#[cfg(test)]
mod work;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::Range;

use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, PortId, Seq};

use crate::WAN;
use crate::config::{FlowMode, GatewayConfig, RetransmissionMode, ScheduleMode};
use crate::flight::Flight;
use crate::handshake::{Handshake, Shifts};
use crate::modulation::Modulation;
use crate::observe::Event;
use crate::pool::{MemoryUse, may_keep};
use crate::reception_rate::ReceptionRate;
use crate::retransmit_buffer::RetransmitBuffer;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::server_rtt::ServerRtt;
use crate::status::{FlowStage, FlowStatus, FlowTotals};
use crate::subscriber::{PathEstimate, prefix};
use crate::supply::Supply;
use crate::upload::UploadReport;
use crate::virtual_window::VirtualWindow;

use crate::upload::UploadWatch;
pub(crate) use acceptance::SynIs;
use acceptance::Uplink;
use ack_filter::AckFilter;
use clocks::Clocks;
pub(crate) use context::Context;
use overshoot::Overshoot;
pub(crate) use path_mtu::PathMtu;
use recovery::Recovery;
use resumption::Resumption;
use stale_promise::StalePromise;
use timers::Timers;
use watch::Watch;

/// Packets without data that may wait behind data of a flow. Our choice: a server sends few beside its data. Of more the newest counts.
const PURE_ACKS_MAX: usize = 16;

/// A closed flow is kept for retransmitted FINs, so that their windows are still rescaled: Linux's TIME-WAIT.
const CLOSED_LINGER: Duration = Duration::from_secs(60);
/// RFC 5382, REQ-5: not less than 4 minutes for a connection that is being opened.
const OPENING_TIMEOUT: Duration = Duration::from_secs(240);

/// What an ACK told about the radio link; the subscriber's bound lives on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkReport {
    /// Bytes that arrived at the client.
    pub(crate) delivered: u64,
    /// Bytes that the link lost.
    pub(crate) lost: u64,
    /// When the first of them had left, if that is known.
    pub(crate) lost_sent: Option<Instant>,
    /// Round-trip time of a packet that left once.
    pub(crate) rtt: Option<Duration>,
    /// Time since the departure of the last packet that arrived. While a hole is open, arrivals are counted rather than
    /// named, so it may be off by some packets, but there is no other word of the queue then.
    pub(crate) age: Option<Duration>,
    /// How long the report itself waited on the uplink.
    pub(crate) uplink: Duration,
    /// Its packets leave at a rate of their own, within the bound.
    pub(crate) paced: bool,
    /// What data of an upload says of the uplink.
    pub(crate) upload: Option<UploadReport>,
}

#[cfg(feature = "serde")]
fn yes() -> bool {
    true
}

/// How far a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Phase {
    /// SYNs are on their way.
    Opening,
    /// Both are through, or the flow was resumed.
    Open,
    /// Resumed after a restart: until a packet of each end tells where the streams are.
    Resumed,
    /// Both FINs are acknowledged, or a RST passed: forgotten after a while.
    Closed,
}

/// The state of one flow.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Flow {
    /// Source is the client.
    pub(crate) key: FlowKey,
    pub(crate) subscriber: u32,
    pub(crate) weight: u32,
    /// The largest window shown to the server, where a rule says one.
    window_max_bytes: Option<u64>,
    pub(crate) phase: Phase,
    /// The end that opened it has answered the other's SYN: it is where its address says.
    #[cfg_attr(feature = "serde", serde(default = "yes"))]
    is_proven: bool,
    pub(crate) last_packet: Instant,
    pub(crate) handshake: Handshake,
    pub(crate) shifts: Shifts,
    pub(crate) client_isn: Option<u32>,
    pub(crate) server_isn: Option<u32>,
    /// Departure of the server's SYN, if it left once and is not answered.
    syn_sent_at: Option<Instant>,
    gave_up: bool,
    /// It was open before the gateway started.
    was_resumed: bool,
    /// The client's stream; none before its numbers are known.
    uplink: Option<Uplink>,
    /// What is kept of it if it is an upload.
    #[cfg_attr(feature = "serde", serde(default))]
    upload: Option<Box<UploadWatch>>,
    /// Both ends' timestamps.
    #[cfg_attr(feature = "serde", serde(default))]
    clocks: Clocks,
    /// What the ends of a resumed flow have said, until it is believed.
    #[cfg_attr(feature = "serde", serde(default))]
    resumption: Option<Box<Resumption>>,
    /// What acknowledges a SYN of the client that came while the flow was open: it is over if the server answers that.
    pending_syn: Option<Seq>,
    /// What acknowledges the server's answer to that.
    #[cfg_attr(feature = "serde", serde(default))]
    pending_answer: Option<Seq>,
    /// Position after the newest byte from the server.
    received: u64,
    /// Position after the newest byte that passed to the client without being kept.
    #[cfg_attr(feature = "serde", serde(default))]
    passed: u64,
    #[cfg_attr(feature = "serde", serde(rename = "store"))]
    buffer: RetransmitBuffer,
    board: Scoreboard,
    flight: Flight,
    recovery: Recovery,
    #[cfg_attr(feature = "serde", serde(default))]
    overshoot: Overshoot,
    /// Packets without data, each behind the data below its position.
    #[cfg_attr(feature = "serde", serde(rename = "bare"))]
    pure_acks: VecDeque<(u64, Packet)>,
    #[cfg_attr(feature = "serde", serde(default))]
    stale_promise: StalePromise,
    /// The server's newest bytes, which it sent again before they had left.
    #[cfg_attr(feature = "serde", serde(default))]
    tail_probe: Option<Range<u64>>,
    rtt: RttEstimator,
    /// The newest of its samples, until an ACK leaves for the server.
    rtt_sample: Option<Duration>,
    rate: ReceptionRate,
    server_rtt: ServerRtt,
    /// a_i, a_max, right edge and t_i of the schedule.
    window: u64,
    window_max: u64,
    /// The window in the newest ACK that told of no hole.
    room: u64,
    /// ACKs in a row with the same window.
    same_window: u32,
    right_edge: u64,
    acked_at: Instant,
    virtual_window: VirtualWindow,
    /// This flow's part of what was advertised to servers.
    #[cfg_attr(feature = "serde", serde(rename = "promised"))]
    advertised: u64,
    /// What it keeps, as counted among that of all flows.
    #[cfg_attr(feature = "serde", serde(default))]
    charged: u64,
    modulation: Modulation,
    filter: AckFilter,
    timers: Timers,
    supply: Supply,
    /// Acknowledgement and window field of the server's newest packet, as the client is to see them.
    newest: Option<(Seq, u16)>,
    /// Timestamp of the newest packet that passed in front of data that is kept here.
    passed_tsval: Option<u32>,
    path: PathEstimate,
    #[cfg_attr(feature = "serde", serde(default))]
    path_mtu: PathMtu,
    server_fin: Option<u64>,
    client_fin: Option<u64>,
    client_fin_acked: bool,
    since: Instant,
    /// How it ended, if it has.
    end: Option<FlowStage>,
    totals: FlowTotals,
    watch: Watch,
}

impl Flow {
    pub(crate) fn new(key: FlowKey, subscriber: u32, weight: u32, ack_interval: usize, now: Instant) -> Self {
        Flow {
            key,
            subscriber,
            weight,
            window_max_bytes: None,
            phase: Phase::Opening,
            is_proven: false,
            last_packet: now,
            handshake: Handshake::default(),
            shifts: Shifts::default(),
            client_isn: None,
            server_isn: None,
            syn_sent_at: None,
            gave_up: false,
            was_resumed: false,
            uplink: None,
            upload: None,
            clocks: Clocks::default(),
            resumption: None,
            pending_syn: None,
            pending_answer: None,
            received: 0,
            passed: 0,
            buffer: RetransmitBuffer::default(),
            board: Scoreboard::default(),
            flight: Flight::default(),
            recovery: Recovery::default(),
            overshoot: Overshoot::default(),
            pure_acks: VecDeque::new(),
            stale_promise: StalePromise::default(),
            tail_probe: None,
            rtt: RttEstimator::default(),
            rtt_sample: None,
            rate: ReceptionRate::new(ack_interval),
            server_rtt: ServerRtt::new(),
            window: 0,
            window_max: 0,
            room: 0,
            same_window: 0,
            right_edge: 0,
            acked_at: now,
            virtual_window: VirtualWindow::new(0),
            advertised: 0,
            charged: 0,
            modulation: Modulation::default(),
            filter: AckFilter::default(),
            timers: Timers::default(),
            supply: Supply::default(),
            newest: None,
            passed_tsval: None,
            path: PathEstimate::default(),
            path_mtu: PathMtu::default(),
            server_fin: None,
            client_fin: None,
            client_fin_acked: false,
            since: now,
            end: None,
            totals: FlowTotals::default(),
            watch: Watch::default(),
        }
    }

    /// A rule may bound its virtual window.
    pub(crate) fn bounded(mut self, window_max_bytes: Option<u64>) -> Self {
        self.window_max_bytes = window_max_bytes;
        self
    }

    /// A flow that was open before the gateway started; its shifts were stored.
    pub(crate) fn resumed(mut self, shifts: Shifts) -> Self {
        self.shifts = shifts;
        self.phase = Phase::Resumed;
        (self.was_resumed, self.is_proven) = (true, true);
        self.handshake.mss = 1448;
        self
    }

    /// Bytes in flight to the client. After a timeout none are: what was there is lost (RFC 5681, Section 3.1, the loss window), or a full
    /// buffer has dropped it. Counted on, it would keep the link from all other flows of the subscriber until the client is heard.
    pub(crate) fn in_flight(&self) -> u64 {
        if self.timers.is_silent(self.window) { 0 } else { self.timers.counted(self.flight.bytes()) }
    }

    /// Not both ends have answered, so anybody may have sent its SYN.
    pub(crate) fn is_half_open(&self) -> bool {
        !self.is_proven && !self.has_ended()
    }

    /// A packet came before both SYNs. True if it refuses the one that has come (RFC 9293, Section 3.10.7.3).
    pub(crate) fn is_refused_by(&self, from: PortId, packet: &Packet) -> bool {
        let isn = if from == WAN { self.client_isn } else { self.server_isn };
        let refuses = |tcp: paceline_wire::Tcp<'_>| {
            tcp.flags().contains(Flags::RST | Flags::ACK)
                && isn.is_some_and(|isn| tcp.ack() == Seq(isn).add(1))
        };
        packet.verify_checksum() && packet.tcp().is_some_and(refuses)
    }

    /// What the subscriber knows of the path.
    pub(crate) fn set_path(&mut self, path: PathEstimate) {
        self.path = path;
    }

    /// There is data to send, now or later.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.board.lost_bytes() > 0 || self.buffer.from(self.board.sent()).is_some()
    }

    /// The first segment that the client lacks is to be sent again. It is what everything waits for, so it does not
    /// wait for the subscriber's bound; one segment a round trip is no load.
    pub(crate) fn head_is_lost(&self) -> bool {
        self.board.first_lost().is_some_and(|lost| lost.start == self.board.una())
    }

    /// Both ends have closed, or one has reset; it is kept for what comes late.
    pub(crate) fn has_ended(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// When the flow is forgotten if nothing more comes.
    pub(crate) fn expires_at(&self, idle_timeout_s: u64) -> Instant {
        match self.phase {
            Phase::Closed => self.last_packet + CLOSED_LINGER,
            _ if !self.is_proven => self.last_packet + OPENING_TIMEOUT,
            _ => self.last_packet + Duration::from_secs(idle_timeout_s),
        }
    }

    /// It is time to forget the flow.
    pub(crate) fn is_expired(&self, now: Instant, idle_timeout_s: u64) -> bool {
        self.expires_at(idle_timeout_s) <= now
    }

    /// Its part of the shared memory, as it was counted last.
    pub(crate) fn memory_use(&self) -> MemoryUse {
        MemoryUse { kept: self.charged, advertised: self.advertised }
    }

    /// After each event: what it keeps by now is charged to the memory of all. Logs and queues count with the data: with small packets they
    /// would be the larger part.
    pub(crate) fn settle(&mut self, all_kept: &mut u64) {
        let kept = self.buffer.bytes()
            + (self.pure_acks.len() * size_of::<(u64, Packet)>()) as u64
            + self.modulation.bytes()
            + self.flight.memory()
            + self.board.memory()
            + self.recovery.memory()
            + self.upload.as_ref().map_or(0, |_| UploadWatch::MEMORY as u64);
        *all_kept = (*all_kept + kept).saturating_sub(core::mem::replace(&mut self.charged, kept));
    }

    /// As if nothing had been charged yet.
    #[cfg(feature = "serde")]
    pub(crate) fn recount(&mut self, all_kept: &mut u64) {
        self.charged = 0;
        self.settle(all_kept);
    }

    /// There is memory for `bytes` more of this flow.
    fn has_room(&self, ctx: &Context<'_>, bytes: usize) -> bool {
        let limits = &ctx.config.limits;
        let (pool, bytes) = (limits.max_buffer_bytes as u64, bytes as u64);
        self.charged + bytes <= limits.max_flow_buffer_bytes
            && may_keep(pool, *ctx.buffered, ctx.subscriber, bytes)
    }

    /// Bytes that have not left for the client yet.
    pub(crate) fn waiting(&self) -> u64 {
        self.received.saturating_sub(self.board.sent()) + self.board.lost_bytes()
    }

    fn segment(&self) -> u64 {
        u64::from(self.handshake.mss).max(64)
    }

    /// Before the first sample, that of the subscriber's other flows, or the second of RFC 6298, Section 2.1.
    fn smoothed_rtt(&self) -> Duration {
        self.rtt.smoothed().or(self.path.rtt).unwrap_or(Duration::from_secs(1))
    }

    /// Nothing that left later than this can have been answered yet.
    fn shortest_rtt(&self) -> Duration {
        self.path.rtt.unwrap_or(self.smoothed_rtt() / 2)
    }

    /// The gateway repairs losses of this flow.
    fn repairs(&self, config: &GatewayConfig) -> bool {
        config.retransmission.mode != RetransmissionMode::None && !self.leaves_repairs()
    }

    /// The server repairs its losses, whatever the configuration says.
    fn leaves_repairs(&self) -> bool {
        self.gave_up || self.watch.server_repairs || self.watch.passes
    }

    /// Nothing of this flow is ever held back.
    fn is_passive(&self, config: &GatewayConfig) -> bool {
        self.gave_up
            || (config.retransmission.mode == RetransmissionMode::None
                && config.schedule.mode == ScheduleMode::OnArrival
                && config.queue_bound.mode == crate::config::QueueBoundMode::None)
    }

    /// The downlink stream starts, or is first seen, at `position`.
    pub(crate) fn start_stream(&mut self, position: u64) {
        self.received = position;
        self.board.reset(position);
        self.right_edge = position;
        self.virtual_window = VirtualWindow::new(position);
        self.filter.reset(position);
    }

    /// Drops everything that is kept; the ends are on their own.
    fn abandon(&mut self, ctx: &mut Context<'_>) {
        self.advertise(ctx, 0);
        self.buffer.clear();
        self.flight.clear();
        let position = self.received;
        self.board.reset(position);
        self.recovery = Recovery::default();
        self.timers = Timers::default();
        self.flush_pure_acks(ctx);
    }

    /// Repair has failed: the server's own recovery passes from here on, and sees everything.
    fn give_up(&mut self, ctx: &mut Context<'_>) {
        self.gave_up = true;
        ctx.counters.pass(crate::counters::PassReason::GaveUp);
        ctx.observer.on_event(ctx.now, &self.key, &Event::GaveUp);
        self.abandon(ctx);
    }

    /// The flow is over: nothing more will be repaired.
    pub(crate) fn close(&mut self, ctx: &mut Context<'_>, end: FlowStage) {
        if self.phase != Phase::Closed {
            self.phase = Phase::Closed;
            self.end = Some(end);
            ctx.observer.on_event(ctx.now, &self.key, &Event::Ended(self.status(ctx.config)));
            ctx.observer.on_event(ctx.now, &self.key, &Event::Closed);
        }
    }

    /// A copy of its state for an operator.
    pub(crate) fn status(&self, config: &GatewayConfig) -> FlowStatus {
        let opening = self.phase == Phase::Opening;
        FlowStatus {
            key: self.key,
            mode: FlowMode::Transparent,
            reason: self.watch.reason,
            subscriber: prefix(&config.sharing, self.key.src.ip()),
            stage: self.end.unwrap_or(if opening { FlowStage::Opening } else { FlowStage::Open }),
            since: self.since,
            last_packet: self.last_packet,
            weight: self.weight,
            rescaled: self.shifts.rescaled(),
            gave_up: self.gave_up,
            rtt: self.rtt.smoothed(),
            server_rtt: self.server_rtt.get(),
            rate: self.rate.rate().unwrap_or_default(),
            client_window: self.window,
            in_flight: self.flight.bytes(),
            waiting: self.waiting(),
            buffered: self.buffer.bytes(),
            ack_delay: self.modulation.delay(),
            totals: self.totals,
        }
    }
}
