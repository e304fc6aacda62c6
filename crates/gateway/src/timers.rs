//! Timers of things that have numbers, earliest first.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use paceline_wire::Instant;

/// A thing's own timer is kept with it; an entry here that says another time is out of date, and skipped when it comes up.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
}

/// Our choice: a turn is short, however many flows time out together. Each takes some 4 us: a millisecond.
pub(crate) const TIMEOUTS_A_TURN: usize = 256;

/// Entries out of date that are borne at least. Our choice.
const SLACK: usize = 64;

impl Timers {
    /// Sets the timer of `id`, unless an earlier one is set: that one will look again.
    pub(crate) fn set(&mut self, armed: &mut Option<Instant>, id: u32, at: Instant) {
        if armed.is_none_or(|armed| at < armed) {
            *armed = Some(at);
            self.heap.push(Reverse((at, id)));
        }
    }

    /// The number whose timer is due. `disarm` takes the timer of a thing out if it is set to this time, see [`disarm`].
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

    /// When the next one is due, or one out of date.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|&Reverse((at, _))| at)
    }

    /// Forgets what is out of date once that is more than what `live` things have: a thing that wakes early and often would
    /// leave an entry each time.
    pub(crate) fn tidy(&mut self, live: usize, mut armed: impl FnMut(u32) -> Option<Instant>) {
        if self.heap.len() > 2 * live + SLACK {
            self.heap.retain(|&Reverse((at, id))| armed(id) == Some(at));
        }
    }
}

/// Whether a timer was set to `at`; then it is no longer set.
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
