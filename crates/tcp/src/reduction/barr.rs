//! Bandwidth adaptive rate reduction (OR, Section II.E).

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

use super::{Entry, RateReduction, ReductionName, slow_start};
use crate::congestion::{AckSample, Window};

/// W = B x RTT (Eq. (4)), B measured over the last M ACKs (Eq. (3)), some of them from before the loss.
///
/// Our choice: and over two RTTs at least. At 100 Mbit/s M ACKs come within a fraction of an RTT; a pause then lowers W so
/// far that the sender itself pauses for longer, one RTT later, and so on. Over two RTTs the echo of a pause is half of it.
#[derive(Clone, Debug, Default)]
pub struct Barr {
    /// Points in time, an RTT / 64 apart or more, with what had been delivered by then, cumulatively or by SACK, because the
    /// cumulative ACK alone stands still in recovery.
    points: VecDeque<Point>,
    last: Point,
    w: u32,
    /// cwnd when recovery began.
    prior_cwnd: u32,
    rtt: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Point {
    at: Instant,
    acks: u64,
    delivered: u64,
}

/// slide_wnd_size of Section VI.
const M: u64 = 200;
/// Points per RTT that are kept.
const POINTS_PER_RTT: u64 = 64;

impl Barr {
    /// Drops points that the interval does not need.
    fn trim(&mut self) {
        let span = self.rtt * 2;
        while let Some(second) = self.points.get(1) {
            let long_enough = self.last.at.saturating_since(second.at) >= span;
            if self.last.acks - second.acks < M || !long_enough {
                return;
            }
            self.points.pop_front();
        }
    }
}

impl RateReduction for Barr {
    fn name(&self) -> ReductionName {
        ReductionName::Barr
    }

    fn on_measurement(&mut self, sample: &AckSample) {
        if sample.delivered == 0 {
            return;
        }
        if let Some(rtt) = sample.rtt {
            self.rtt = rtt;
        }
        self.last.at = sample.now;
        self.last.acks += 1;
        self.last.delivered += u64::from(sample.delivered);
        let apart = self.rtt / POINTS_PER_RTT;
        if self.points.back().is_none_or(|point| sample.now.saturating_since(point.at) >= apart) {
            self.points.push_back(self.last);
            self.trim();
        }
    }

    fn enter(&mut self, _entry: &Entry, window: Window) -> u32 {
        self.w = window.cwnd;
        self.prior_cwnd = window.cwnd;
        self.w
    }

    fn on_ack(&mut self, sample: &AckSample, window: &mut Window) -> u32 {
        let grown = slow_start(self.w, sample, window);
        if let Some(first) = self.points.front() {
            let time = self.last.at.saturating_since(first.at).as_nanos();
            if time > 0 {
                let packets =
                    u128::from(self.last.delivered - first.delivered) * u128::from(self.rtt.as_nanos());
                let estimate = u32::try_from(packets.div_ceil(u128::from(time))).unwrap_or(u32::MAX);
                self.w = estimate.max(if grown > self.w { grown } else { 2 });
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
        assert!(barr.points.len() as u64 <= M + 2 * POINTS_PER_RTT);
    }
}
