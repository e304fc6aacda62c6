//! Bandwidth adaptive rate reduction (OR, Section II.E).

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

use super::{Entry, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};

/// W = B x RTT (Eq. (4)), B measured over the last M ACKs (Eq. (3)), some of them from before the loss.
#[derive(Clone, Debug, Default)]
pub struct Barr {
    /// When each ACK came, and what had been delivered by then, cumulatively or by SACK: the cumulative ACK alone stands
    /// still in recovery.
    acks: VecDeque<(Instant, u64)>,
    delivered: u64,
    w: u32,
    /// cwnd when recovery began.
    prior_cwnd: u32,
    rtt: Duration,
}

/// slide_wnd_size of Section VI.
const M: usize = 200;

impl RateReduction for Barr {
    fn name(&self) -> ReductionName {
        ReductionName::Barr
    }

    fn on_measurement(&mut self, sample: &AckSample) {
        if sample.delivered == 0 {
            return;
        }
        self.delivered += u64::from(sample.delivered);
        if let Some(rtt) = sample.rtt {
            self.rtt = rtt;
        }
        if self.acks.len() > M {
            self.acks.pop_front();
        }
        self.acks.push_back((sample.now, self.delivered));
    }

    fn enter(&mut self, _entry: &Entry, window: Window) -> u32 {
        self.w = window.cwnd;
        self.prior_cwnd = window.cwnd;
        self.w
    }

    fn on_ack(&mut self, _sample: &AckSample, _window: &mut Window) -> u32 {
        if let (Some(first), Some(last)) = (self.acks.front(), self.acks.back()) {
            let time = last.0.saturating_since(first.0).as_nanos();
            if time > 0 {
                let packets = u128::from(last.1 - first.1) * u128::from(self.rtt.as_nanos());
                self.w = u32::try_from(packets.div_ceil(u128::from(time))).unwrap_or(u32::MAX).max(2);
            }
        }
        self.w
    }

    /// cwnd and ssthresh are not affected by the loss (Section VII.C).
    fn exit(&mut self, _window: Window) -> u32 {
        self.w.max(self.prior_cwnd)
    }

    fn lowers_ssthresh(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_the_path_delivers_in_a_round_trip() {
        let mut barr = Barr::default();
        let mut window = Window::new(180, u32::MAX);
        let mut sample =
            AckSample { delivered: 2, rtt: Some(Duration::from_millis(100)), ..Default::default() };
        // Two packets every 2 ms: 100 per RTT.
        for n in 0..400u64 {
            sample.now = Instant::ZERO + Duration::from_millis(2 * n);
            barr.on_measurement(&sample);
        }
        let entry = Entry { now: sample.now, recover_fs: 180, in_flight: 170, srtt: Duration::ZERO };
        assert_eq!(barr.enter(&entry, window), 180);
        assert_eq!(barr.on_ack(&sample, &mut window), 100);
        assert!(barr.acks.len() <= M + 1);
    }
}
