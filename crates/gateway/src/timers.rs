//! Timers of numbered items, earliest first.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use paceline_wire::Instant;

use crate::ids::Id;

/// A heap of timers. Each item also keeps its own timer. A heap entry with another time is outdated, and is skipped
/// when due.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(bound(deserialize = "I: Ord + serde::Deserialize<'de>"))]
pub(crate) struct Timers<I> {
    heap: BinaryHeap<Reverse<(Instant, I)>>,
}

/// Our choice: a turn stays short, even if many flows time out together. Each takes some 4 us, so a turn takes 1 ms.
pub(crate) const TIMEOUTS_A_TURN: usize = 256;

/// Number of outdated entries that are always tolerated. Our choice.
const SLACK: usize = 64;

impl<I: Id> Default for Timers<I> {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new() }
    }
}

impl<I: Id> Timers<I> {
    /// Sets the timer of `id`, unless an earlier one is set. When that one is due, the item is looked at again.
    pub(crate) fn set(&mut self, armed: &mut Option<Instant>, id: I, at: Instant) {
        if armed.is_none_or(|armed| at < armed) {
            *armed = Some(at);
            self.heap.push(Reverse((at, id)));
        }
    }

    /// Returns an item whose timer is due. `disarm` clears the item's timer if it is set to this time, see [`disarm`].
    pub(crate) fn pop_due(&mut self, now: Instant, mut disarm: impl FnMut(I, Instant) -> bool) -> Option<I> {
        while let Some(&Reverse((at, id))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            if disarm(id, at) {
                return Some(id);
            }
        }
        None
    }

    /// Returns the time of the next entry, which may be outdated.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|&Reverse((at, _))| at)
    }

    /// Removes outdated entries if the heap has over twice as many entries as there are `live` items. An item that
    /// often sets an earlier timer leaves an entry each time.
    pub(crate) fn tidy(&mut self, live: usize, mut armed: impl FnMut(I) -> Option<Instant>) {
        if self.heap.len() > 2 * live + SLACK {
            self.heap.retain(|&Reverse((at, id))| armed(id) == Some(at));
        }
    }
}

/// Clears a timer if it is set to `at`. True if it was.
pub(crate) fn disarm(armed: &mut Option<Instant>, at: Instant) -> bool {
    armed.take_if(|armed| *armed == at).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::EntryId;

    #[test]
    fn what_is_out_of_date_is_skipped_and_does_not_pile_up() {
        let (at, id) = (Instant::from_nanos, EntryId::new(7));
        let (mut timers, mut armed) = (Timers::default(), None);
        for n in 1..1_000 {
            timers.set(&mut armed, id, at(1_000_000 + n));
            timers.set(&mut armed, id, at(n));
            assert_eq!(timers.pop_due(at(n), |_, at| disarm(&mut armed, at)), Some(id));
            timers.tidy(1, |_| armed);
        }
        assert!(timers.heap.len() <= SLACK + 2);
        timers.set(&mut armed, id, at(5_000));
        assert_eq!(timers.pop_due(at(2_000_000), |_, at| disarm(&mut armed, at)), Some(id));
        assert_eq!(timers.pop_due(at(2_000_000), |_, at| disarm(&mut armed, at)), None);
    }
}
