//! The event queue: ordered by time, and events of one time by their order of entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paceline_wire::Instant;

/// The time at which each actor wants to be called.
///
/// An actor has one time. With every packet, timers move it later, and this costs nothing: the actor is called at the
/// earlier time and asked again. The heap has small entries: one for each link and node, not one for each packet.
/// Nothing cleverer is faster here.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    /// By actor: the time of the entry that counts, or [`NEVER`].
    due: Vec<Instant>,
    entered: u64,
    /// The first entry of the heap was taken. It stays there until another entry replaces it. This nearly always
    /// happens, because an actor that was called is soon due again.
    first_taken: bool,
}

/// Time, number of entry and actor in one number. So one comparison orders two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

/// Our choice: memory ends before 2^24 actors, and the other bits number a year of entries.
const ACTOR_BITS: u32 = 24;

const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl EventQueue {
    /// Makes room for actors up to `actor`.
    pub fn add_actor(&mut self, actor: u32) {
        let len = self.due.len().max(actor as usize + 1);
        self.due.resize(len, NEVER);
    }

    /// Schedules `actor` for `at`, unless it is scheduled for an earlier time.
    #[inline]
    pub fn schedule(&mut self, actor: u32, at: Instant) {
        let due = &mut self.due[actor as usize];
        if *due <= at {
            return;
        }
        *due = at;
        self.entered += 1;
        let entry = Reverse(Entry::new(at, self.entered, actor));
        if std::mem::take(&mut self.first_taken)
            && let Some(mut first) = self.heap.peek_mut()
        {
            *first = entry;
            return;
        }
        self.heap.push(entry);
    }

    /// The time at which the first actor wants to be called.
    pub fn first(&mut self) -> Option<Instant> {
        self.drop_taken();
        while let Some(&Reverse(entry)) = self.heap.peek() {
            if self.due[entry.actor() as usize] == entry.at() {
                return Some(entry.at());
            }
            self.heap.pop();
        }
        None
    }

    /// Takes the first actor that is due at or before `end`, with its time.
    #[inline]
    pub fn pop(&mut self, end: Instant) -> Option<(Instant, u32)> {
        self.drop_taken();
        while let Some(&Reverse(entry)) = self.heap.peek() {
            let (at, actor) = (entry.at(), entry.actor());
            if at > end {
                return None;
            }
            let due = &mut self.due[actor as usize];
            // An entry does not count if an earlier time replaced it.
            if *due == at {
                *due = NEVER;
                self.first_taken = true;
                return Some((at, actor));
            }
            self.heap.pop();
        }
        None
    }

    #[inline]
    fn drop_taken(&mut self) {
        if std::mem::take(&mut self.first_taken) {
            self.heap.pop();
        }
    }
}

impl Entry {
    fn new(at: Instant, number: u64, actor: u32) -> Entry {
        let order = number << ACTOR_BITS | u64::from(actor);
        Entry(u128::from(at.as_nanos()) << 64 | u128::from(order))
    }

    fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    fn actor(self) -> u32 {
        self.0 as u32 & ((1 << ACTOR_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn order_of_time_then_of_entry() {
        let mut queue = EventQueue::default();
        queue.add_actor(3);
        for (actor, ns) in [(2, 5), (0, 5), (1, 4), (3, 9)] {
            queue.schedule(actor, at(ns));
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(at(8))).collect();
        assert_eq!(order, [(at(4), 1), (at(5), 2), (at(5), 0)]);
        assert_eq!(queue.pop(at(9)), Some((at(9), 3)));
    }

    #[test]
    fn later_times_wait_for_the_earlier_call_and_earlier_ones_replace_it() {
        let mut queue = EventQueue::default();
        queue.add_actor(0);
        queue.schedule(0, at(10));
        queue.schedule(0, at(20));
        assert_eq!(queue.pop(at(99)), Some((at(10), 0)));
        assert_eq!(queue.pop(at(99)), None);
        queue.schedule(0, at(20));
        queue.schedule(0, at(15));
        assert_eq!(queue.pop(at(99)), Some((at(15), 0)));
        assert_eq!(queue.pop(at(99)), None);
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Schedule(u32, u64),
        Pop(u64),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            (0..5u32, 0..40u64).prop_map(|(actor, ns)| Operation::Schedule(actor, ns)),
            (0..40u64).prop_map(Operation::Pop),
        ]
    }

    proptest! {
        #[test]
        fn as_a_list_searched_from_end_to_end(operations in prop::collection::vec(operation(), 0..200)) {
            let mut queue = EventQueue::default();
            queue.add_actor(4);
            let mut model: Vec<(Instant, u64, u32)> = Vec::new();
            for (number, operation) in operations.into_iter().enumerate() {
                match operation {
                    Operation::Schedule(actor, ns) => {
                        queue.schedule(actor, at(ns));
                        let earlier = model.iter().any(|e| e.2 == actor && e.0 <= at(ns));
                        if !earlier {
                            model.retain(|e| e.2 != actor);
                            model.push((at(ns), number as u64, actor));
                        }
                    }
                    Operation::Pop(ns) => {
                        let first = model.iter().copied().filter(|e| e.0 <= at(ns)).min();
                        model.retain(|e| Some(*e) != first);
                        let (actual, expected) = (queue.pop(at(ns)), first.map(|e| (e.0, e.2)));
                        // Among entries of one time the order may differ: a replaced entry counts again if its actor
                        // returns to that time.
                        prop_assert_eq!(actual.map(|a| a.0), expected.map(|e| e.0));
                        if actual != expected {
                            let (Some((_, actor)), Some(first)) = (actual, first) else { continue };
                            prop_assert!(model.iter().any(|e| e.2 == actor && e.0 == first.0));
                            model.retain(|e| e.2 != actor);
                            model.push(first);
                        }
                    }
                }
            }
        }
    }
}
