//! Dynamic right-sizing as in DRWA, Algorithms 1 and 2 (W. Feng et al., PIHSN 2002).

use paceline_wire::{Duration, Instant};

use super::window_rtt::WindowRtt;
use super::{Arrival, PathView, ReceiveWindow, ReceiveWindowName};
use crate::config::ReceiveBuffer;

/// The window is twice the data of a round trip, and never shrinks.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Drs {
    rwnd: u64,
    /// Algorithm 2: no more than `tcp_rmem_max`.
    tcp_rmem_max: Option<u64>,
    rtt_est: Duration,
    measurement: WindowRtt,
    /// When `data_rcvd` was last taken, and the position read by then.
    since: Instant,
    copied_at: u64,
}

impl Drs {
    /// Algorithm 1. It starts with the operating system's window. With rwnd = 0, as printed, nothing would ever be
    /// sent.
    pub fn new(buffer: ReceiveBuffer) -> Self {
        Drs {
            rwnd: u64::from(buffer.initial()),
            tcp_rmem_max: None,
            rtt_est: Duration::ZERO,
            measurement: WindowRtt::default(),
            since: Instant::ZERO,
            copied_at: 0,
        }
    }

    /// Algorithm 2: `tcp_rmem_max` is the largest size of `buffer`.
    pub fn clamped(buffer: ReceiveBuffer) -> Self {
        let max = u64::from(buffer.max());
        let drs = Drs::new(buffer);
        Drs { rwnd: drs.rwnd.min(max), tcp_rmem_max: Some(max), ..drs }
    }
}

impl ReceiveWindow for Drs {
    fn name(&self) -> ReceiveWindowName {
        match self.tcp_rmem_max {
            Some(_) => ReceiveWindowName::DrsClamped,
            None => ReceiveWindowName::Drs,
        }
    }

    fn start_at(&mut self, copied: u64) {
        self.copied_at = copied;
    }

    fn on_segment(&mut self, arrival: &Arrival) -> bool {
        if let Some(rtt) = self.measurement.on_segment(arrival) {
            self.rtt_est = rtt;
        }
        false
    }

    fn on_rtt(&mut self, _now: Instant, _echo: u32, _rtt: Duration) {}

    fn on_read(&mut self, now: Instant, copied: u64) {
        if self.rtt_est.is_zero() || now.saturating_since(self.since) < self.rtt_est {
            return;
        }
        let cwnd_est = copied - self.copied_at;
        let rwnd = self.rwnd.max(2 * cwnd_est);
        self.rwnd = self.tcp_rmem_max.map_or(rwnd, |max| rwnd.min(max));
        self.copied_at = copied;
        self.since = now;
    }

    fn size(&self) -> u64 {
        self.rwnd
    }

    fn free(&self, unread: u64) -> u64 {
        self.rwnd.saturating_sub(unread)
    }

    fn path(&self) -> PathView {
        PathView { rtt: self.rtt_est, ..PathView::default() }
    }
}
