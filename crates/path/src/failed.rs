//! Packets that the link layer sends again.

use alloc::collections::VecDeque;

use paceline_wire::Instant;

use crate::queue::Waiting;

/// Packets whose last attempt failed, in the order in which they will be sent again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failed {
    waiting: VecDeque<Waiting>,
}

impl Failed {
    /// Keeps a packet until `Waiting::ready`, never before that of another one: the time that it takes is the same for all.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// When the first one can be sent again.
    #[inline]
    pub(crate) fn next_ready(&self) -> Option<Instant> {
        self.waiting.front().map(|first| first.ready)
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
