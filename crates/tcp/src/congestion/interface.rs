//! The interface of congestion controls: the window that one moves, what it is told, what it answers.

use core::fmt::Debug;

use paceline_wire::{Duration, Instant, Rate};

use crate::names::named;
use crate::rate_sample::RateSample;

named! {
    /// A congestion control by name.
    CongestionName {
        /// RFC 5681, as Linux tcp_cong.c.
        Reno = "reno",
        /// RFC 9438, as Linux tcp_cubic.c.
        #[default]
        Cubic = "cubic",
        /// Fu and Liew 2003, as Linux tcp_veno.c.
        Veno = "veno",
        /// Westwood+, as Linux tcp_westwood.c.
        Westwood = "westwood",
        /// Brakmo and Peterson 1995, as Linux tcp_vegas.c.
        Vegas = "vegas",
        /// BBR version 1, as Linux 6.x tcp_bbr.c.
        Bbr = "bbr",
        /// TCP-RRE, Leong et al. 2013.
        Rre = "rre",
        /// Copa, Arun and Balakrishnan 2018.
        Copa = "copa",
        /// The sender of ABC, Goyal et al. 2020. It needs ECN at both ends and a router that knows ABC; else it is CUBIC.
        Abc = "abc",
    }
}

/// How much may be in flight, and how fast. An instance belongs to one connection, knows nothing of it but what it is
/// given, and returns the new window.
pub trait CongestionControl: Debug + Send {
    /// Which one it is.
    fn name(&self) -> CongestionName;

    /// Measures: every ACK that acknowledges something, in every state, before loss detection. The rate is not known yet.
    fn on_measurement(&mut self, _sample: &AckSample, window: Window) -> Window {
        window
    }

    /// Moves the window: every ACK that may raise it, outside recovery; every ACK where
    /// [`owns_window`](Self::owns_window). After loss detection, with the rate.
    fn on_ack(&mut self, sample: &AckSample, window: Window) -> Window;

    /// The threshold after a loss (Linux ssthresh hook). Called once when a reduction begins.
    fn ssthresh(&mut self, window: Window) -> u32;

    /// The window after a reduction that was not called for (RFC 4015, Section 3.2; Linux undo_cwnd hook).
    fn undo(&mut self, window: Window, prior_cwnd: u32) -> u32 {
        window.cwnd.max(prior_cwnd)
    }

    /// The sender goes over to another state.
    fn on_state(&mut self, _state: CaState, _sample: &AckSample, window: Window) -> Window {
        window
    }

    /// A timestamp of the peer in the handshake. It was made after `not_before`, where that is known: what it answers was
    /// sent then.
    fn on_peer_timestamp(&mut self, _tsval: u32, _not_before: Option<Instant>, _arrival: Instant) {}

    /// Something else happened.
    fn on_event(&mut self, _event: CongestionEvent, _sample: &AckSample, window: Window) -> Window {
        window
    }

    /// True when it sets the window in every state, recovery included, and no rate reduction applies.
    fn owns_window(&self) -> bool {
        false
    }

    /// The pace; `None` to send as ACKs arrive.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// True while it keeps the pipe empty on purpose, so that rates measured now say nothing.
    fn limits_application(&self) -> bool {
        false
    }

    /// How many windows the send buffer should hold, where it cares (Linux sndbuf_expand hook).
    fn send_buffer_windows(&self) -> Option<u32> {
        None
    }
}

/// The congestion window, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Window {
    /// How much may be in flight.
    pub cwnd: u32,
    /// Acknowledged packets that have not made a whole step of `cwnd` yet.
    pub cwnd_cnt: u32,
    /// Slow start below it.
    pub ssthresh: u32,
    /// The most that `cwnd` can be.
    pub clamp: u32,
    /// So many packets leave next whatever the pace.
    pub burst: u32,
}

/// `ssthresh` before the first loss (Linux TCP_INFINITE_SSTHRESH).
pub const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

impl Window {
    /// The window of a new connection.
    pub fn new(cwnd: u32, clamp: u32) -> Self {
        Window { cwnd, cwnd_cnt: 0, ssthresh: SSTHRESH_INFINITE, clamp: clamp.max(2), burst: 0 }
    }

    /// True below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows by what was acknowledged, up to the threshold; returns what is left (RFC 5681, Section 3.1; Linux
    /// tcp_slow_start).
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let rest = acked.saturating_sub(cwnd.saturating_sub(self.cwnd));
        self.cwnd = cwnd.min(self.clamp);
        rest
    }

    /// Grows by one for every `per` packets acknowledged (Linux tcp_cong_avoid_ai).
    pub fn additive_increase(&mut self, per: u32, acked: u32) {
        let per = per.max(1);
        if self.cwnd_cnt >= per {
            self.cwnd_cnt = 0;
            self.cwnd += 1;
        }
        self.cwnd_cnt += acked;
        if self.cwnd_cnt >= per {
            let steps = self.cwnd_cnt / per;
            self.cwnd_cnt -= steps * per;
            self.cwnd = self.cwnd.saturating_add(steps);
        }
        self.cwnd = self.cwnd.min(self.clamp);
    }
}

/// The state of the sender (Linux enum tcp_ca_state).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize,
)]
pub enum CaState {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Something was reported out of order.
    Disorder,
    /// The window is being reduced without a loss.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

impl CaState {
    /// True while a rate reduction decides (Linux tcp_in_cwnd_reduction).
    pub fn in_reduction(self) -> bool {
        matches!(self, CaState::Cwr | CaState::Recovery)
    }
}

/// What an algorithm may want to know beside ACKs (Linux enum tcp_ca_event).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionEvent {
    /// The first packet is sent while none is in flight.
    TransmissionStart,
    /// The window restarts after an idle time.
    WindowRestart,
    /// A reduction is over.
    ReductionComplete,
    /// The retransmission timer has expired.
    Timeout,
}

/// What one ACK says. Counts are in packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// When it arrived.
    pub now: Instant,
    /// The state of the sender.
    pub state: CaState,
    /// Newly delivered, cumulatively or selectively.
    pub delivered: u32,
    /// Newly taken for lost.
    pub lost: u32,
    /// Bytes newly delivered.
    pub delivered_bytes: u64,
    /// Pipe before this ACK.
    pub prior_in_flight: u32,
    /// Pipe now.
    pub in_flight: u32,
    /// SND.UNA.
    pub una: u64,
    /// SND.NXT.
    pub nxt: u64,
    /// One past the highest byte that the receiver has.
    pub highest_delivered: u64,
    /// SND.UNA moved.
    pub una_advanced: bool,
    /// Time since the segment sent last among those newly delivered and never retransmitted.
    pub rtt: Option<Duration>,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// The shortest RTT of five minutes.
    pub min_rtt: Duration,
    /// The window was used (Linux tcp_is_cwnd_limited).
    pub cwnd_limited: bool,
    /// Delivery rate.
    pub rate: RateSample,
    /// Packets delivered in all.
    pub delivered_total: u64,
    /// Packets lost in all.
    pub lost_total: u64,
    /// Payload of a full-sized packet.
    pub mss: u32,
    /// cwnd before the last reduction began.
    pub prior_cwnd: u32,
    /// When the segment was sent that was sent last among those newly delivered and never retransmitted.
    pub sent_at: Option<Instant>,
    /// What the ACK itself is like.
    pub kind: AckKind,
    /// What the sender does meanwhile.
    pub sending: Sending,
}

/// What an ACK is like, whatever it acknowledges.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckKind {
    /// It was not the plain ACK that header prediction expects (Linux CA_ACK_SLOWPATH).
    pub slow_path: bool,
    /// It may have been delayed by the receiver.
    pub delayed: bool,
    /// It says nothing new: the receiver has got something once more.
    pub repeated: bool,
    /// The peer's timestamp, where timestamps are used.
    pub tsval: Option<u32>,
    /// Time since the timestamp that it echoes was sent: behind a hole that of the last segment before the hole (RFC 7323, Section 4.3).
    pub echo_rtt: Option<Duration>,
    /// What it acknowledges was told to accelerate, or to brake (ABC).
    pub accelerate: Option<bool>,
}

/// What the sender does when an ACK comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sending {
    /// When a segment was last sent, before the present one.
    pub last_send: Instant,
    /// How far the pacer's next departure lies ahead.
    pub pacer_ahead: Duration,
    /// The connection is in an application-limited phase.
    pub app_limited: bool,
}

/// As Linux: what ssthresh would be without the present reduction.
pub(crate) fn current_ssthresh(state: CaState, window: Window) -> u32 {
    match state.in_reduction() {
        true => window.ssthresh,
        false => window.ssthresh.max((window.cwnd >> 1) + (window.cwnd >> 2)),
    }
}
