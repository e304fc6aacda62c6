//! The skew of the peer's clock: how much faster it runs than ours.

use paceline_wire::{Duration, Instant};

/// Follows the shortest delay of an ACK by the two clocks, over windows of ten seconds. This delay falls if the peer's
/// clock runs faster. A short queue delays only single ACKs. A queue that stands for minutes moves the delay by far
/// more than a clock can.
///
/// Our choice throughout: Section II-A ignores that clocks differ. At 100 ppm a flow of five minutes would see 30 ms of
/// queue that do not exist, or miss 30 ms that do.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Skew {
    /// The shortest delay of the present window, and its time.
    window: Option<Way>,
    ends: Instant,
    /// The delay with which later windows are compared.
    reference: Option<Way>,
    /// Parts per billion; positive when the peer is fast.
    ppb: i64,
    /// Time that the peer's clock has gained so far, and when this was last updated.
    gained_ns: i64,
    at: Instant,
}

/// Arrival minus the peer's time.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Way {
    ns: i64,
    at: Instant,
}

/// Our choice: an uplink that is not full runs empty once in this time.
const WINDOW: Duration = Duration::from_secs(10);
/// Our choice: RFC 5905 (Section 7.3, MAXFREQ) has 500 ppm for clocks that nobody corrects.
const PPB_MAX: i64 = 500_000;

impl Skew {
    /// Takes an uncorrected time of the peer's clock and its arrival. Returns the correction to subtract.
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
        // A gain of less than a nanosecond waits until more time has passed.
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
            // The path has become longer or shorter, or the uplink is full. This says nothing about clocks.
            self.reference = Some(way);
        } else {
            self.ppb = ppb;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The peer's gain that is not corrected after `minutes`. `wait` is the queueing delay of an ACK sent at that
    /// second, in ms.
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
            // Nothing is known until the second window has closed: 20 s of drift, and 1 s before them.
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
