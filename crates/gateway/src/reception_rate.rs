//! The reception rate R: Eqs. (3)-(5).
//!
//! A point is an ACK's arrival and the right edge of the window that it offers, a + n. The edge moves by what the
//! application took out of the buffer, so R has both the link and the receiver in it.

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant, Rate};

/// The estimator of one flow.
#[derive(Clone, Debug)]
pub(crate) struct ReceptionRate {
    points: VecDeque<(Instant, u64)>,
    ack_interval: usize,
    smoothed: Option<Rate>,
}

impl ReceptionRate {
    /// An estimator over `ack_interval` acknowledgements, k of the text.
    pub(crate) fn new(ack_interval: usize) -> Self {
        ReceptionRate { points: VecDeque::new(), ack_interval, smoothed: None }
    }

    /// An ACK that advanced, outside of holes. A flow that was silent for `max_gap` starts a new interval: the time
    /// in which nobody sent says nothing about the rate.
    pub(crate) fn on_ack(&mut self, now: Instant, right_edge: u64, max_gap: Duration) {
        if let Some(&(last, _)) = self.points.back()
            && now.saturating_since(last) > max_gap
        {
            self.points.clear();
        }
        self.points.push_back((now, right_edge));
        if self.points.len() <= self.ack_interval {
            self.start_early();
            return;
        }
        if let Some((then, edge)) = self.points.pop_front() {
            self.sample(right_edge.saturating_sub(edge), now.saturating_since(then));
        }
    }

    /// A hole opened or closed: the cumulative ACK stands still and then leaps, so R is held and the interval starts
    /// anew.
    pub(crate) fn hold(&mut self) {
        self.points.clear();
    }

    /// R, once there is a sample.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.smoothed
    }

    /// Our choice: until the first k ACKs are in, the interval grows from four, so that a short flow has an estimate.
    fn start_early(&mut self) {
        if self.smoothed.is_some() || self.points.len() < 4 {
            return;
        }
        if let (Some(&(then, edge)), Some(&(now, right_edge))) = (self.points.front(), self.points.back()) {
            self.sample(right_edge.saturating_sub(edge), now.saturating_since(then));
        }
    }

    fn sample(&mut self, bytes: u64, time: Duration) {
        if time.is_zero() {
            return;
        }
        let sample = Rate::from_bytes_in(bytes, time);
        // The average of Eq. (2), alpha = 1/8.
        self.smoothed = Some(match self.smoothed {
            None => sample,
            Some(rate) => Rate::from_bytes_per_sec(
                (7 * u128::from(rate.as_bytes_per_sec()) / 8 + u128::from(sample.as_bytes_per_sec()) / 8)
                    as u64,
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_receiver_that_keeps_up_shows_the_link_rate() {
        let mut rate = ReceptionRate::new(4);
        (0..40).for_each(|i| rate.on_ack(at(10 * i), 17_000 + 9_000 * i, GAP));
        assert_eq!(rate.rate(), Some(Rate::from_mbps(7.2)));
    }

    #[test]
    fn a_slow_reader_lowers_it_while_acks_come_at_link_rate() {
        let mut rate = ReceptionRate::new(4);
        // n grows by 9,000 in 10 ms, a shrinks by 6,500: the application takes 2,500 (2 Mbit/s).
        (0..200).for_each(|i| rate.on_ack(at(10 * i), 1_400_000 + 9_000 * i - 6_500 * i, GAP));
        assert_eq!(rate.rate(), Some(Rate::from_mbps(2.0)));
    }

    #[test]
    fn silence_is_no_rate() {
        let mut rate = ReceptionRate::new(4);
        (0..40).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, GAP));
        let before = rate.rate();
        rate.on_ack(at(60_000), 9_000 * 40, GAP);
        assert_eq!(rate.rate(), before);
    }
}
