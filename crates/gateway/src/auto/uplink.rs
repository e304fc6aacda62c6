//! Whether what a client sends waits on the uplink, by the timestamps that it puts on it (RFC 7323).
//!
//! Arrival here less the time at which the client wrote the timestamp is the way up, but for a constant: what it is above its
//! minimum is queue. That is the relative one-way delay of RRE (Section II-A) in the other direction.

use paceline_wire::{Duration, Instant};

/// One flow's way up.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct UplinkDelay {
    /// The first timestamp and when it came.
    first: Option<(u32, Instant)>,
    /// Nanoseconds of a tick, once known.
    tick: Option<u64>,
    /// The shortest way, in nanoseconds from an arbitrary zero.
    shortest: Option<i64>,
    /// When that was brought up to date.
    at: Instant,
    /// When a packet last came as soon as that.
    #[cfg_attr(feature = "serde", serde(default))]
    met: Instant,
    /// The least queue since the last look.
    least: Option<Duration>,
    /// What the newest packet met.
    now: Duration,
}

/// 1 ms is Linux since 4.13 and Windows, 4 and 10 ms Linux before, by CONFIG_HZ.
const TICKS_NS: [u64; 3] = [1_000_000, 4_000_000, 10_000_000];
/// Our choice: clocks of both ends by quartz, each off by a ten-thousandth at most. One that runs slow would look like a queue that grows;
/// a true one of a second is still seen after half an hour.
const DRIFT_PPM: u64 = 200;
/// Our choice: ten ticks of the longest kind.
const LEARN: Duration = Duration::from_millis(100);

impl UplinkDelay {
    /// A packet with this timestamp came.
    pub(crate) fn on_timestamp(&mut self, now: Instant, tsval: u32) {
        let Some((first, first_at)) = self.first else {
            self.first = Some((tsval, now));
            return;
        };
        let ticks = tsval.wrapping_sub(first);
        let elapsed = now.saturating_since(first_at);
        if self.tick.is_none() && ticks as i32 > 0 && elapsed >= LEARN {
            // A queue that builds up makes ticks seem longer, to twice their length where it takes as long as the flow is old.
            let seen = elapsed.as_nanos() / ticks as u64;
            self.tick = TICKS_NS.into_iter().rfind(|tick| *tick <= seen + seen / 8);
        }
        let Some(tick) = self.tick else { return };
        // RFC 7323, Section 5.4: a timestamp wraps its sign bit in 24.8 days at 1 ms. It is the one nearest to where the clock should be.
        let expected = elapsed.as_nanos() / tick;
        let ahead = ticks.wrapping_sub(expected as u32) as i32;
        let ticks = expected as i64 + i64::from(ahead);
        let way = elapsed.as_nanos() as i64 - ticks.saturating_mul(tick as i64);
        let drift = now.saturating_since(self.at).as_nanos().saturating_mul(DRIFT_PPM) / 1_000_000;
        self.at = now;
        let shortest = self.shortest.map_or(way.min(0), |shortest| (shortest + drift as i64).min(way));
        self.shortest = Some(shortest);
        if way <= shortest {
            self.met = now;
        }
        let queue = Duration::from_nanos((way - shortest).max(0) as u64);
        self.now = queue;
        self.least = Some(self.least.map_or(queue, |least| least.min(queue)));
    }

    /// The queue that the newest packet met, as far as it is longer than a tick of the client's clock, which hides the rest.
    pub(crate) fn queue(&self) -> Duration {
        self.now.saturating_sub(Duration::from_nanos(self.tick.unwrap_or_default()))
    }

    /// The longest queue that the newest packet can have met: its timestamp and that of the shortest way are each a tick off, and what was added
    /// for the clocks since that may have been queue.
    pub(crate) fn at_most(&self) -> Option<Duration> {
        let added = self.at.saturating_since(self.met).as_nanos().saturating_mul(DRIFT_PPM) / 1_000_000;
        self.tick.map(|tick| self.now + Duration::from_nanos(2 * tick + added))
    }

    /// The queue that stood there since the last look: the least that any packet met (as RFC 8289 has it).
    pub(crate) fn standing(&mut self) -> Option<Duration> {
        self.least.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each 20 ms whose way up is 50 ms and a queue that grows by so many microseconds each.
    fn standing(tick_ms: u64, growth_us: u64, packets: u64) -> Option<Duration> {
        let mut uplink = UplinkDelay::default();
        for n in 0..packets {
            let written = Duration::from_millis(1_000 + 20 * n);
            let came = written + Duration::from_micros(50_000 + growth_us * n);
            uplink.on_timestamp(Instant::ZERO + came, (written.as_millis() / tick_ms) as u32);
            if n + 20 == packets {
                uplink.standing();
            }
        }
        uplink.standing()
    }

    #[test]
    fn a_free_uplink_has_no_queue_whatever_the_tick() {
        for tick in [1, 4, 10] {
            let queue = standing(tick, 0, 500).unwrap();
            assert!(queue <= Duration::from_millis(tick), "{tick} ms: {queue:?}");
        }
    }

    #[test]
    fn a_queue_is_found_while_it_grows() {
        for tick in [1, 4, 10] {
            // 10 ms a packet, half of the time between them.
            let queue = standing(tick, 10_000, 100).unwrap();
            assert!(queue >= Duration::from_millis(700), "{tick} ms: {queue:?}");
        }
    }

    #[test]
    fn a_clock_that_runs_slow_is_no_queue() {
        let mut uplink = UplinkDelay::default();
        for n in 0..60_000u64 {
            let written = 20_000 * n * 9_999 / 10_000 / 1_000;
            uplink.on_timestamp(Instant::ZERO + Duration::from_millis(20 * n), written as u32);
        }
        // In twenty minutes it has lost 120 ms.
        assert!(uplink.queue() <= Duration::from_millis(2), "{:?}", uplink.queue());
    }

    #[test]
    fn timestamps_wrap() {
        let mut uplink = UplinkDelay::default();
        for n in 0..100u64 {
            let tsval = (u32::MAX - 500).wrapping_add(20 * n as u32);
            uplink.on_timestamp(Instant::ZERO + Duration::from_millis(20 * n), tsval);
        }
        assert_eq!(uplink.standing(), Some(Duration::ZERO));
    }

    #[test]
    fn a_flow_of_two_months_has_no_queue() {
        for tick in [1, 4, 10] {
            let mut uplink = UplinkDelay::default();
            for minute in 0..60 * 24 * 60u64 {
                let written = Duration::from_secs(60 * minute);
                let came = Instant::ZERO + written + Duration::from_millis(50);
                uplink.on_timestamp(came, (written.as_millis() / tick) as u32);
                assert!(uplink.queue() <= Duration::from_millis(tick), "{minute} min: {:?}", uplink.queue());
            }
        }
    }
}
