//! The shortest round trip of a subscriber without a bound, free of the schedule's own queue.
//!
//! The schedule lets a window more be in flight than the link holds. So the shortest round trip of the last seconds
//! includes that queue. A schedule by it lets a window more wait each time: 17 KB every 10 s, without end. So a drain
//! removes the queue from time to time, as the bound and BBR do (draft-ietf-ccwg-bbr, Section 4.3.4).

use paceline_tcp::WindowedMax;
use paceline_wire::{Duration, Instant};

use crate::baseline::Baseline;

/// A shortest round trip not seen for this time may be out of date (draft-ietf-ccwg-bbr, Section 2.13:
/// MinRTTFilterLen).
pub(crate) const WINDOW: Duration = Duration::from_secs(10);

/// Our choice: with three quarters of what the path holds no queue is left, and the link is idle for less than a round
/// trip.
const DRAIN_NUM: u64 = 3;
const DRAIN_DEN: u64 = 4;

/// Two full packets: a single segment waits for the client's delayed ACK (RFC 5681, Section 4.2).
const LIMIT_MIN: u64 = 3_000;

/// State of one subscriber.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct BaseRtt {
    baseline: Baseline,
    /// When the shortest round trip was last seen, or a drain for it began.
    seen: Instant,
    /// Bytes that may be outstanding during a drain.
    limit: u64,
    /// The most bytes in flight during the last two round trips.
    #[serde(default = "none_in_flight")]
    in_flight: WindowedMax,
    /// The newest round trip, and when it was measured.
    #[serde(default)]
    sampled: (Duration, Instant),
}

fn none_in_flight() -> WindowedMax {
    WindowedMax::new(0, 0)
}

impl Default for BaseRtt {
    fn default() -> Self {
        BaseRtt {
            baseline: Baseline::new(WINDOW),
            seen: Instant::ZERO,
            limit: u64::MAX,
            in_flight: none_in_flight(),
            sampled: (Duration::ZERO, Instant::ZERO),
        }
    }
}

impl BaseRtt {
    /// The shortest round trip.
    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        self.baseline.rtt_min()
    }

    /// Bytes that may be outstanding; `u64::MAX` except during a drain.
    pub(crate) fn limit(&self) -> u64 {
        if self.baseline.draining() { self.limit } else { u64::MAX }
    }

    /// Handles the report of a packet sent `rtt` ago, with `outstanding` bytes in flight. `scheduled`: the schedule may
    /// have built a queue and can drain it.
    pub(crate) fn on_rtt(&mut self, now: Instant, rtt: Duration, outstanding: u64, scheduled: bool) {
        self.sampled = (rtt, now);
        // The packet met the queue that was in flight when it left. BBR pauses for its shortest round trip when a drain
        // is due. By the bytes in flight then, the drain's limit was a packet in each delayed ACK's time, for 3 s.
        let in_flight = self.in_flight.update(rtt.as_nanos() * 2, now.as_nanos(), outstanding);
        let Some(before) = self.baseline.rtt_min() else {
            self.seen = now;
            self.baseline.on_rtt(now, rtt, rtt, None, false);
            return;
        };
        self.baseline.on_rtt(now, rtt, before, None, false);
        if rtt <= before + before / 16 {
            self.seen = now;
        }
        if scheduled && !self.baseline.draining() && now.saturating_since(self.seen) > WINDOW {
            self.seen = now;
            // Little's law.
            let path =
                u128::from(in_flight) * u128::from(before.as_nanos()) / u128::from(rtt.as_nanos().max(1));
            let path = u64::try_from(path).unwrap_or(u64::MAX);
            self.limit = (path / DRAIN_DEN * DRAIN_NUM).max(LIMIT_MIN);
            self.baseline.alone();
        }
        self.baseline.on_drain(now, rtt, outstanding, self.limit);
    }

    /// Handles a report without a round trip, as all are while only retransmissions are in flight (RFC 6298,
    /// Section 3). Our choice: a drain ends after two round trips without a measurement. Otherwise it could hold a flow
    /// to one packet in a round trip: .06 of 2.6 Mbit/s for 130 s (long seed 1000716).
    pub(crate) fn on_unmeasured(&mut self, now: Instant) {
        let (rtt, at) = self.sampled;
        if now.saturating_since(at) > rtt * 2 {
            self.baseline.give_up_drain();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Runs a schedule at 1 MB/s that lets 20 KB more be in flight than the known path holds. Returns the last round
    /// trip.
    fn run(base_rtt: &mut BaseRtt, from_s: u64, to_s: u64, path: Duration) -> Duration {
        let mut rtt = path;
        for ms in (from_s * 1_000..to_s * 1_000).step_by(10) {
            let known = base_rtt.rtt_min().unwrap_or(path);
            let outstanding = (known.as_millis() * 1_000 + 20_000).min(base_rtt.limit());
            rtt = path.max(Duration::from_millis(outstanding / 1_000));
            base_rtt.on_rtt(Instant::ZERO + Duration::from_millis(ms), rtt, outstanding, true);
        }
        rtt
    }

    #[test]
    fn the_queue_of_the_schedule_does_not_grow() {
        let mut base_rtt = BaseRtt::default();
        assert!(run(&mut base_rtt, 1, 300, RTT) <= RTT + RTT / 4);
        assert_eq!(base_rtt.rtt_min(), Some(RTT));
    }

    #[test]
    fn a_drain_that_measures_nothing_ends() {
        let mut base_rtt = BaseRtt::default();
        let mut ms = 0;
        while base_rtt.limit() == u64::MAX {
            ms += 10;
            let rtt = if ms < 100 { RTT } else { RTT * 2 };
            base_rtt.on_rtt(Instant::ZERO + Duration::from_millis(ms), rtt, 200_000, true);
        }
        base_rtt.on_unmeasured(Instant::ZERO + Duration::from_millis(ms + 400));
        assert_eq!(base_rtt.limit(), 75_000);
        base_rtt.on_unmeasured(Instant::ZERO + Duration::from_millis(ms + 401));
        assert_eq!(base_rtt.limit(), u64::MAX);
    }

    #[test]
    fn a_drain_during_a_pause_of_the_server_leaves_room_for_the_path() {
        let mut base_rtt = BaseRtt::default();
        let mut report = |ms, rtt, outstanding| {
            base_rtt.on_rtt(Instant::ZERO + Duration::from_millis(ms), rtt, outstanding, true);
            base_rtt.limit()
        };
        report(10, RTT, 100_000);
        report(10_000, RTT * 2, 200_000);
        assert_eq!(report(10_100, RTT * 2, 4_000), 75_000);
    }

    #[test]
    fn a_longer_path_is_found() {
        let mut base_rtt = BaseRtt::default();
        run(&mut base_rtt, 1, 30, RTT);
        run(&mut base_rtt, 30, 60, RTT * 2);
        assert_eq!(base_rtt.rtt_min(), Some(RTT * 2));
    }
}
