//! The interface of congestion controls: the window, what a control is told, what it answers.

use core::fmt::Debug;

use paceline_wire::{Duration, Instant, Rate};

use crate::names::named;
use crate::rate_sample::RateSample;

named! {
    /// A congestion control by name.
    CongestionName {
        /// RFC 5681, as in Linux.
        Reno = "reno",
        /// RFC 9438, as in Linux.
        #[default]
        Cubic = "cubic",
        /// Fu and Liew 2003, as in Linux.
        Veno = "veno",
        /// Westwood+, as in Linux.
        Westwood = "westwood",
        /// Brakmo and Peterson 1995, as in Linux.
        Vegas = "vegas",
        /// BBR version 1, as in Linux 6.x.
        Bbr = "bbr",
        /// TCP-RRE, Leong et al. 2013.
        Rre = "rre",
        /// Copa, Arun and Balakrishnan 2018.
        Copa = "copa",
        /// The sender of ABC, Goyal et al. 2020. It needs ECN at both ends and a router that knows ABC; else it is CUBIC.
        Abc = "abc",
    }
}

/// Decides how much may be in flight, and how fast. An instance belongs to one connection. It knows only its arguments,
/// and returns the new window.
pub trait CongestionControl: Debug + Send {
    /// Name of the algorithm.
    fn name(&self) -> CongestionName;

    /// Takes measurements. Called before loss detection, in every state, for every ACK that acknowledges something. The
    /// rate is not known yet.
    fn on_measurement(&mut self, _sample: &AckSample, window: Window) -> Window {
        window
    }

    /// Moves the window. Called after loss detection, with the rate, for every ACK outside recovery that may raise the
    /// window. With [`owns_window`](Self::owns_window) it is called for every ACK.
    fn on_ack(&mut self, sample: &AckSample, window: Window) -> Window;

    /// The threshold after a loss (Linux ssthresh hook). Called once when a reduction begins.
    fn ssthresh(&mut self, window: Window) -> u32;

    /// Returns cwnd after a spurious reduction (RFC 4015, Section 3.2; Linux undo_cwnd hook).
    fn undo(&mut self, window: Window, prior_cwnd: u32) -> u32 {
        window.cwnd.max(prior_cwnd)
    }

    /// The sender enters another state.
    fn on_state(&mut self, _state: CaState, _sample: &AckSample, window: Window) -> Window {
        window
    }

    /// Takes a timestamp that the peer sent in the handshake. The peer made it after `not_before`, the departure of the
    /// segment that it answers, if that is known.
    fn on_peer_timestamp(&mut self, _tsval: u32, _not_before: Option<Instant>, _arrival: Instant) {}

    /// Takes an event other than an ACK.
    fn on_event(&mut self, _event: CongestionEvent, _sample: &AckSample, window: Window) -> Window {
        window
    }

    /// True if the algorithm sets the window in every state, recovery included. Then no rate reduction applies.
    fn owns_window(&self) -> bool {
        false
    }

    /// The pacing rate; `None` to send as ACKs arrive.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// True while the algorithm keeps the pipe nearly empty on purpose. Rates measured meanwhile say nothing about the
    /// path.
    fn limits_application(&self) -> bool {
        false
    }

    /// Number of windows that the send buffer should hold; `None` for no preference (Linux sndbuf_expand hook).
    fn send_buffer_windows(&self) -> Option<u32> {
        None
    }
}

/// The congestion window, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Window {
    /// Limit of the packets in flight.
    pub cwnd: u32,
    /// Acknowledged packets that are not yet enough for a step of `cwnd`.
    pub cwnd_cnt: u32,
    /// Slow start applies while `cwnd` is below this.
    pub ssthresh: u32,
    /// Upper limit of `cwnd`.
    pub clamp: u32,
    /// Number of packets that leave next without pacing.
    pub burst: u32,
}

/// `ssthresh` before the first loss (Linux TCP_INFINITE_SSTHRESH).
pub const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

impl Window {
    /// The window of a new connection.
    pub fn new(cwnd: u32, clamp: u32) -> Self {
        Window { cwnd, cwnd_cnt: 0, ssthresh: SSTHRESH_INFINITE, clamp: clamp.max(2), burst: 0 }
    }

    /// True if `cwnd` is below `ssthresh`.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows `cwnd` by the acknowledged packets, up to `ssthresh`. Returns the packets that are left (RFC 5681, Section
    /// 3.1; Linux tcp_slow_start).
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let rest = acked.saturating_sub(cwnd.saturating_sub(self.cwnd));
        self.cwnd = cwnd.min(self.clamp);
        rest
    }

    /// Grows `cwnd` by one for every `per` packets acknowledged (Linux tcp_cong_avoid_ai).
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
    /// True while a rate reduction limits sending (Linux tcp_in_cwnd_reduction).
    pub fn in_reduction(self) -> bool {
        matches!(self, CaState::Cwr | CaState::Recovery)
    }
}

/// Events other than ACKs that an algorithm may use (Linux enum tcp_ca_event).
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

/// The content of one ACK. Counts are in packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// When it arrived.
    pub now: Instant,
    /// The state of the sender.
    pub state: CaState,
    /// Packets newly delivered, by cumulative or selective acknowledgement.
    pub delivered: u32,
    /// Packets newly marked as lost.
    pub lost: u32,
    /// Bytes newly delivered.
    pub delivered_bytes: u64,
    /// Packets in flight before this ACK.
    pub prior_in_flight: u32,
    /// Packets in flight now.
    pub in_flight: u32,
    /// SND.UNA.
    pub una: u64,
    /// SND.NXT.
    pub nxt: u64,
    /// One past the highest byte that the receiver has.
    pub highest_delivered: u64,
    /// True if SND.UNA advanced.
    pub una_advanced: bool,
    /// RTT of the newly delivered segment that was sent last. Segments that were retransmitted do not count.
    pub rtt: Option<Duration>,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// Shortest RTT of five minutes.
    pub min_rtt: Duration,
    /// True if the window was used (Linux tcp_is_cwnd_limited).
    pub cwnd_limited: bool,
    /// Delivery rate.
    pub rate: RateSample,
    /// Total number of packets delivered.
    pub delivered_total: u64,
    /// Total number of packets lost.
    pub lost_total: u64,
    /// Payload of a full-sized packet.
    pub mss: u32,
    /// cwnd before the last reduction began.
    pub prior_cwnd: u32,
    /// Departure time of the newly delivered segment that was sent last. Segments that were retransmitted do not count.
    pub sent_at: Option<Instant>,
    /// Properties of the ACK itself.
    pub kind: AckKind,
    /// The sender's state when the ACK arrives.
    pub sending: Sending,
}

/// Properties of an ACK, whatever it acknowledges.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckKind {
    /// False if it is the plain ACK that header prediction expects (Linux CA_ACK_SLOWPATH).
    pub slow_path: bool,
    /// True if the receiver may have delayed it.
    pub delayed: bool,
    /// True if it reports nothing new: the receiver has got data that it had already.
    pub repeated: bool,
    /// The peer's timestamp, if timestamps are in use.
    pub tsval: Option<u32>,
    /// Time since the echoed timestamp was sent. Behind a hole the receiver echoes the last segment before the hole
    /// (RFC 7323, Section 4.3).
    pub echo_rtt: Option<Duration>,
    /// The ABC mark: true for accelerate, false for brake. `None` without a mark.
    pub accelerate: Option<bool>,
}

/// The sender's state when an ACK arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sending {
    /// Departure time of the last segment before the present one.
    pub last_send: Instant,
    /// Time until the pacer's next departure.
    pub pacer_ahead: Duration,
    /// True in an application-limited phase.
    pub app_limited: bool,
}

/// ssthresh as in Linux tcp_current_ssthresh: at least 3/4 of cwnd, except during a reduction.
pub(crate) fn current_ssthresh(state: CaState, window: Window) -> u32 {
    match state.in_reduction() {
        true => window.ssthresh,
        false => window.ssthresh.max((window.cwnd >> 1) + (window.cwnd >> 2)),
    }
}
