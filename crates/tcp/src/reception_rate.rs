//! The reception rate R: Eqs. (2)-(5).
//!
//! A point is an ACK's arrival and the right edge a + n of the window that it offers. The edge moves by what the
//! application took out of the buffer, so R reflects the link and the receiver.

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant, Rate};

/// The estimators of one flow.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)] // A sender's state of an earlier version lacks `ack_interval` and `has_full_interval`.
pub struct ReceptionRate {
    points: VecDeque<Point>,
    ack_interval: usize,
    /// r of Eq. (3): acknowledged bytes.
    link: Option<Rate>,
    /// R of Eq. (5): movement of the right edge.
    reception: Option<Rate>,
    has_full_interval: bool,
}

/// In what the gateway and a sender differ. Each gives its reasons.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Points kept. At a rate of ACKs at which they span less than 50 ms, no interval is full.
    pub points_max: usize,
    /// True: until the first interval is full, it grows from four ACKs and 10 ms.
    pub early: bool,
    /// A longer silence starts a new interval.
    pub gap_max: Duration,
}

/// Our choice: k ACKs held back by a radio scheduler or a busy host arrive in one clump and show no rate. 50 ms is
/// longer than such clumps and shorter than a round trip over a radio link.
const INTERVAL_MIN: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Point {
    at: Instant,
    /// n_i.
    ack: u64,
    /// a_i + n_i.
    right_edge: u64,
}

impl Default for ReceptionRate {
    fn default() -> Self {
        ReceptionRate::new(ReceptionRate::ACK_INTERVAL)
    }
}

impl ReceptionRate {
    /// The usual k. Our choice; the text gives none. 16 acknowledgements are 32 segments, some 50 ms at 7.2 Mbit/s. So
    /// the pairs of a delayed-ACK receiver and a clump of the radio scheduler stay below a tenth of a sample.
    pub const ACK_INTERVAL: usize = 16;

    /// Estimators over `ack_interval` acknowledgements, k of the text.
    pub fn new(ack_interval: usize) -> Self {
        ReceptionRate {
            points: VecDeque::new(),
            ack_interval,
            link: None,
            reception: None,
            has_full_interval: false,
        }
    }

    /// Handles an ACK that advanced, outside of holes.
    pub fn on_ack(&mut self, at: Instant, ack: u64, right_edge: u64, sampling: &Sampling) {
        if self.points.back().is_some_and(|last| at.saturating_since(last.at) > sampling.gap_max) {
            self.points.clear();
        }
        let newest = Point { at, ack, right_edge };
        self.points.push_back(newest);
        // The interval ends at the newest ACK and is the shortest of at least k ACKs and INTERVAL_MIN.
        while self.points.len() > sampling.points_max
            || (self.points.len() > self.ack_interval.saturating_add(1)
                && at.saturating_since(self.points[1].at) >= INTERVAL_MIN)
        {
            self.points.pop_front();
        }
        let Some(&oldest) = self.points.front() else { return };
        let interval = at.saturating_since(oldest.at);
        let full = self.points.len() > self.ack_interval && interval >= INTERVAL_MIN;
        let early = sampling.early && self.points.len() >= 4 && interval >= INTERVAL_MIN / 5;
        if full || (early && !self.has_full_interval) {
            self.has_full_interval |= full;
            self.sample(oldest, newest);
        }
    }

    /// Holds R and starts a new interval when a hole opens or closes: the cumulative ACK stands still and then leaps.
    pub fn hold(&mut self) {
        self.points.clear();
    }

    /// R, once there is a sample.
    pub fn rate(&self) -> Option<Rate> {
        self.reception
    }

    /// Returns the lesser of r and R: a growing window moves the right edge faster than data arrives.
    pub fn carried(&self) -> Option<Rate> {
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

    /// As in the gateway.
    const SAMPLING: Sampling = Sampling { points_max: 4096, early: true, gap_max: Duration::from_secs(1) };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_receiver_that_keeps_up_shows_the_link_rate() {
        let mut rate = ReceptionRate::new(4);
        (0..40).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, 17_000 + 9_000 * i, &SAMPLING));
        assert_eq!(rate.rate(), Some(Rate::from_mbps(7.2)));
    }

    #[test]
    fn a_slow_reader_lowers_it_while_acks_come_at_link_rate() {
        let mut rate = ReceptionRate::new(4);
        // n grows by 9,000 in 10 ms, a shrinks by 6,500: the application takes 2,500 (2 Mbit/s).
        (0..200).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, 1_400_000 + 2_500 * i, &SAMPLING));
        assert_eq!(rate.rate(), Some(Rate::from_mbps(2.0)));
    }

    #[test]
    fn a_growing_window_is_not_taken_for_data() {
        let mut rate = ReceptionRate::new(4);
        (0..200).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, 64_000 + 27_000 * i, &SAMPLING));
        assert!(rate.rate() > Some(Rate::from_mbps(20.0)));
        assert!(rate.carried() <= Some(Rate::from_mbps(7.2)) && rate.carried() > Some(Rate::from_mbps(7.1)));
    }

    #[test]
    fn a_clump_of_held_back_acks_is_not_a_fast_link() {
        let mut rate = ReceptionRate::new(16);
        for i in 0..500u64 {
            // Every 300 ms the ACKs of 30 ms arrive at once.
            let held = if i % 100 >= 90 { 3 * (i / 100 * 100 + 99) } else { 3 * i };
            rate.on_ack(at(held), 2_700 * i, 17_000 + 2_700 * i, &SAMPLING);
            assert!(rate.rate().is_none_or(|rate| rate < Rate::from_mbps(7.2 * 1.7)), "{i}: {rate:?}");
        }
    }

    #[test]
    fn silence_is_no_rate() {
        let mut rate = ReceptionRate::new(4);
        (0..40).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, 9_000 * i, &SAMPLING));
        let before = rate.rate();
        rate.on_ack(at(60_000), 9_000 * 40, 9_000 * 40, &SAMPLING);
        assert_eq!(rate.rate(), before);
    }

    #[test]
    fn without_a_limit_silence_lowers_it() {
        let (sampling, mut rate) = (Sampling { gap_max: Duration::MAX, ..SAMPLING }, ReceptionRate::new(4));
        (0..40).for_each(|i| rate.on_ack(at(10 * i), 9_000 * i, 9_000 * i, &sampling));
        rate.on_ack(at(60_000), 9_000 * 40, 9_000 * 40, &sampling);
        assert!(rate.rate() < Some(Rate::from_mbps(6.4)));
    }

    #[test]
    fn early_samples_can_be_left_out() {
        for early in [true, false] {
            let mut rate = ReceptionRate::default();
            let first = (0..40).find(|&i| {
                rate.on_ack(at(10 * i), 9_000 * i, 9_000 * i, &Sampling { early, ..SAMPLING });
                rate.rate().is_some()
            });
            assert_eq!(first, Some(if early { 3 } else { 16 }));
        }
    }

    /// Any k, as a handed over state may have it.
    #[test]
    fn few_points_are_kept() {
        let sampling = Sampling { points_max: 256, ..SAMPLING };
        for k in [0, 16, 1_024, usize::MAX] {
            let mut rate = ReceptionRate::new(k);
            for i in 0..10_000 {
                let at = Instant::ZERO + Duration::from_micros(10 * i);
                rate.on_ack(at, 1_000 * i, 64_000 + 1_000 * i, &sampling);
            }
            assert!(rate.points.len() <= 256);
        }
    }
}
