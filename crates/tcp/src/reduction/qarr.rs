//! Queue-length adaptive rate reduction (OR, Section II.D).

use super::{Entry, RateReduction, ReductionName, slow_start};
use crate::congestion::{AckSample, Window};

/// Keeps Q_T packets in the queue during recovery: W moves by Q_T - Q, in both directions (Section VII.C).
#[derive(Clone, Copy, Debug, Default)]
pub struct Qarr {
    w: u32,
    /// cwnd when recovery began.
    prior_cwnd: u32,
    /// When W was last moved, SND.NXT: what was sent before says nothing of the move.
    round_end: u64,
    /// The queue as the RTTs of this round show it: the shortest.
    queue: Option<u32>,
}

/// The target queue (queue_len_threshold of Section VI).
const Q_T: u32 = 5;

impl Qarr {
    /// Q_i = pipe (RTT - baseRTT) / RTT, Eq. (1).
    fn queue(sample: &AckSample) -> Option<u32> {
        let (rtt, base) = (sample.rtt?.as_micros().max(1), sample.min_rtt.as_micros());
        Some((u64::from(sample.prior_in_flight) * rtt.saturating_sub(base) / rtt) as u32)
    }
}

impl RateReduction for Qarr {
    fn name(&self) -> ReductionName {
        ReductionName::Qarr
    }

    fn enter(&mut self, _entry: &Entry, window: Window) -> u32 {
        *self = Qarr { w: window.cwnd, prior_cwnd: window.cwnd, round_end: 0, queue: None };
        self.w
    }

    /// Our choice: once per round trip in full, because what the queue shows is one RTT old: on every ACK it would
    /// overshoot by a window.
    fn on_ack(&mut self, sample: &AckSample, window: &mut Window) -> u32 {
        if self.queue.is_some_and(|queue| queue < Q_T) {
            self.w = slow_start(self.w, sample, window);
        }
        if let Some(queue) = Self::queue(sample) {
            self.queue = Some(self.queue.map_or(queue, |shortest| shortest.min(queue)));
        }
        let reached = sample.una.max(sample.highest_delivered);
        if reached > self.round_end {
            if let Some(queue) = self.queue.take() {
                self.w = (self.w + Q_T).saturating_sub(queue).max(2);
                self.round_end = sample.nxt;
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
    use paceline_wire::{Duration, Instant};

    fn sample(rtt_ms: u64, una: u64) -> AckSample {
        AckSample {
            rtt: Some(Duration::from_millis(rtt_ms)),
            min_rtt: Duration::from_millis(100),
            prior_in_flight: 200,
            una,
            nxt: una + 100,
            ..AckSample::default()
        }
    }

    #[test]
    fn the_window_moves_to_the_target_queue_once_per_round() {
        let mut qarr = Qarr::default();
        let mut window = Window::new(200, u32::MAX);
        let entry = Entry { now: Instant::ZERO, recover_fs: 200, in_flight: 190, srtt: Duration::ZERO };
        assert_eq!(qarr.enter(&entry, window), 200);
        // 200 * 25 / 125 = 40 packets wait.
        assert_eq!(qarr.on_ack(&sample(125, 1_000), &mut window), 165);
        assert_eq!(qarr.on_ack(&sample(125, 1_050), &mut window), 165);
        assert_eq!(qarr.on_ack(&sample(100, 1_101), &mut window), 165 + 5);
        assert!(!qarr.lowers_ssthresh());
    }
}
