//! Queue-length adaptive rate reduction (OR, Section II.D).

use super::{Entry, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};

/// Keeps Q_T packets in the queue during recovery: W moves by Q_T - Q, in both directions (Section VII.C).
///
/// Our choice: once per round trip in full, because what the queue shows is one RTT old: on every ACK it would overshoot by
/// a window. And while a whole round trip shows no queue at all, at the pace of slow start: at high loss rates a flow is in
/// recovery before it has filled its path, and would need hundreds of round trips.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Qarr {
    w: u32,
    /// When W was last moved, SND.NXT: what was sent before says nothing of the move.
    round_end: u64,
    /// The queue as the RTTs of this round show it: the shortest.
    queue: Option<u32>,
    /// W was used in this round.
    limited: bool,
    /// The last round had no queue.
    filling: bool,
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
        self.w = window.cwnd;
        self.w
    }

    fn on_ack(&mut self, sample: &AckSample, _window: &mut Window) -> u32 {
        self.limited |= sample.cwnd_limited;
        if let Some(queue) = Self::queue(sample) {
            self.queue = Some(self.queue.map_or(queue, |shortest| shortest.min(queue)));
            self.filling &= queue < Q_T;
        }
        if self.filling && sample.cwnd_limited {
            self.w = self.w.saturating_add(sample.delivered);
        }
        let reached = sample.una.max(sample.highest_delivered);
        if reached > self.round_end
            && let Some(queue) = self.queue.take()
        {
            self.filling = queue == 0;
            if queue > Q_T || self.limited {
                self.w = self.w.saturating_add(Q_T).saturating_sub(queue).max(2);
            }
            self.limited = false;
            self.round_end = sample.nxt;
        }
        self.w
    }

    /// What W has come to; the loss affects neither cwnd nor ssthresh (Section VII.C).
    fn exit(&mut self, _window: Window) -> u32 {
        self.w
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
            delivered: 1,
            cwnd_limited: true,
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

    #[test]
    fn an_empty_path_is_filled_at_the_pace_of_slow_start_and_only_by_who_uses_the_window() {
        let mut window = Window::new(50, u32::MAX);
        let mut qarr = Qarr { w: 50, ..Qarr::default() };
        assert_eq!(qarr.on_ack(&sample(100, 1_000), &mut window), 55);
        assert_eq!(qarr.on_ack(&sample(100, 1_001), &mut window), 56);
        let unused = AckSample { cwnd_limited: false, ..sample(100, 1_002) };
        assert_eq!(qarr.on_ack(&unused, &mut window), 56);
        // 200 * 3 / 103 = 5 packets wait.
        assert_eq!(qarr.on_ack(&sample(103, 1_003), &mut window), 56);
        assert_eq!(qarr.on_ack(&sample(100, 1_004), &mut window), 56);
    }
}
