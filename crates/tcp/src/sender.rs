//! The sending half of a connection. It has the sender's part of Linux struct tcp_sock, and works in the order of
//! tcp_ack.
//!
//! Each part of its state owns its fields, has a file and does not know the whole. The rules lie above the parts. `ack`
//! has the order in which an ACK passes the parts, `transmit` the send rule, `timeouts` the timers.

mod accounting;
mod ack;
mod congestion_response;
mod control;
mod episode;
mod hack1;
mod messages;
mod newreno;
mod next_seg;
mod pacer;
mod peer_window;
mod recovery;
mod reordering;
mod report;
mod rounds;
mod sacks;
mod sound;
mod suppression;
mod tail_probe;
mod timeouts;
mod timer;
mod transitions;
mod transmit;
mod undo;
mod usage;

use alloc::boxed::Box;

use paceline_wire::{Duration, Instant};

use crate::config::Config;
use crate::congestion::{AckSample, CongestionControl, CongestionEvent, Sending};
use crate::detection::AnyDetection;
use crate::rate_sample::DeliveryRate;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;

pub(crate) use messages::{AckInput, AckVerdict, Supply, Transmission};

/// The sending half. Parts are serialised flat, so that programs from before the parts existed can read them, and the
/// reverse.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Sender {
    pub(crate) board: Scoreboard,
    pub(crate) rtt: RttEstimator,
    pub(crate) rate: DeliveryRate,
    #[serde(flatten)]
    pub(crate) control: control::WindowControl,
    detection: Box<dyn AnyDetection>,
    /// The loss detection decides when to respond to congestion.
    #[serde(rename = "separate")]
    owns_response: bool,
    #[serde(flatten)]
    pub(crate) episode: episode::Episode,
    #[serde(flatten)]
    pub(crate) reordering: reordering::Reordering,
    #[serde(flatten)]
    tail_probe: timer::TailProbe,
    #[serde(flatten)]
    pub(crate) timer: timer::Timer,
    #[serde(flatten)]
    pub(crate) peer: peer_window::PeerWindow,
    #[serde(flatten)]
    pub(crate) pacer: pacer::Pacer,
    #[serde(flatten)]
    pub(crate) report: report::Report,
    /// Segment to send whatever cwnd says: the tail loss probe, or the first segment after a timeout or at the start of
    /// recovery.
    forced: Option<messages::ForcedSegment>,
    hack1: hack1::Hack1,
    next_seg: next_seg::NextSeg,
    newreno: newreno::NewReno,
    usage: usage::Usage,
    pub(crate) mss: u32,
    /// Offset added to clock ticks to form a timestamp.
    pub(crate) ts_offset: u32,
    sack_ok: bool,
    timestamps: bool,
    config: Config,
    pub(crate) totals: Totals,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
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
    #[serde(default)]
    pub(crate) ecn_reductions: u64,
}

/// Options that the handshake negotiated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NegotiatedOptions {
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
            control: control::WindowControl::new(config, seed),
            owns_response: detection.owns_response(),
            detection,
            episode: episode::Episode::new(start),
            reordering: reordering::Reordering::default(),
            tail_probe: timer::TailProbe::default(),
            timer: timer::Timer::default(),
            peer: peer_window::PeerWindow::new(config),
            pacer: pacer::Pacer::default(),
            report: report::Report::default(),
            forced: None,
            hack1: hack1::Hack1::default(),
            next_seg: next_seg::NextSeg::default(),
            newreno: newreno::NewReno::default(),
            usage: usage::Usage::default(),
            mss,
            ts_offset: (seed >> 32) as u32,
            sack_ok: config.sack,
            timestamps: config.timestamps,
            config: *config,
            totals: Totals::default(),
        }
    }

    /// The handshake is complete. Data starts at `start`, and the peer's first window is known.
    pub(crate) fn on_established(&mut self, agreed: NegotiatedOptions, start: u64, window: u64, wl1: u64) {
        self.mss = agreed.mss.max(1);
        self.sack_ok = agreed.sack;
        self.timestamps = agreed.timestamps;
        self.board = Scoreboard::new(start, self.mss);
        self.episode.high_seq = start;
        self.usage.on_start(start);
        self.peer.open(window, wl1, start);
    }

    /// Lowers the segment size to `mss` bytes for the path. Repeated reports, as each packet of a window may cause,
    /// have no effect (Linux tcp_v4_mtu_reduced).
    pub(crate) fn on_path_mss(&mut self, now: Instant, mss: u32) {
        if mss < self.mss {
            self.mss = mss;
            self.board.set_mss(mss);
            self.resend_too_long(now);
        }
    }

    /// Passes a timestamp of the peer from the handshake.
    pub(crate) fn on_peer_timestamp(&mut self, tsval: u32, not_before: Option<Instant>, arrival: Instant) {
        self.control.congestion.on_peer_timestamp(tsval, not_before, arrival);
    }

    /// The retransmission timeout with its backoff (RFC 6298, Section 5.5).
    pub(crate) fn rto(&self) -> Duration {
        let rto = (self.rtt.rto() + self.repair_margin()) * (1 << self.timer.backoff.min(16));
        let least = if self.owns_response { self.detection.least_rto() } else { Duration::ZERO };
        rto.max(least).min(crate::rtt::RTO_MAX)
    }

    /// TSval of a segment that leaves at `now`.
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        self.config.timestamp_clock.ticks(now).wrapping_add(self.ts_offset)
    }

    /// Segments in flight (pipe of RFC 6675).
    pub(crate) fn in_flight(&self) -> u32 {
        self.board.in_flight().saturating_sub(self.newreno.sacked)
    }

    /// The congestion control.
    pub(crate) fn congestion(&self) -> &dyn CongestionControl {
        &*self.control.congestion
    }

    fn congestion_event(&mut self, now: Instant, event: CongestionEvent) {
        let sample = self.base_sample(now);
        self.control.on_event(event, &sample);
    }

    /// Returns the sample fields that need no ACK.
    #[inline(always)]
    fn base_sample(&self, now: Instant) -> AckSample {
        AckSample {
            now,
            state: self.episode.state,
            in_flight: self.in_flight(),
            una: self.board.una(),
            nxt: self.board.nxt(),
            highest_delivered: self.board.highest_sack(),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min().unwrap_or_default(),
            cwnd_limited: self.usage.is_cwnd_limited(self.control.window),
            delivered_total: self.rate.delivered(),
            lost_total: self.board.lost_total(),
            mss: self.mss,
            prior_cwnd: self.episode.prior_cwnd,
            sending: Sending {
                last_send: self.pacer.last_send,
                pacer_ahead: self.pacer.next_departure.saturating_since(now),
                app_limited: self.rate.is_app_limited(),
            },
            ..AckSample::default()
        }
    }
}

#[cfg(test)]
mod tests;
