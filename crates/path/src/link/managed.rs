//! A link with queue management. The discipline holds the waiting packets, and the link's own queue holds the packet
//! chosen as next.
//!
//! Packets wait in the discipline only while a packet is being sent or is chosen. So the rest of the link need not look
//! there to know whether it is idle.

use alloc::boxed::Box;

use paceline_wire::Instant;

use super::Link;
use crate::aqm::{AqmContext, QueueDiscipline};
use crate::queue::Waiting;

#[derive(Clone, Debug)]
pub(super) struct ManagedQueue {
    discipline: Box<dyn QueueDiscipline>,
    last_arrival: Instant,
}

impl ManagedQueue {
    pub(super) fn new(discipline: Box<dyn QueueDiscipline>, start: Instant) -> Self {
        ManagedQueue { discipline, last_arrival: start }
    }

    /// The number of waiting packets, and their IP bytes.
    pub(super) fn backlog(&self) -> (usize, u64) {
        self.discipline.backlog()
    }
}

impl Link {
    /// Gives a packet to the discipline.
    #[inline(never)]
    pub(super) fn offer(&mut self, waiting: Waiting, idle: bool) {
        let Link { managed, store, counters, bottleneck, start, queue, .. } = self;
        let Some(managed) = managed else { return };
        managed.last_arrival = waiting.arrival;
        let chosen = queue.backlog();
        managed
            .discipline
            .enqueue(waiting, &mut AqmContext { store, counters, bottleneck, start: *start, chosen, idle });
    }

    /// Lets the discipline choose the next packet. The time of the choice is when the bottleneck became free, or when a
    /// packet arrived at the free bottleneck. So the choice does not depend on late calls.
    #[inline(never)]
    pub(super) fn choose(&mut self) {
        let Link { managed, store, counters, bottleneck, start, queue, free_at, .. } = self;
        let Some(managed) = managed else { return };
        let at = managed.last_arrival.max(*free_at);
        let mut ctx = AqmContext { store, counters, bottleneck, start: *start, chosen: (0, 0), idle: false };
        if let Some(waiting) = managed.discipline.dequeue(at, &mut ctx) {
            queue.push(waiting);
        }
    }
}
