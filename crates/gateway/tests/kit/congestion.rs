//! Congestion window of the model sender, in segments: CUBIC (RFC 9438) with Linux's HyStart, or a constant.

use paceline_wire::{Duration, Instant};

const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// RFC 9438, Section 4.3: the Reno-friendly increase for BETA.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Linux: HyStart needs a window of at least this many segments.
const HYSTART_LOW_WINDOW: f64 = 16.0;

/// The information of one ACK.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    pub now: Instant,
    /// Segments newly acknowledged, cumulatively or selectively.
    pub acked: u32,
    pub rtt: Option<Duration>,
    /// The window is the limit, not the application or the peer.
    pub cwnd_limited: bool,
    pub una: u64,
    pub nxt: u64,
}

/// The algorithm of the window.
#[derive(Clone, Debug)]
pub enum Congestion {
    Fixed(u32),
    Cubic(Box<Cubic>),
}

impl Congestion {
    pub fn cubic(initial_window: u32, hystart: bool) -> Self {
        Congestion::Cubic(Box::new(Cubic {
            cwnd: f64::from(initial_window),
            ssthresh: f64::INFINITY,
            prior: None,
            w_max: 0.0,
            epoch: None,
            hystart: hystart.then(HyStart::default),
            delay_min: None,
        }))
    }

    pub fn cwnd(&self) -> u32 {
        match self {
            Congestion::Fixed(segments) => *segments,
            Congestion::Cubic(cubic) => cubic.cwnd.max(1.0) as u32,
        }
    }

    pub fn ssthresh(&self) -> u32 {
        match self {
            Congestion::Fixed(segments) => *segments,
            Congestion::Cubic(cubic) => cubic.ssthresh.min(1e9) as u32,
        }
    }

    pub fn in_slow_start(&self) -> bool {
        matches!(self, Congestion::Cubic(cubic) if cubic.cwnd < cubic.ssthresh)
    }

    /// Sets the window for PRR, a timeout or the end of recovery.
    pub fn set_cwnd(&mut self, segments: u32) {
        if let Congestion::Cubic(cubic) = self {
            cubic.cwnd = f64::from(segments.max(1));
        }
    }

    pub fn on_ack(&mut self, ack: &AckSample) {
        if let Congestion::Cubic(cubic) = self {
            cubic.on_ack(ack);
        }
    }

    /// A congestion event. Lowers ssthresh. The caller sets the window (PRR) or leaves it.
    pub fn on_loss(&mut self) {
        if let Congestion::Cubic(cubic) = self {
            cubic.on_loss();
        }
    }

    /// Undoes a spurious congestion event.
    pub fn undo(&mut self) {
        if let Congestion::Cubic(cubic) = self
            && let Some((cwnd, ssthresh)) = cubic.prior.take()
        {
            cubic.cwnd = cubic.cwnd.max(cwnd);
            cubic.ssthresh = cubic.ssthresh.max(ssthresh);
            cubic.epoch = None;
        }
    }

    /// Nothing was sent for `idle`, which is longer than the RTO. Reduces the window by RFC 2861, as in Linux.
    pub fn on_idle(&mut self, idle: Duration, rto: Duration, initial_window: u32) {
        if let Congestion::Cubic(cubic) = self {
            let mut rest = idle;
            while rest > rto && cubic.cwnd > f64::from(initial_window) {
                cubic.cwnd = (cubic.cwnd / 2.0).max(f64::from(initial_window));
                rest -= rto;
            }
            cubic.epoch = None;
        }
    }
}

/// State of CUBIC, named as in RFC 9438.
#[derive(Clone, Debug)]
pub struct Cubic {
    cwnd: f64,
    ssthresh: f64,
    prior: Option<(f64, f64)>,
    w_max: f64,
    epoch: Option<Epoch>,
    hystart: Option<HyStart>,
    delay_min: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Epoch {
    start: Instant,
    origin: f64,
    k: f64,
    w_est: f64,
}

#[derive(Clone, Debug, Default)]
struct HyStart {
    round_end: u64,
    round_start: Instant,
    last_ack: Instant,
    samples: u32,
    rtt: Option<Duration>,
}

impl Cubic {
    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.delay_min = Some(self.delay_min.map_or(rtt, |min| min.min(rtt)));
            if self.cwnd < self.ssthresh && self.cwnd >= HYSTART_LOW_WINDOW {
                self.hystart(ack, rtt);
            }
        }
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = f64::from(ack.acked);
        if self.cwnd < self.ssthresh {
            let grown = (self.cwnd + acked).min(self.ssthresh.max(self.cwnd));
            acked -= grown - self.cwnd;
            self.cwnd = grown;
        }
        if acked > 0.0 {
            self.avoid_congestion(ack.now, acked);
        }
    }

    fn avoid_congestion(&mut self, now: Instant, acked: f64) {
        let (cwnd, w_max) = (self.cwnd, self.w_max);
        let epoch = self.epoch.get_or_insert_with(|| {
            let k = if cwnd < w_max { ((w_max - cwnd) / C).cbrt() } else { 0.0 };
            Epoch { start: now, origin: cwnd.max(w_max), k, w_est: cwnd }
        });
        let t = now.saturating_since(epoch.start) + self.delay_min.unwrap_or(Duration::ZERO);
        let target = (epoch.origin + C * (t.as_secs_f64() - epoch.k).powi(3)).clamp(cwnd, 1.5 * cwnd);
        let alpha = if epoch.w_est >= w_max { 1.0 } else { ALPHA };
        epoch.w_est += alpha * acked / cwnd;
        self.cwnd = if epoch.w_est > target {
            (cwnd + acked).min(epoch.w_est)
        } else {
            // Linux grows slowly even where the curve is flat: one segment in 100 windows.
            cwnd + acked * ((target - cwnd) / cwnd).max(0.01 / cwnd)
        };
    }

    fn on_loss(&mut self) {
        self.prior = Some((self.cwnd, self.ssthresh));
        self.w_max = if self.cwnd < self.w_max { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd };
        self.ssthresh = (self.cwnd * BETA).max(2.0);
        self.epoch = None;
    }

    /// `hystart_update` of Linux. Leaves slow start after an ACK train of half a round trip, or if the delay rises.
    fn hystart(&mut self, ack: &AckSample, rtt: Duration) {
        let (Some(state), Some(delay_min)) = (&mut self.hystart, self.delay_min) else { return };
        if ack.una > state.round_end {
            *state = HyStart {
                round_end: ack.nxt,
                round_start: ack.now,
                last_ack: ack.now,
                samples: 0,
                rtt: None,
            };
        }
        let mut found = false;
        if ack.now.saturating_since(state.last_ack) <= Duration::from_millis(2) {
            state.last_ack = ack.now;
            found = ack.now.saturating_since(state.round_start) > delay_min / 2;
        }
        state.rtt = Some(state.rtt.map_or(rtt, |min| min.min(rtt)));
        state.samples += 1;
        let rise = (delay_min / 8).max(Duration::from_millis(4)).min(Duration::from_millis(16));
        found |= state.samples > 8 && state.rtt.is_some_and(|rtt| rtt > delay_min + rise);
        if found {
            self.ssthresh = self.cwnd;
        }
    }
}
