//! Dynamic receive window adjustment (DRWA, Algorithm 3): the window follows the data of one round trip. Its factor is
//! larger while the RTT is near its minimum, and smaller the longer the queue is. So the RTT settles at lambda x
//! RTTmin.

use paceline_wire::{Duration, Instant};

use super::adaptive::AdaptiveLambda;
use super::base_rtt::{BaseRtt, ratio};
use super::window_rtt::WindowRtt;
use super::{Arrival, PathView, ReceiveWindow, ReceiveWindowName};
use crate::config::Config;

/// State of Algorithm 3.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Drwa {
    name: ReceiveWindowName,
    lambda: Lambda,
    rwnd: u64,
    /// Smoothed; `None` before the first round trip is over.
    cwnd_est: Option<u64>,
    rtt_est: Duration,
    rtt_min: BaseRtt,
    /// Samples from timestamps within the last RTT: their sum and number.
    samples: (Duration, u64),
    echo: Option<u32>,
    measurement: WindowRtt,
    /// When `data_rcvd` was last taken, and the position read by then.
    since: Instant,
    copied_at: u64,
    /// The window opens again after a probe of RTTmin or a silence.
    opening: bool,
    /// When data last came, and when the last silence ended.
    last_data: Instant,
    resumed: Instant,
    /// The right edge last advertised.
    edge: u64,
    floor: u64,
    max: u64,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
enum Lambda {
    Fixed(u32),
    Adaptive(AdaptiveLambda),
}

/// 1 - alpha = 1 / 8 (Section 4.1).
const SMOOTHING: u64 = 8;
/// Our choice: at least this many segments are offered, because a loss is found only with three more behind it (RFC
/// 5681).
const FLOOR_SEGMENTS: u64 = 4;

impl Drwa {
    /// With the lambda of `config`.
    pub fn new(config: &Config) -> Self {
        let buffer = config.receive_buffer;
        Drwa {
            name: ReceiveWindowName::Drwa,
            lambda: Lambda::Fixed(config.drwa_lambda_percent),
            // The operating system's window: with rwnd = 0, as printed, nothing would ever be sent.
            rwnd: u64::from(buffer.initial()),
            cwnd_est: None,
            rtt_est: Duration::ZERO,
            rtt_min: BaseRtt::new(),
            samples: (Duration::ZERO, 0),
            echo: None,
            measurement: WindowRtt::default(),
            since: Instant::ZERO,
            copied_at: 0,
            opening: false,
            last_data: Instant::ZERO,
            resumed: Instant::ZERO,
            edge: 0,
            floor: FLOOR_SEGMENTS * u64::from(config.mss),
            max: u64::from(buffer.max()),
        }
    }

    /// RTT by windows of data, as if the peer had no timestamps.
    pub fn without_timestamps(config: &Config) -> Self {
        Drwa { name: ReceiveWindowName::DrwaWindow, ..Drwa::new(config) }
    }

    /// As printed: RTTmin is the shortest RTT ever seen, even if the path has changed. A round with a silence counts
    /// like any other. The start and the floor are ours here, too, because as printed nothing would ever be sent.
    pub fn text(config: &Config) -> Self {
        Drwa { name: ReceiveWindowName::DrwaText, ..Drwa::new(config) }
    }

    /// A lambda that follows the variation of the link, and starts as `config` says.
    pub fn adaptive(config: &Config) -> Self {
        let lambda = Lambda::Adaptive(AdaptiveLambda::new(config.drwa_lambda_percent));
        Drwa { name: ReceiveWindowName::DrwaAdaptive, lambda, ..Drwa::new(config) }
    }

    fn lambda_percent(&self) -> u32 {
        match &self.lambda {
            Lambda::Fixed(percent) => *percent,
            Lambda::Adaptive(adaptive) => adaptive.percent(),
        }
    }

    /// Our choice: in a silence longer than RTTest the peer had nothing to send or waited for a timeout, or a middlebox
    /// held data back. Neither the round of the silence nor an RTT that began before its end shows a queue.
    fn notice_silence(&mut self, now: Instant) {
        let printed = self.name == ReceiveWindowName::DrwaText;
        if !printed && !self.rtt_est.is_zero() && now.saturating_since(self.last_data) > self.rtt_est {
            self.resumed = now;
            self.opening = true;
        }
    }

    /// Takes a sample. RTTest is known from the first one on.
    fn on_sample(&mut self, now: Instant, rtt: Duration) {
        if self.rtt_est.is_zero() {
            self.rtt_est = rtt;
            self.since = now;
            self.rtt_min.on_round(now, rtt, self.lambda_percent());
        }
        if let Lambda::Adaptive(adaptive) = &mut self.lambda {
            adaptive.on_sample(rtt);
        }
        if self.rtt_min.on_sample(now, rtt) {
            self.go_on(now);
        }
    }

    /// A probe is over. cwnd_est and RTTest, which belong together, keep their values from before it. The round in
    /// which the window opens again measures nothing.
    fn go_on(&mut self, now: Instant) {
        self.since = now;
        self.opening = true;
        self.adjust();
    }

    fn on_round(&mut self, now: Instant, data_rcvd: u64) {
        if let (sum, count @ 1..) = core::mem::take(&mut self.samples) {
            self.rtt_est = sum / count;
        }
        self.rtt_min.on_round(now, self.rtt_est, self.lambda_percent());
        let cwnd_est = match self.cwnd_est {
            None => data_rcvd,
            Some(cwnd_est) => cwnd_est - cwnd_est / SMOOTHING + data_rcvd / SMOOTHING,
        };
        self.cwnd_est = Some(cwnd_est);
        if let Lambda::Adaptive(adaptive) = &mut self.lambda {
            adaptive.on_round(self.rtt_min.get());
        }
        if self.name != ReceiveWindowName::DrwaText && self.rtt_min.is_doubtful(now) {
            self.rtt_min.probe(now, self.rtt_est, data_rcvd, self.floor);
        }
        self.adjust();
    }

    /// rwnd = lambda x RTTmin / RTTest x cwnd_est.
    fn adjust(&mut self) {
        let Some(cwnd_est) = self.cwnd_est else { return };
        let one_rtt_min = ratio(cwnd_est, self.rtt_min.get(), self.rtt_est);
        let rwnd = one_rtt_min.saturating_mul(u64::from(self.lambda_percent())) / 100;
        self.rwnd = rwnd.clamp(self.floor, self.max.max(self.floor));
    }
}

impl ReceiveWindow for Drwa {
    fn name(&self) -> ReceiveWindowName {
        self.name
    }

    fn start_at(&mut self, copied: u64) {
        self.copied_at = copied;
    }

    fn on_segment(&mut self, arrival: &Arrival) -> bool {
        self.edge = arrival.edge;
        self.last_data = arrival.now;
        if let Some(rtt) = self.measurement.on_segment(arrival)
            && self.echo.is_none()
        {
            self.on_sample(arrival.now, rtt);
            self.samples = (rtt, 1);
        }
        false
    }

    /// Only the first segment that an ACK released shows the RTT, because the others came later (Linux
    /// rcv_rtt_last_tsecr).
    fn on_rtt(&mut self, now: Instant, echo: u32, rtt: Duration) {
        if self.name == ReceiveWindowName::DrwaWindow || self.echo == Some(echo) {
            return;
        }
        self.echo = Some(echo);
        self.notice_silence(now);
        if now - rtt < self.resumed {
            return;
        }
        self.on_sample(now, rtt);
        let (sum, count) = self.samples;
        self.samples = (sum + rtt, count + 1);
    }

    fn on_read(&mut self, now: Instant, copied: u64) {
        if self.rtt_min.probe_window().is_some() {
            if self.rtt_min.on_outstanding(now, self.edge.saturating_sub(copied)) {
                self.go_on(now);
            }
            return;
        }
        if self.rtt_est.is_zero() || now.saturating_since(self.since) < self.rtt_est {
            return;
        }
        if core::mem::take(&mut self.opening) {
            self.samples = (Duration::ZERO, 0);
        } else {
            self.on_round(now, copied - self.copied_at);
        }
        self.copied_at = copied;
        self.since = now;
    }

    fn size(&self) -> u64 {
        self.rtt_min.probe_window().unwrap_or(self.rwnd)
    }

    fn free(&self, unread: u64) -> u64 {
        self.size().saturating_sub(unread)
    }

    fn path(&self) -> PathView {
        PathView {
            rtt: self.rtt_est,
            rtt_min: if self.rtt_est.is_zero() { Duration::ZERO } else { self.rtt_min.get() },
            lambda_percent: self.lambda_percent(),
        }
    }
}
