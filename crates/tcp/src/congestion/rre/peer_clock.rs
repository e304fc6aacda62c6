//! The peer's clock as its timestamps show it: the length of a tick is learned from the flow.

use paceline_wire::{Duration, Instant};

use super::skew::Skew;

/// Turns TSvals into nanoseconds of the peer's clock, counted from the first timestamp that was seen.
///
/// Two bounds of a tick hold whatever queues the packets met. The peer makes a timestamp before it arrives, and after
/// the segment that it answers was sent. Of two timestamps `d` ticks apart, the later was made at least `d - 1` and at
/// most `d + 1` ticks after the earlier:
///
/// - (sent of the later - arrival of the earlier) <= (d + 1) x tick
/// - (arrival of the later - sent of the earlier) >= (d - 1) x tick
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct PeerClock {
    /// The newest timestamp, and its ticks since the first.
    newest: Option<(u32, i64)>,
    /// The earliest timestamp with its arrival, and the earliest one whose cause is known with the time of that cause.
    arrived: Option<(i64, Instant)>,
    answered: Option<(i64, Instant)>,
    at_least: u64,
    at_most: u64,
    source: Source,
    skew: Skew,
}

/// Source of the peer's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
enum Source {
    Learning,
    /// Nanoseconds of a tick.
    Ticks(i64),
    /// There are no timestamps, or none that can be read.
    Arrivals,
}

/// A time of the peer's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct PeerTime {
    /// Nanoseconds since any fixed time.
    pub(super) ns: i64,
    /// The clock's resolution.
    pub(super) tick: Duration,
}

/// 1 us is Linux with tcp_usec_ts, 1 ms Linux since 4.13, 4 and 10 ms Linux before, by CONFIG_HZ. Section II-A uses
/// 10 ms only.
const TICKS_NS: [u64; 4] = [1_000, 1_000_000, 4_000_000, 10_000_000];
/// Our choice: clocks may differ by a thousandth while the tick is learned. RFC 5905 allows an undisciplined clock half
/// of that.
const TOLERANCE: u64 = 1_000;
/// Our choice: the clock stops after 73 years. So differences of its times do not overflow, whatever timestamps a peer
/// sends.
const NS_MAX: i64 = i64::MAX / 4;

impl Default for PeerClock {
    fn default() -> Self {
        PeerClock {
            newest: None,
            arrived: None,
            answered: None,
            at_least: 0,
            at_most: u64::MAX,
            source: Source::Learning,
            skew: Skew::default(),
        }
    }
}

impl PeerClock {
    /// Takes a timestamp that arrived at `arrival`. It answers a segment sent at `sent`, if that is known.
    pub(super) fn observe(&mut self, tsval: u32, sent: Option<Instant>, arrival: Instant) {
        let ticks = self.unwrap(tsval);
        if self.source != Source::Learning {
            return;
        }
        if let (Some((then, arrived)), Some(sent)) = (self.arrived, sent) {
            let apart = u64::try_from((ticks - then).saturating_add(1)).unwrap_or(0).max(1);
            self.at_least = self.at_least.max(sent.saturating_since(arrived).as_nanos() / apart);
        }
        if let Some((then, answered)) = self.answered
            && let Ok(apart @ 1..) = u64::try_from(ticks - then - 1)
        {
            self.at_most = self.at_most.min(arrival.saturating_since(answered).as_nanos() / apart);
        }
        self.arrived = self.arrived.or(Some((ticks, arrival)));
        self.answered = self.answered.or(sent.map(|sent| (ticks, sent)));
        self.judge();
    }

    /// When the peer made this timestamp; without a timestamp, its arrival. `None` while the tick is not known.
    pub(super) fn time(
        &mut self,
        tsval: Option<u32>,
        sent: Option<Instant>,
        arrival: Instant,
    ) -> Option<PeerTime> {
        match tsval {
            Some(tsval) => self.observe(tsval, sent, arrival),
            None => self.source = Source::Arrivals,
        }
        match (self.source, tsval) {
            (Source::Learning, _) => None,
            (Source::Ticks(tick), Some(tsval)) => {
                let ns = self.unwrap(tsval).saturating_mul(tick).min(NS_MAX);
                let ns = ns - self.skew.on_time(ns, arrival);
                Some(PeerTime { ns, tick: Duration::from_nanos(tick as u64) })
            }
            // RD is then the RTT. Our choice, because a flow must not stop when timestamps are missing.
            _ => Some(PeerTime { ns: arrival.as_nanos() as i64, tick: Duration::from_micros(1) }),
        }
    }

    /// The tick, once it is known.
    #[cfg(test)]
    pub(super) fn tick(&self) -> Option<Duration> {
        match self.source {
            Source::Ticks(ns) => Some(Duration::from_nanos(ns as u64)),
            _ => None,
        }
    }

    /// Ticks since the first timestamp; timestamps wrap (RFC 7323, Section 5.2).
    fn unwrap(&mut self, tsval: u32) -> i64 {
        let Some((newest, ticks)) = self.newest else {
            self.newest = Some((tsval, 0));
            return 0;
        };
        let ahead = i64::from(tsval.wrapping_sub(newest) as i32);
        let now = ticks.saturating_add(ahead);
        if ahead > 0 {
            self.newest = Some((tsval, now));
        }
        now
    }

    fn judge(&mut self) {
        let fits = |tick: &&u64| {
            **tick + **tick / TOLERANCE >= self.at_least
                && **tick <= self.at_most.saturating_add(**tick / TOLERANCE)
        };
        let mut fitting = TICKS_NS.iter().filter(fits);
        self.source = match (fitting.next(), fitting.next()) {
            (None, _) => Source::Arrivals,
            (Some(tick), None) => Source::Ticks(*tick as i64),
            _ => Source::Learning,
        };
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// Reads a clock with an offset at `at_us`.
    fn read(tick_us: u64, offset: u32, at_us: u64) -> u32 {
        ((at_us / tick_us) as u32).wrapping_add(offset)
    }

    #[test]
    fn one_round_trip_after_the_handshake_is_enough() {
        for tick_us in [1, 1_000, 4_000, 10_000] {
            for rtt_us in [50_000, 200_000, 10_000_000] {
                let mut clock = PeerClock::default();
                let (syn, rest) = (20_000_000, rtt_us - 25_000);
                clock.observe(read(tick_us, 77, syn - rest), None, at(syn));
                clock.observe(read(tick_us, 77, syn + 25_000), Some(at(syn)), at(syn + rtt_us));
                let sent = syn + rtt_us;
                clock.observe(read(tick_us, 77, sent + 25_000), Some(at(sent)), at(sent + rtt_us));
                assert_eq!(clock.tick(), Some(Duration::from_micros(tick_us)), "RTT {rtt_us} us");
            }
        }
    }

    #[test]
    fn without_timestamps_arrivals_stand_in() {
        let mut clock = PeerClock::default();
        assert_eq!(clock.time(None, Some(at(1)), at(5)).map(|time| time.ns), Some(5_000));
    }

    #[test]
    fn a_clock_that_leaps_does_not_overflow() {
        let mut clock = PeerClock { source: Source::Ticks(10_000_000), ..PeerClock::default() };
        let mut last = None;
        for n in 0..1_000u32 {
            let arrival = at(10_000_000 * u64::from(n + 1));
            let time = clock.time(Some(n.wrapping_mul(i32::MAX as u32)), None, arrival);
            let ns = time.map(|time| time.ns);
            assert!(ns >= last, "{ns:?} after {last:?}");
            last = ns;
        }
        assert_eq!(last, Some(NS_MAX));
    }

    #[test]
    fn a_tick_that_nobody_has_is_not_used() {
        let mut clock = PeerClock::default();
        for round in 0..100 {
            let sent = round * 100_000;
            clock.time(Some(read(200_000, 0, sent + 50_000)), Some(at(sent)), at(sent + 100_000));
        }
        assert_eq!((clock.tick(), clock.source), (None, Source::Arrivals));
    }

    proptest! {
        /// No queue makes the clock learn a wrong tick, even if it holds ACKs back and lets them go at once.
        #[test]
        fn queues_do_not_deceive(
            tick in 0usize..4,
            offset: u32,
            phase in 0u64..10_000_000,
            steps in proptest::collection::vec((0u64..300_000, 1_000u64..2_000_000, 1_000u64..20_000_000), 1..60),
        ) {
            let tick_us = TICKS_NS[tick] / 1_000;
            let mut clock = PeerClock::default();
            let (mut sent, mut made, mut arrival) = (phase, 0, 0);
            for (gap, there, back) in steps {
                sent += gap;
                // No packet overtakes another.
                made = (sent + there).max(made);
                arrival = (made + back).max(arrival);
                clock.observe(read(tick_us, offset, made), Some(at(sent)), at(arrival));
                prop_assert!(clock.source != Source::Arrivals);
                prop_assert!(clock.tick().is_none_or(|tick| tick == Duration::from_micros(tick_us)));
            }
        }
    }
}
