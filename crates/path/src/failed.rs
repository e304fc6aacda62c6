//! Packets that the link layer retransmits.

use alloc::collections::VecDeque;

use paceline_wire::Instant;

use crate::queue::Waiting;

/// Packets whose last attempt failed, in the order of their retransmission.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailedTransmissions {
    waiting: VecDeque<Waiting>,
}

impl FailedTransmissions {
    /// Keeps a packet until `Waiting::ready`. The delay is the same for all packets, so they stay in order.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// Time at which the first packet can be retransmitted.
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
