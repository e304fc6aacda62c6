//! CoDel (RFC 8289). It drops at the head if packets have waited too long for a whole interval. While they still do,
//! drops become more frequent.

use paceline_wire::{Duration, Instant};

use super::{AqmContext, QueueDiscipline, check_time};
use crate::error::ConfigError;
use crate::queue::{DropTail, Waiting};
use crate::queue_limit::QueueLimit;

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CodelConfig {
    /// The tolerated wait.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub target: Duration,
    /// The time for which the wait may exceed the target: the longest usual RTT.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub interval: Duration,
    /// Marks ECN-capable packets in place of dropping them.
    pub ecn: bool,
}

impl Default for CodelConfig {
    /// RFC 8289, Sections 4.3 and 4.4.
    fn default() -> Self {
        CodelConfig { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

impl CodelConfig {
    pub(super) fn check(self) -> Result<(), ConfigError> {
        check_time(self.target)?;
        check_time(self.interval)
    }
}

/// One queue under CoDel.
#[derive(Clone, Debug)]
pub(super) struct Codel {
    config: CodelConfig,
    fifo: DropTail,
    state: CodelState,
}

impl Codel {
    pub(super) fn new(config: CodelConfig, limit: QueueLimit) -> Self {
        Codel { config, fifo: DropTail::new(limit), state: CodelState::default() }
    }
}

impl QueueDiscipline for Codel {
    fn enqueue(&mut self, waiting: Waiting, ctx: &mut AqmContext<'_>) {
        ctx.admit(&mut self.fifo, waiting);
    }

    fn dequeue(&mut self, now: Instant, ctx: &mut AqmContext<'_>) -> Option<Waiting> {
        self.state.dequeue(now, self.config, &mut self.fifo, ctx)
    }

    fn backlog(&self) -> (usize, u64) {
        self.fifo.backlog()
    }
}

/// The state of the algorithm for one queue, named as in RFC 8289, Section 5.
#[derive(Clone, Debug, Default)]
pub(super) struct CodelState {
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
    maxpacket: u64,
}

/// If dropping restarts within this number of intervals after the last drop, it continues at the earlier rate (RFC
/// 8289, Section 5.5).
const REMEMBERED_INTERVALS: u64 = 16;

impl CodelState {
    /// Returns the next packet of `fifo` (RFC 8289, Section 5.5). A marked packet leaves as if a packet before it had
    /// been dropped.
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        config: CodelConfig,
        fifo: &mut DropTail,
        ctx: &mut AqmContext<'_>,
    ) -> Option<Waiting> {
        let (waiting, ok_to_drop) = self.dodequeue(now, config, fifo)?;
        if !self.dropping {
            return if ok_to_drop { self.begin(now, config, waiting, fifo, ctx) } else { Some(waiting) };
        }
        if !ok_to_drop {
            self.dropping = false;
            return Some(waiting);
        }
        self.continue_dropping(now, config, waiting, fifo, ctx)
    }

    /// Enters the dropping state.
    fn begin(
        &mut self,
        now: Instant,
        config: CodelConfig,
        waiting: Waiting,
        fifo: &mut DropTail,
        ctx: &mut AqmContext<'_>,
    ) -> Option<Waiting> {
        let next = if config.ecn && ctx.mark(&waiting.handle) {
            Some(waiting)
        } else {
            ctx.drop_early(waiting);
            self.dodequeue(now, config, fifo).map(|(next, _)| next)
        };
        self.dropping = true;
        let delta = self.count - self.lastcount;
        let recent = now.saturating_since(self.drop_next) < config.interval * REMEMBERED_INTERVALS;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.lastcount = self.count;
        self.drop_next = self.control_law(now, config.interval);
        next
    }

    /// Drops packets that are due in the dropping state.
    fn continue_dropping(
        &mut self,
        now: Instant,
        config: CodelConfig,
        mut waiting: Waiting,
        fifo: &mut DropTail,
        ctx: &mut AqmContext<'_>,
    ) -> Option<Waiting> {
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if config.ecn && ctx.mark(&waiting.handle) {
                self.drop_next = self.control_law(self.drop_next, config.interval);
                break;
            }
            ctx.drop_early(waiting);
            let Some((next, ok_to_drop)) = self.dodequeue(now, config, fifo) else {
                self.dropping = false;
                return None;
            };
            waiting = next;
            if ok_to_drop {
                self.drop_next = self.control_law(self.drop_next, config.interval);
            } else {
                self.dropping = false;
            }
        }
        Some(waiting)
    }

    /// Returns the first packet, and true if the wait has been too long for an interval. If at most one packet remains
    /// behind it, the answer is false, because a drop would let the link idle.
    fn dodequeue(
        &mut self,
        now: Instant,
        config: CodelConfig,
        fifo: &mut DropTail,
    ) -> Option<(Waiting, bool)> {
        let Some(waiting) = fifo.pop() else {
            self.first_above_time = None;
            self.dropping = false;
            return None;
        };
        self.maxpacket = self.maxpacket.max(waiting.handle.bytes.into());
        let sojourn_time = now.saturating_since(waiting.arrival);
        let ok_to_drop = if sojourn_time < config.target || fifo.bytes() <= self.maxpacket {
            self.first_above_time = None;
            false
        } else {
            let since = *self.first_above_time.get_or_insert(now + config.interval);
            now >= since
        };
        Some((waiting, ok_to_drop))
    }

    /// RFC 8289, Section 5.6, in integer nanoseconds.
    fn control_law(&self, t: Instant, interval: Duration) -> Instant {
        let interval = u128::from(interval.as_nanos());
        let span = (interval * interval / u128::from(self.count.max(1))).isqrt();
        t + Duration::from_nanos(span as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, ms};
    use super::*;

    fn codel(ecn: bool) -> Codel {
        Codel::new(CodelConfig { ecn, ..CodelConfig::default() }, QueueLimit::Unlimited)
    }

    #[test]
    fn intervals_shrink_with_the_root_of_the_count() {
        let state = |count| CodelState { count, ..CodelState::default() };
        let next = |count| state(count).control_law(Instant::ZERO, ms(100)).as_nanos();
        assert_eq!([1, 2, 4, 100].map(next), [100_000_000, 70_710_678, 50_000_000, 10_000_000]);
    }

    /// Two packets come and one leaves each millisecond, so every wait exceeds 5 ms from 10 ms on. The first drop is
    /// one interval later. Then the gaps are 100 ms / sqrt(count).
    #[test]
    fn a_standing_queue_is_dropped_from_ever_more_often() {
        let mut bench = Bench::new();
        let mut codel = codel(false);
        let mut drops = alloc::vec::Vec::new();
        for step in 0..600 {
            bench.send(&mut codel, ms(step), 2);
            let before = bench.counters.dropped_by_aqm.packets;
            bench.take(&mut codel, ms(step));
            drops.extend((before < bench.counters.dropped_by_aqm.packets).then_some(step));
        }
        let gaps: alloc::vec::Vec<u64> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((105..=112).contains(&drops[0]), "{drops:?}");
        // Rounded up to whole milliseconds after 100, 170.7, 228.4 and 278.4.
        assert_eq!(gaps[..4], [100, 71, 58, 50], "{drops:?}");
    }

    /// A burst that drains within the interval is not dropped.
    #[test]
    fn a_burst_is_let_through() {
        let mut bench = Bench::new();
        let mut codel = codel(false);
        bench.send(&mut codel, ms(0), 90);
        for step in 0..200 {
            bench.take(&mut codel, ms(step));
        }
        assert_eq!(bench.counters.dropped().packets, 0);
    }

    #[test]
    fn marks_stand_in_for_drops_where_they_can() {
        let mut marked = Bench::new();
        marked.ect = true;
        let mut dropped = Bench::new();
        for bench in [&mut marked, &mut dropped] {
            let mut codel = codel(true);
            for step in 0..600 {
                bench.send(&mut codel, ms(step), 2);
                bench.take(&mut codel, ms(step));
            }
        }
        assert_eq!((marked.counters.dropped_by_aqm.packets, dropped.counters.marked.packets), (0, 0));
        assert!(marked.counters.marked.packets > 6, "{:?}", marked.counters);
        let drops = dropped.counters.dropped_by_aqm.packets;
        assert!(drops.abs_diff(marked.counters.marked.packets) <= 1, "{:?} {drops}", marked.counters);
    }

    #[test]
    fn the_limit_holds() {
        let mut bench = Bench::new();
        let mut codel = Codel::new(CodelConfig::default(), QueueLimit::Packets(10));
        bench.send(&mut codel, ms(0), 15);
        assert_eq!((codel.backlog().0, bench.counters.dropped_by_queue.packets), (10, 5));
    }
}
