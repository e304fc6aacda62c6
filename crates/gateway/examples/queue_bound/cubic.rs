//! A CUBIC window (RFC 9438), exact enough for a rival: one reduction per window of losses, no timeouts.

use paceline_wire::{Duration, Instant};

/// Windows in packets.
#[derive(Debug)]
pub(crate) struct Cubic {
    pub(crate) cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    w_est: f64,
    epoch: Option<Instant>,
    outstanding: u64,
    next: u64,
    recover: u64,
}

impl Default for Cubic {
    fn default() -> Self {
        Cubic {
            cwnd: 10.0,
            ssthresh: f64::MAX,
            w_max: 0.0,
            w_est: 0.0,
            epoch: None,
            outstanding: 0,
            next: 0,
            recover: 0,
        }
    }
}

impl Cubic {
    pub(crate) fn may_send(&self) -> bool {
        (self.outstanding as f64) < self.cwnd
    }

    pub(crate) fn on_sent(&mut self) -> u64 {
        self.outstanding += 1;
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn on_ack(&mut self, now: Instant, rtt: Duration) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.cwnd < self.ssthresh {
            self.cwnd += 1.0;
            return;
        }
        let epoch = *self.epoch.get_or_insert(now);
        let k = ((self.w_max - self.cwnd_at_epoch()) / 0.4).max(0.0).cbrt();
        let t = now.saturating_since(epoch).as_secs_f64() + rtt.as_secs_f64();
        let target = (0.4 * (t - k).powi(3) + self.w_max).clamp(self.cwnd, 1.5 * self.cwnd);
        self.w_est += 0.53 / self.cwnd;
        self.cwnd = (self.cwnd + (target - self.cwnd) / self.cwnd).max(self.w_est);
    }

    fn cwnd_at_epoch(&self) -> f64 {
        0.7 * self.w_max
    }

    /// Reduces the window after a loss.
    pub(crate) fn on_loss(&mut self, _now: Instant) {
        self.outstanding = self.outstanding.saturating_sub(1);
        // One reduction per window: a loss does not count until a window of packets was sent after the last reduction.
        self.recover = self.recover.max(1);
        if self.next < self.recover {
            return;
        }
        self.w_max = self.cwnd;
        self.cwnd = (0.7 * self.cwnd).max(2.0);
        self.ssthresh = self.cwnd;
        self.w_est = self.cwnd;
        self.epoch = None;
        self.recover = self.next + self.cwnd as u64;
    }
}
