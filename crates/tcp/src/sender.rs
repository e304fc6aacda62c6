//! The sending half of a connection: what Linux keeps in struct tcp_sock for it, and the order of work of its tcp_ack.

mod accounting;
mod ack;
mod congestion_response;
mod ecn;
mod hack1;
mod newreno;
mod next_seg;
mod recovery;
mod suppression;
mod timers;
mod transmit;
mod undo;
mod usage;

use alloc::boxed::Box;

use paceline_wire::{Duration, Instant};

use crate::config::Config;
use crate::congestion::{AckSample, CaState, CongestionControl, CongestionEvent, Window};
use crate::connection::Delivery;
use crate::detection::LossDetection;
use crate::event::{Event, Observer};
use crate::rate_sample::DeliveryRate;
use crate::reduction::RateReduction;
use crate::rtt::RttEstimator;
use crate::schedule::Accelerated;
use crate::scoreboard::Scoreboard;

pub(crate) use ack::{AckInput, AckVerdict};
use timers::TimerKind;
pub(crate) use transmit::{Supply, Transmission};

/// The sending half.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Sender {
    pub(crate) board: Scoreboard,
    pub(crate) rtt: RttEstimator,
    pub(crate) rate: DeliveryRate,
    pub(crate) window: Window,
    pub(crate) state: CaState,
    congestion: Box<dyn CongestionControl>,
    reduction: Box<dyn RateReduction>,
    detection: Box<dyn LossDetection>,
    /// The detection says when congestion is answered.
    #[cfg_attr(feature = "serde", serde(rename = "separate"))]
    owns_response: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) observer: Option<Box<dyn Observer>>,
    pub(crate) mss: u32,
    /// SND.WND in bytes, and the largest ever (RFC 9293, Section 3.8.6.2.1).
    pub(crate) snd_wnd: u64,
    max_window: u64,
    snd_wl1: u64,
    snd_wl2: u64,
    /// SND.NXT when the present episode began (RecoveryPoint).
    high_seq: u64,
    prior_cwnd: u32,
    prior_ssthresh: u32,
    undo: undo::Undo,
    pub(crate) reordering: u32,
    pub(crate) reord_seen: u32,
    /// The longest reordering that detection was not told of yet, in segments.
    reordered_by: u32,
    frto: bool,
    /// F-RTO, step 2.b: new data instead of retransmissions, until the next ACK.
    frto_new_data: bool,
    tlp_high_seq: Option<u64>,
    tlp_retransmitted: bool,
    /// What must be sent whatever cwnd says: the probe of the tail, the first segment after a timeout.
    forced: Option<transmit::Forced>,
    /// The window was reduced, and the peer is to be told so if ECN was agreed (Linux TCP_ECN_QUEUE_CWR).
    #[cfg_attr(feature = "serde", serde(default))]
    cwr_due: bool,
    timer: Option<(TimerKind, Instant)>,
    pub(crate) backoff: u32,
    pub(crate) retransmits: u32,
    /// For how long what was sent may stay unacknowledged, if the application has said so (RFC 9293, Section 3.8.3: R2).
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) user_timeout: Option<Duration>,
    /// Since when the peer owes an answer; of a meaning while `retransmits` or `probes_out` count.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) unanswered_since: Instant,
    pub(crate) probes_out: u32,
    pub(crate) window_probe: bool,
    hack1: hack1::Hack1,
    next_seg: next_seg::NextSeg,
    schedule: Option<Accelerated>,
    /// The congestion control does not hear of the present episode.
    #[cfg_attr(feature = "serde", serde(default))]
    suppressed: bool,
    usage: usage::Usage,
    next_departure: Instant,
    /// Bytes that may still be sent, if something else bounds what is in flight.
    pub(crate) allowance: u64,
    /// The last poll had something to send, and no allowance.
    pub(crate) held: bool,
    /// Reported since it was last asked for.
    pub(crate) delivery: Delivery,
    /// Of the packets lost since the start, those that were told.
    pub(crate) lost_reported: u64,
    last_send: Instant,
    /// When the last ACK came.
    last_arrival: Instant,
    /// Segments that this ACK reported by SACK, for RecoverFS.
    newly_sacked: u32,
    /// The end of the last segment shorter than the MSS.
    last_small: u64,
    /// What is added to ticks to make a timestamp.
    pub(crate) ts_offset: u32,
    sack_ok: bool,
    timestamps: bool,
    newreno: newreno::NewReno,
    config: Config,
    pub(crate) totals: Totals,
}

/// Counts and times since the start.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Totals {
    pub(crate) segments_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) segments_retransmitted: u64,
    pub(crate) bytes_retransmitted: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) timeouts: u64,
    pub(crate) probes: u64,
    pub(crate) recoveries: u64,
    pub(crate) stalled_recoveries: u64,
    pub(crate) stalls: u64,
    pub(crate) undos: u64,
    pub(crate) dsack_dups: u64,
    pub(crate) beyond_window: u64,
    pub(crate) hack1: u64,
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) ecn_reductions: u64,
}

/// What the handshake settled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    pub(crate) mss: u32,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
}

impl Sender {
    /// A sender whose first position is `start`.
    pub(crate) fn new(config: &Config, seed: u64, start: u64) -> Self {
        let mss = u32::from(config.mss);
        let detection = config.detection.build(config.ncl);
        Sender {
            board: Scoreboard::new(start, mss),
            rtt: RttEstimator::new(config.rto, config.rto_min),
            rate: DeliveryRate::default(),
            window: Window::new(config.initial_cwnd.max(1), config.cwnd_clamp),
            state: CaState::Open,
            congestion: config.congestion.build(config.hystart, seed),
            reduction: config.reduction.build(config.opportunistic),
            owns_response: detection.owns_response(),
            detection,
            observer: None,
            mss,
            snd_wnd: 0,
            max_window: 0,
            snd_wl1: 0,
            snd_wl2: 0,
            high_seq: start,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            undo: undo::Undo::default(),
            reordering: crate::detection::DUP_THRESH,
            reord_seen: 0,
            reordered_by: 0,
            frto: false,
            frto_new_data: false,
            tlp_high_seq: None,
            tlp_retransmitted: false,
            forced: None,
            cwr_due: false,
            timer: None,
            backoff: 0,
            retransmits: 0,
            user_timeout: None,
            unanswered_since: Instant::ZERO,
            probes_out: 0,
            window_probe: false,
            hack1: hack1::Hack1::default(),
            next_seg: next_seg::NextSeg::default(),
            schedule: config.schedule.build(),
            suppressed: false,
            usage: usage::Usage::default(),
            next_departure: Instant::ZERO,
            allowance: u64::MAX,
            held: false,
            delivery: Delivery::default(),
            lost_reported: 0,
            last_send: Instant::ZERO,
            last_arrival: Instant::ZERO,
            newly_sacked: 0,
            last_small: 0,
            ts_offset: (seed >> 32) as u32,
            sack_ok: config.sack,
            timestamps: config.timestamps,
            newreno: newreno::NewReno::default(),
            config: *config,
            totals: Totals::default(),
        }
    }

    /// The handshake is over: data starts at `start`, and the peer's first window is known.
    pub(crate) fn on_established(&mut self, agreed: Agreed, start: u64, window: u64, wl1: u64) {
        self.mss = agreed.mss.max(1);
        self.sack_ok = agreed.sack;
        self.timestamps = agreed.timestamps;
        self.board = Scoreboard::new(start, self.mss);
        self.high_seq = start;
        self.usage.on_start(start);
        self.snd_wnd = window;
        self.max_window = window;
        self.snd_wl1 = wl1;
        self.snd_wl2 = start;
    }

    /// The path takes segments of so many bytes, no longer ones. What repeats what is known, as each packet of a window brings it,
    /// says nothing (Linux tcp_v4_mtu_reduced).
    pub(crate) fn on_path_mss(&mut self, now: Instant, mss: u32) {
        if mss < self.mss {
            self.mss = mss;
            self.board.set_mss(mss);
            self.resend_too_long(now);
        }
    }

    /// A timestamp of the peer in the handshake.
    pub(crate) fn on_peer_timestamp(&mut self, tsval: u32, not_before: Option<Instant>, arrival: Instant) {
        self.congestion.on_peer_timestamp(tsval, not_before, arrival);
    }

    /// The retransmission timeout with its backoff (RFC 6298, Section 5.5).
    pub(crate) fn rto(&self) -> Duration {
        let rto = (self.rtt.rto() + self.repair_margin()) * (1 << self.backoff.min(16));
        let least = if self.owns_response { self.detection.least_rto() } else { Duration::ZERO };
        rto.max(least).min(crate::rtt::RTO_MAX)
    }

    /// TSval of a segment that leaves at `now`.
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        self.config.timestamp_clock.ticks(now).wrapping_add(self.ts_offset)
    }

    /// Pipe.
    pub(crate) fn in_flight(&self) -> u32 {
        self.board.in_flight().saturating_sub(self.newreno.sacked)
    }

    /// Tells the observer.
    pub(crate) fn emit(&mut self, now: Instant, event: Event) {
        if let Some(observer) = &mut self.observer {
            observer.on_event(now, event);
        }
    }

    /// The algorithms' names.
    pub(crate) fn congestion(&self) -> &dyn CongestionControl {
        &*self.congestion
    }

    /// Goes over to another state and tells the congestion control.
    fn set_state(&mut self, now: Instant, state: CaState) {
        if self.state == state {
            return;
        }
        let from = core::mem::replace(&mut self.state, state);
        let sample = self.base_sample(now);
        self.window = self.congestion.on_state(state, &sample, self.window);
        self.emit(now, Event::State { from, to: state });
    }

    fn congestion_event(&mut self, now: Instant, event: CongestionEvent) {
        let sample = self.base_sample(now);
        self.window = self.congestion.on_event(event, &sample, self.window);
    }

    /// What is known without an ACK.
    #[inline(always)]
    fn base_sample(&self, now: Instant) -> AckSample {
        AckSample {
            now,
            state: self.state,
            in_flight: self.in_flight(),
            una: self.board.una(),
            nxt: self.board.nxt(),
            highest_delivered: self.board.highest_sack(),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min().unwrap_or_default(),
            cwnd_limited: self.usage.is_cwnd_limited(self.window),
            delivered_total: self.rate.delivered(),
            lost_total: self.board.lost_total(),
            pacer_ahead: self.next_departure.saturating_since(now),
            app_limited: self.rate.is_app_limited(),
            mss: self.mss,
            prior_cwnd: self.prior_cwnd,
            last_send: self.last_send,
            ..AckSample::default()
        }
    }
}

#[cfg(test)]
mod tests;
