//! The waiting packets under drop-tail. Other disciplines are in [`aqm`](crate::aqm).

use alloc::collections::VecDeque;

use paceline_wire::Instant;

use crate::impairment::Impairment;
use crate::packet_store::PacketHandle;
use crate::queue_limit::QueueLimit;

/// A packet in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) handle: PacketHandle,
    pub(crate) arrival: Instant,
    /// Time from which it can be sent: its arrival, or for a link-layer retransmission the time at which the failure is
    /// known.
    pub(crate) ready: Instant,
    pub(crate) impairment: Impairment,
}

/// A first-in, first-out queue that drops packets without room.
#[derive(Clone, Debug)]
pub(crate) struct DropTail {
    limit: QueueLimit,
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl DropTail {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        DropTail { limit, waiting: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn has_room(&self, bytes: u32) -> bool {
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(limit) => self.bytes + u64::from(bytes) <= limit,
            QueueLimit::Packets(limit) => self.waiting.len() < limit as usize,
        }
    }

    /// Like [`has_room`](Self::has_room), with this number of further packets and bytes counted against the limit.
    pub(crate) fn has_room_beside(&self, (packets, others): (usize, u64), bytes: u32) -> bool {
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(limit) => self.bytes + others + u64::from(bytes) <= limit,
            QueueLimit::Packets(limit) => self.waiting.len() + packets < limit as usize,
        }
    }

    pub(crate) fn limit(&self) -> QueueLimit {
        self.limit
    }

    /// Takes a packet whether there is room or not.
    #[inline(always)]
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.handle.bytes);
        self.waiting.push_back(waiting);
    }

    /// Takes a packet that is sent before all others.
    pub(crate) fn push_front(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.handle.bytes);
        self.waiting.push_front(waiting);
    }

    pub(crate) fn front(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= u64::from(waiting.handle.bytes);
        Some(waiting)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of packets, and their IP bytes.
    pub(crate) fn backlog(&self) -> (usize, u64) {
        (self.waiting.len(), self.bytes)
    }
}
