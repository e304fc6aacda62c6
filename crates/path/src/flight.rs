//! Packets between the bottleneck and the other end.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Ordering;

use paceline_wire::{Duration, Instant};

use crate::packet_store::PacketHandle;

/// A packet that will arrive at `at`.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) at: Instant,
    pub(crate) handle: PacketHandle,
    /// The time that it had waited when it left.
    pub(crate) queue_delay: Duration,
}

/// The packets in flight, in order of arrival. Packets that arrive at the same instant keep the order in which they
/// were added.
///
/// Most packets arrive in the order in which they left, and use a plain queue. Only packets that may overtake or fall
/// behind use a heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    ordered: VecDeque<(u64, Flight)>,
    unordered: BinaryHeap<Unordered>,
    added: u64,
}

#[derive(Clone, Debug)]
struct Unordered {
    number: u64,
    flight: Flight,
}

impl InFlight {
    /// Adds a packet that overtakes no other ordered one. It arrives at `at` or later.
    ///
    /// Separate arguments without inlining let the parts be written directly to their place.
    #[inline(never)]
    pub(crate) fn add_in_order(&mut self, mut at: Instant, handle: PacketHandle, queue_delay: Duration) {
        if let Some((_, last)) = self.ordered.back() {
            at = at.max(last.at);
        }
        let number = self.next_number();
        self.ordered.push_back((number, Flight { at, handle, queue_delay }));
    }

    /// Adds a packet that arrives at `flight.at`, regardless of the order.
    pub(crate) fn add_out_of_order(&mut self, flight: Flight) {
        let number = self.next_number();
        self.unordered.push(Unordered { number, flight });
    }

    /// Time at which the next packet arrives.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        let ordered = self.ordered.front().map(|(_, flight)| flight.at);
        if self.unordered.is_empty() {
            return ordered;
        }
        let unordered = self.unordered.peek().map(|entry| entry.flight.at);
        ordered.into_iter().chain(unordered).min()
    }

    /// Takes the next packet if it arrives at or before `now`.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant) -> Option<Flight> {
        if !self.unordered.is_empty() {
            return self.take_of_both(now);
        }
        if self.ordered.front()?.1.at > now {
            return None;
        }
        self.ordered.pop_front().map(|(_, flight)| flight)
    }

    fn take_of_both(&mut self, now: Instant) -> Option<Flight> {
        let ordered = self.ordered.front().map(|(number, flight)| (flight.at, *number));
        let unordered = self.unordered.peek().map(Unordered::key);
        let (at, _) = ordered.into_iter().chain(unordered).min()?;
        if at > now {
            return None;
        }
        let from_queue = ordered.is_some_and(|ordered| unordered.is_none_or(|unordered| ordered < unordered));
        if from_queue {
            self.ordered.pop_front().map(|(_, flight)| flight)
        } else {
            self.unordered.pop().map(|entry| entry.flight)
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ordered.len() + self.unordered.len()
    }

    fn next_number(&mut self) -> u64 {
        self.added += 1;
        self.added
    }
}

impl Unordered {
    fn key(&self) -> (Instant, u64) {
        (self.flight.at, self.number)
    }
}

/// Reversed, because the heap returns its greatest entry first, which must be the earliest.
impl Ord for Unordered {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Unordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Unordered {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Unordered {}
