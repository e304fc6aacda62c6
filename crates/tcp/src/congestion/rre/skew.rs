//! By how much the peer's clock runs faster than ours.

use paceline_wire::{Duration, Instant};

/// Follows the shortest way back of an ACK, by the two clocks, over windows of ten seconds. It falls as the peer's clock runs
/// ahead. Queues only make single ACKs late, and a queue that stands for minutes moves it by far more than a clock can.
///
/// Our choice throughout: Section II-A leaves out that clocks differ. At 100 ppm a flow of five minutes would see 30 ms of queue
/// that are none, or none of 30 ms that are there.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Skew {
    /// The shortest way of the present window, and when that was.
    window: Option<Way>,
    ends: Instant,
    /// With what later windows are compared.
    reference: Option<Way>,
    /// Parts per billion; positive when the peer is fast.
    ppb: i64,
    /// What it has gained so far, and when that was brought up to date.
    gained_ns: i64,
    at: Instant,
}

/// Arrival less peer's time.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Way {
    ns: i64,
    at: Instant,
}

/// Our choice: long enough for an uplink that is not full to run empty once.
const WINDOW: Duration = Duration::from_secs(10);
/// Our choice: RFC 5905 (Section 7.3, MAXFREQ) has 500 ppm for clocks that nobody corrects.
const PPB_MAX: i64 = 500_000;

impl Skew {
    /// A time of the peer's clock, not corrected, and when it came. Returns what is to be taken off it.
    pub(super) fn on_time(&mut self, peer_ns: i64, arrival: Instant) -> i64 {
        let way = Way { ns: arrival.as_nanos() as i64 - peer_ns, at: arrival };
        if self.at == Instant::ZERO {
            (self.at, self.ends) = (arrival, arrival + WINDOW);
        }
        if arrival >= self.ends {
            self.close_window();
            self.ends = arrival + WINDOW;
        }
        if self.window.is_none_or(|shortest| way.ns < shortest.ns) {
            self.window = Some(way);
        }
        let passed = arrival.saturating_since(self.at).as_micros() as i64;
        // What is less than a nanosecond waits for more time to have passed.
        let gain = passed * self.ppb / 1_000_000;
        if gain != 0 {
            self.gained_ns += gain;
            self.at = arrival;
        } else if self.ppb == 0 {
            self.at = arrival;
        }
        self.gained_ns
    }

    fn close_window(&mut self) {
        let Some(way) = self.window.take() else { return };
        let Some(reference) = self.reference else {
            self.reference = Some(way);
            return;
        };
        let span_us = way.at.saturating_since(reference.at).as_micros() as i64;
        let ppb = (reference.ns - way.ns).saturating_mul(1_000_000) / span_us.max(1);
        if ppb.abs() > PPB_MAX {
            // The way has become longer or shorter, or the uplink is full: this says nothing of clocks.
            self.reference = Some(way);
        } else {
            self.ppb = ppb;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of the peer's gain after so many minutes; `wait` is the queue that an ACK sent at that second meets.
    fn left_us(ppm: i64, minutes: u64, wait: impl Fn(u64) -> u64) -> i64 {
        let mut skew = Skew::default();
        let mut left = 0;
        for ms in 1_000..minutes * 60_000 {
            let real = Duration::from_millis(ms).as_nanos() as i64;
            let peer = real + real / 1_000_000 * ppm;
            let arrival = Instant::ZERO + Duration::from_millis(ms + 50 + wait(ms / 1_000));
            left = (peer - skew.on_time(peer, arrival) - real) / 1_000;
        }
        left
    }

    #[test]
    fn drift_over_minutes_does_not_matter() {
        for ppm in [-200, -50, 0, 50, 200] {
            // Until the second window has closed nothing is known: 20 s of drift, and 1 s that passed before.
            let left = left_us(ppm, 10, |_| 0).abs();
            assert!(left <= 22 * ppm.abs() + 10, "{ppm} ppm: {left} us of {}", ppm * 600);
        }
    }

    #[test]
    fn an_uplink_that_is_full_is_no_drift() {
        let left = left_us(0, 5, |s| if s > 60 { 20 * s } else { 0 });
        assert!(left.abs() <= 5_000, "{left} us");
    }
}
