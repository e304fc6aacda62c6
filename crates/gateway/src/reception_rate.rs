//! The reception rate R: Eqs. (3)-(5).
//!
//! A point is an ACK's arrival and the right edge a + n of the window that it offers. The edge moves by what the
//! application took out of the buffer, so R reflects the link and the receiver.

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant, Rate};

/// The estimators of one flow.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ReceptionRate {
    points: VecDeque<Point>,
    ack_interval: usize,
    /// r of Eq. (3): acknowledged bytes.
    link: Option<Rate>,
    /// R of Eq. (5): movement of the right edge.
    reception: Option<Rate>,
    has_full_interval: bool,
}

/// Our choice: k ACKs held back by a radio scheduler or a busy host arrive in one clump and show no rate. 50 ms is
/// longer than such clumps and shorter than a round trip over a radio link.
const INTERVAL_MIN: Duration = Duration::from_millis(50);
/// Points kept: 50 ms at 80,000 ACKs a second.
const POINTS_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Point {
    at: Instant,
    ack: u64,
    right_edge: u64,
}

impl ReceptionRate {
    /// Estimators over `ack_interval` acknowledgements, k of the text.
    pub(crate) fn new(ack_interval: usize) -> Self {
        ReceptionRate {
            points: VecDeque::new(),
            ack_interval,
            link: None,
            reception: None,
            has_full_interval: false,
        }
    }

    /// Handles an ACK that advanced, outside of holes. A flow that was silent for `max_gap` starts a new interval,
    /// because idle time shows no rate.
    pub(crate) fn on_ack(&mut self, at: Instant, ack: u64, right_edge: u64, max_gap: Duration) {
        if self.points.back().is_some_and(|last| at.saturating_since(last.at) > max_gap) {
            self.points.clear();
        }
        let newest = Point { at, ack, right_edge };
        self.points.push_back(newest);
        // The interval ends at the newest ACK and is the shortest of at least k ACKs and INTERVAL_MIN.
        while self.points.len() > self.ack_interval + 1
            && (at.saturating_since(self.points[1].at) >= INTERVAL_MIN || self.points.len() > POINTS_MAX)
        {
            self.points.pop_front();
        }
        let Some(&oldest) = self.points.front() else { return };
        let interval = at.saturating_since(oldest.at);
        let full = self.points.len() > self.ack_interval && interval >= INTERVAL_MIN;
        // Our choice: until the first interval is full, it grows from four ACKs and
        // 10 ms, so that a short flow has an estimate.
        if full || (self.points.len() >= 4 && interval >= INTERVAL_MIN / 5 && !self.has_full_interval) {
            self.has_full_interval |= full;
            self.sample(oldest, newest);
        }
    }

    /// Holds R and starts a new interval when a hole opens or closes: the cumulative ACK stands still and then leaps.
    pub(crate) fn hold(&mut self) {
        self.points.clear();
    }

    /// R, once there is a sample.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.reception
    }

    /// Returns the lesser of r and R: a growing window moves the right edge faster than data arrives.
    pub(crate) fn carried(&self) -> Option<Rate> {
        self.link.zip(self.reception).map(|(link, reception)| link.min(reception))
    }

    fn sample(&mut self, oldest: Point, newest: Point) {
        let time = newest.at.saturating_since(oldest.at);
        if time.is_zero() {
            return;
        }
        let rate = |bytes| Rate::from_bytes_in(bytes, time);
        self.link = Some(smooth(self.link, rate(newest.ack.saturating_sub(oldest.ack))));
        self.reception =
            Some(smooth(self.reception, rate(newest.right_edge.saturating_sub(oldest.right_edge))));
    }
}

/// The average of Eq. (2), alpha = 1/8.
fn smooth(average: Option<Rate>, sample: Rate) -> Rate {
    let Some(average) = average else { return sample };
    let sum = 7 * u128::from(average.as_bytes_per_sec()) + u128::from(sample.as_bytes_per_sec());
    Rate::from_bytes_per_sec((sum / 8) as u64)
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
        (0..40).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, 17_000 + 9_000 * i, GAP));
        assert_eq!(rate.rate(), Some(Rate::from_mbps(7.2)));
    }

    #[test]
    fn a_slow_reader_lowers_it_while_acks_come_at_link_rate() {
        let mut rate = ReceptionRate::new(4);
        // n grows by 9,000 in 10 ms, a shrinks by 6,500: the application takes 2,500 (2 Mbit/s).
        (0..200).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, 1_400_000 + 2_500 * i, GAP));
        assert_eq!(rate.rate(), Some(Rate::from_mbps(2.0)));
    }

    #[test]
    fn a_growing_window_is_not_taken_for_data() {
        let mut rate = ReceptionRate::new(4);
        (0..200).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, 64_000 + 27_000 * i, GAP));
        assert!(rate.rate() > Some(Rate::from_mbps(20.0)));
        assert!(rate.carried() <= Some(Rate::from_mbps(7.2)) && rate.carried() > Some(Rate::from_mbps(7.1)));
    }

    #[test]
    fn a_clump_of_held_back_acks_is_not_a_fast_link() {
        let mut rate = ReceptionRate::new(16);
        for i in 0..500u64 {
            // Every 300 ms the ACKs of 30 ms arrive at once.
            let held = if i % 100 >= 90 { 3 * (i / 100 * 100 + 99) } else { 3 * i };
            rate.on_ack(at(held), 2_700 * i, 17_000 + 2_700 * i, GAP);
            assert!(rate.rate().is_none_or(|rate| rate < Rate::from_mbps(7.2 * 1.7)), "{i}: {rate:?}");
        }
    }

    #[test]
    fn silence_is_no_rate() {
        let mut rate = ReceptionRate::new(4);
        (0..40).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, 9_000 * i, GAP));
        let before = rate.rate();
        rate.on_ack(at(60_000), 9_000 * 40, 9_000 * 40, GAP);
        assert_eq!(rate.rate(), before);
    }
}
