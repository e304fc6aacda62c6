//! Retransmission by the link layer: what is lost on the air is sent again by the hop itself, a few times.
//!
//! A selective-repeat link layer without resequencing, as in the studies that call link-layer retransmission a cause of
//! reordering: the sender learns of a failed frame some time after its end, and then sends it before anything that waits. What
//! was sent meanwhile has overtaken it. Each attempt takes its time at the bottleneck and meets the loss anew; after the
//! last one the packet is gone. Acknowledgements of the link layer take no capacity.

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

use crate::queue::Waiting;

/// How a link layer repeats what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(deny_unknown_fields))]
pub struct LinkRetransmission {
    /// How often a packet is sent again at most.
    pub limit: u8,
    /// From the end of a failed attempt until the sender knows of it.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::units::de::duration"))]
    pub after: Duration,
}

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
