//! Bandwidth adaptive rate reduction (OR, Section II.E).

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

use super::{Entry, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};
use crate::filter::WindowedMax;

/// W = B x RTT (Eq. (4)), B measured over the last M ACKs (Eq. (3)), some of them from before the loss.
///
/// Our choice: the highest B of the last RTT. At 100 Mbit/s M ACKs come within a fraction of an RTT, and a burst of losses
/// leaves a gap in them at any rate; a pause of the sender's own is not what the path can carry, and a W that follows it
/// pauses again one RTT later.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Barr {
    /// When each of the last M ACKs came, and what had been delivered by then, cumulatively or by SACK, because the
    /// cumulative ACK alone stands still in recovery.
    acks: VecDeque<Point>,
    delivered: u64,
    /// Packets per second times 1,024, in the window of an RTT.
    bandwidth: WindowedMax,
    w: u32,
    /// cwnd when recovery began.
    prior_cwnd: u32,
    rtt: Duration,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Point {
    at: Instant,
    delivered: u64,
}

/// slide_wnd_size of Section VI.
const M: usize = 200;
/// Of the rate.
const SCALE: u64 = 1_024;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl Default for Barr {
    fn default() -> Self {
        Barr {
            acks: VecDeque::with_capacity(M + 1),
            delivered: 0,
            bandwidth: WindowedMax::new(0, 0),
            w: 0,
            prior_cwnd: 0,
            rtt: Duration::ZERO,
        }
    }
}

impl Barr {
    /// Eq. (3), once M ACKs have come.
    fn measure(&mut self, now: Instant) {
        self.acks.push_back(Point { at: now, delivered: self.delivered });
        if self.acks.len() <= M {
            return;
        }
        let Some(first) = self.acks.pop_front() else { return };
        let time = now.saturating_since(first.at).as_nanos().max(1);
        let packets = u128::from(self.delivered - first.delivered);
        let rate = packets * u128::from(SCALE * NANOS_PER_SECOND) / u128::from(time);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        self.bandwidth.update(self.rtt.as_nanos(), now.as_nanos(), rate);
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
        self.delivered += u64::from(sample.delivered);
        self.measure(sample.now);
    }

    fn enter(&mut self, _entry: &Entry, window: Window) -> u32 {
        self.w = window.cwnd;
        self.prior_cwnd = window.cwnd;
        self.w
    }

    fn on_ack(&mut self, sample: &AckSample, window: &mut Window) -> u32 {
        let grown = slow_start(self.w, sample, window);
        let per_rtt = u128::from(self.bandwidth.get()) * u128::from(self.rtt.as_nanos());
        let estimate = per_rtt.div_ceil(u128::from(SCALE * NANOS_PER_SECOND));
        let estimate = u32::try_from(estimate).unwrap_or(u32::MAX);
        if estimate > 0 {
            self.w = estimate.max(if grown > self.w { grown } else { 2 });
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

/// Slow start goes on during recovery where the loss does not affect ssthresh: at high loss rates a flow is in recovery
/// before slow start ends, and would never fill its path. Our choice, because the text says that neither cwnd nor ssthresh
/// is affected, and nothing of how the window grows.
fn slow_start(w: u32, sample: &AckSample, window: &Window) -> u32 {
    match w < window.ssthresh && sample.cwnd_limited {
        true => w.saturating_add(sample.delivered).min(window.ssthresh),
        false => w,
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
        assert_eq!(barr.acks.len(), M);
    }
}
