//! Time: `CLOCK_MONOTONIC` as an [`Instant`], and receive stamps mapped to it.
//!
//! The processor's own counters are never read: the virtual-time kernel does not see them.

use nix::time::{ClockId, clock_gettime};
use paceline_wire::{Duration, Instant};

/// Returns the current time of `CLOCK_MONOTONIC`.
pub fn now() -> Instant {
    Instant::from_nanos(read_nanos(ClockId::CLOCK_MONOTONIC))
}

/// True in a kernel whose time passes only while it has nothing to do (User-Mode Linux in the kernel lab). In such a
/// kernel reading the clock is a system call, and system calls dominate the cost.
pub fn is_virtual() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("User Mode Linux"))
}

/// Maps the receive stamps of one port to `CLOCK_MONOTONIC`. The clocks are sampled at the first use.
///
/// AF_PACKET stamps are of `CLOCK_REALTIME`, which an operator or NTP may step. The offset between the two clocks is
/// sampled anew every [`OFFSET_AGE_MAX`]. The effect of a step in between is bounded: no arrival lies in the future,
/// or before the arrival of an earlier packet.
#[derive(Debug, Default)]
pub struct ArrivalClock {
    offset_ns: i64,
    sampled: Option<Instant>,
    last: Instant,
}

impl ArrivalClock {
    /// Samples the offset of the clocks, unless the last sample was younger than [`OFFSET_AGE_MAX`] at the last
    /// arrival. Callers call it before they map a batch.
    pub fn refresh(&mut self) {
        let fresh = self.sampled.is_some_and(|at| self.last.saturating_since(at) < OFFSET_AGE_MAX);
        if fresh {
            return;
        }
        let before = read_nanos(ClockId::CLOCK_MONOTONIC) as i64;
        let realtime = read_nanos(ClockId::CLOCK_REALTIME) as i64;
        let after = read_nanos(ClockId::CLOCK_MONOTONIC) as i64;
        self.offset_ns = before + (after - before) / 2 - realtime;
        self.sampled = Some(Instant::from_nanos(after as u64));
    }

    /// Returns the arrival time of a packet that the kernel stamped with `realtime_ns`. Without a stamp it is the
    /// time of the read, `now`.
    pub fn arrival(&mut self, realtime_ns: Option<u64>, now: Instant) -> Instant {
        self.last = self.mapped(realtime_ns, now).max(self.last);
        self.last
    }

    /// Returns the arrival time without regard to earlier packets.
    pub fn mapped(&self, realtime_ns: Option<u64>, now: Instant) -> Instant {
        let Some(ns) = realtime_ns else { return now };
        Instant::from_nanos((ns as i64).saturating_add(self.offset_ns).max(0) as u64).min(now)
    }
}

/// Our choice: 100 ms, because NTP slews by at most 500 ppm, which is 50 us in that time.
pub const OFFSET_AGE_MAX: Duration = Duration::from_millis(100);

fn read_nanos(clock: ClockId) -> u64 {
    // Neither clock can be missing, so there is no error to report.
    let Ok(time) = clock_gettime(clock) else { return 0 };
    (time.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn stamps_are_shifted_by_the_offset_of_the_clocks() {
        let mut clock = ArrivalClock { offset_ns: -1_000_000, sampled: None, last: Instant::ZERO };
        assert_eq!(clock.arrival(Some(1_000_500), at(900)), at(500));
    }

    #[test]
    fn arrivals_never_decrease_and_never_lie_in_the_future() {
        let mut clock = ArrivalClock::default();
        assert_eq!(clock.arrival(Some(500), at(600)), at(500));
        assert_eq!(clock.arrival(Some(400), at(600)), at(500), "a stamp from before the last one");
        assert_eq!(clock.arrival(Some(u64::MAX / 4), at(700)), at(700), "a step forward of the clock");
        assert_eq!(clock.arrival(Some(0), at(800)), at(700), "a step back of the clock");
        assert_eq!(clock.arrival(None, at(900)), at(900), "no stamp");
    }

    #[test]
    fn the_mapping_of_the_present_is_the_present() {
        let mut clock = ArrivalClock::default();
        let before = now();
        clock.refresh();
        let realtime = read_nanos(ClockId::CLOCK_REALTIME);
        let after = now();
        let mapped = clock.arrival(Some(realtime), after);
        // If the thread is preempted between the two clocks, the sample is off by at most the whole time taken.
        let slack = after.saturating_since(before);
        assert!(mapped + slack >= before && mapped <= after);
    }
}
