//! Timers of numbered items, earliest first.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use paceline_wire::Instant;

/// A heap of timers. Each item also keeps its own timer. A heap entry with another time is outdated, and is skipped
/// when due.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
}

/// Our choice: a turn stays short, even if many flows time out together. Each takes some 4 us, so a turn takes 1 ms.
pub(crate) const TIMEOUTS_A_TURN: usize = 256;

/// Number of outdated entries that are always tolerated. Our choice.
const SLACK: usize = 64;

impl Timers {
    /// Sets the timer of `id`, unless an earlier one is set. When that one is due, the item is looked at again.
    pub(crate) fn set(&mut self, armed: &mut Option<Instant>, id: u32, at: Instant) {
        if armed.is_none_or(|armed| at < armed) {
            *armed = Some(at);
            self.heap.push(Reverse((at, id)));
        }
    }

    /// Returns an item whose timer is due. `disarm` clears the item's timer if it is set to this time, see [`disarm`].
    pub(crate) fn pop_due(
        &mut self,
        now: Instant,
        mut disarm: impl FnMut(u32, Instant) -> bool,
    ) -> Option<u32> {
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
    pub(crate) fn tidy(&mut self, live: usize, mut armed: impl FnMut(u32) -> Option<Instant>) {
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

    #[test]
    fn what_is_out_of_date_is_skipped_and_does_not_pile_up() {
        let at = Instant::from_nanos;
        let (mut timers, mut armed) = (Timers::default(), None);
        for n in 1..1_000 {
            timers.set(&mut armed, 7, at(1_000_000 + n));
            timers.set(&mut armed, 7, at(n));
            assert_eq!(timers.pop_due(at(n), |_, at| disarm(&mut armed, at)), Some(7));
            timers.tidy(1, |_| armed);
        }
        assert!(timers.heap.len() <= SLACK + 2);
        timers.set(&mut armed, 7, at(5_000));
        assert_eq!(timers.pop_due(at(2_000_000), |_, at| disarm(&mut armed, at)), Some(7));
        assert_eq!(timers.pop_due(at(2_000_000), |_, at| disarm(&mut armed, at)), None);
    }
}
