//! Delivery-opportunity traces: the milliseconds at which a link may deliver 1,500 bytes.
//!
//! The model and the file format are mahimahi's (Netravali et al., USENIX ATC 2015). There is one line per opportunity,
//! and the trace restarts at the time of its last line.

mod error;
mod parse;
mod series;
mod stats;
mod write;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use paceline_wire::{Duration, Rate};

pub use error::{LineProblem, TraceError};
pub use parse::{TraceFormat, TraceOptions};
pub use series::{Gaps, Sample, Series};
pub(crate) use series::{Work, close_period};
pub use stats::{Pause, RateStats};

/// Bytes that one opportunity can carry.
pub const OPPORTUNITY_BYTES: u64 = 1_500;

pub(crate) const NANOS_PER_MS: u64 = 1_000_000;

/// A delivery-opportunity trace. Clones share their memory.
///
/// An opportunity carries up to [`OPPORTUNITY_BYTES`] bytes at one instant. The last one is always at the end of the
/// period, because the file format has no other way to state the period.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    slots: Arc<[Slot]>,
}

/// The opportunities of one millisecond. Milliseconds without opportunities have no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) at_ms: u32,
    /// Opportunities of the period up to and including this millisecond.
    through: u32,
}

impl Trace {
    /// Makes a trace from (millisecond, number of opportunities) pairs, in rising order of time. Pairs with the same
    /// millisecond are added.
    pub fn from_counts(counts: impl IntoIterator<Item = (u32, u32)>) -> Result<Trace, TraceError> {
        let mut slots: Vec<Slot> = Vec::new();
        let mut through = 0u32;
        for (at_ms, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            through = through.checked_add(count).ok_or(TraceError::TooLong)?;
            match slots.last_mut() {
                Some(last) if last.at_ms == at_ms => last.through = through,
                Some(last) if last.at_ms > at_ms => {
                    return Err(TraceError::Unordered { at_ms, previous_ms: last.at_ms });
                }
                _ => slots.push(Slot { at_ms, through }),
            }
        }
        match slots.last() {
            None => Err(TraceError::Empty),
            Some(last) if last.at_ms == 0 => Err(TraceError::NoPeriod),
            Some(_) => Ok(Trace { slots: slots.into() }),
        }
    }

    /// Makes a trace from the milliseconds of its opportunities, in rising order.
    pub fn from_opportunities(times_ms: impl IntoIterator<Item = u32>) -> Result<Trace, TraceError> {
        Trace::from_counts(times_ms.into_iter().map(|at_ms| (at_ms, 1)))
    }

    /// Time after which the trace restarts.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns())
    }

    /// The number of opportunities in one period.
    pub fn opportunities(&self) -> u64 {
        self.slots.last().map_or(0, |last| u64::from(last.through))
    }

    /// Mean rate that the link can carry.
    pub fn mean_rate(&self) -> Rate {
        Rate::from_bytes_in(self.opportunities() * OPPORTUNITY_BYTES, self.period())
    }

    /// The (millisecond, number of opportunities) pairs of one period.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..self.slots.len()).map(|index| (self.slots[index].at_ms, self.count(index)))
    }

    /// The number of opportunities before `time`, which counts from the start of the trace and may be many periods
    /// later.
    pub fn opportunities_before(&self, time: Duration) -> u64 {
        let Some(last_ns) = time.as_nanos().checked_sub(1) else { return 0 };
        let (cycle, rest) = (last_ns / self.period_ns(), last_ns % self.period_ns());
        let end = self.slots.partition_point(|slot| slot.at_ns() <= rest);
        let through = end.checked_sub(1).map_or(0, |index| u64::from(self.slots[index].through));
        // On the boundary of two periods `rest` is 0. The division counts the last slot of the old period in full, and
        // the search finds millisecond 0 of the new one.
        cycle.saturating_mul(self.opportunities()).saturating_add(through)
    }

    pub(crate) fn period_ns(&self) -> u64 {
        self.slots.last().map_or(1, Slot::at_ns)
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The number of opportunities of one slot.
    pub(crate) fn count(&self, index: usize) -> u32 {
        let before = index.checked_sub(1).map_or(0, |previous| self.slots[previous].through);
        self.slots[index].through - before
    }
}

impl Slot {
    pub(crate) const fn at_ns(&self) -> u64 {
        self.at_ms as u64 * NANOS_PER_MS
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Trace({} opportunities in {:?}, {:?})",
            self.opportunities(),
            self.period(),
            self.mean_rate()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_are_counted_across_periods() {
        // Period 5 ms: at 0, 2, 2, 5 (= 0 of the next period), ...
        let trace = Trace::from_opportunities([0, 2, 2, 5]).unwrap();
        let before = |us| trace.opportunities_before(Duration::from_micros(us));
        assert_eq!([before(0), before(1), before(2_000), before(2_001), before(5_000)], [0, 1, 1, 3, 3]);
        assert_eq!([before(5_001), before(7_001), before(10_000), before(10_001)], [5, 7, 7, 9]);
        assert_eq!(trace.opportunities(), 4);
        assert_eq!(trace.counts().collect::<Vec<_>>(), [(0, 1), (2, 2), (5, 1)]);
        assert_eq!(trace.mean_rate(), Rate::from_mbps(9.6));
    }

    #[test]
    fn a_trace_needs_a_period_and_order() {
        assert_eq!(Trace::from_opportunities([]), Err(TraceError::Empty));
        assert_eq!(Trace::from_opportunities([0, 0]), Err(TraceError::NoPeriod));
        assert_eq!(
            Trace::from_opportunities([3, 2]),
            Err(TraceError::Unordered { at_ms: 2, previous_ms: 3 })
        );
        assert_eq!(Trace::from_counts([(1, u32::MAX), (2, 1)]), Err(TraceError::TooLong));
    }
}
