//! Queue disciplines other than drop-tail. They decide the order of packets, early drops and marks.
//!
//! A link without a discipline keeps its packets in a [`DropTail`] and does not use this module. Otherwise the
//! discipline holds all waiting packets, and chooses the next packet when the bottleneck becomes free. The chosen
//! packet stays next, even if the bottleneck must wait for a chance to send it.

mod abc;
mod codel;
mod fq_codel;
mod pie;
mod red;

use alloc::boxed::Box;
use core::fmt;

use paceline_wire::{Duration, Ecn, Instant};

use crate::bottleneck::Bottleneck;
use crate::counters::LinkCounters;
use crate::error::ConfigError;
use crate::packet_store::{PacketHandle, PacketStore};
use crate::queue::{DropTail, Waiting};
use crate::queue_limit::QueueLimit;
use crate::random::Random;

pub use abc::AbcConfig;
pub use codel::CodelConfig;
pub use fq_codel::FqCodelConfig;
pub use pie::PieConfig;
pub use red::RedConfig;

/// Queue management with its parameters. Each discipline also obeys the limit of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aqm {
    /// No queue management: packets that find no room are dropped.
    #[default]
    DropTail,
    /// CoDel (RFC 8289).
    Codel(CodelConfig),
    /// FQ-CoDel (RFC 8290).
    FqCodel(FqCodelConfig),
    /// PIE (RFC 8033).
    Pie(PieConfig),
    /// RED (Floyd and Jacobson 1993).
    Red(RedConfig),
    /// The router of ABC (Goyal et al. 2020).
    Abc(AbcConfig),
}

/// Holds the waiting packets, drops packets, and chooses the next one.
///
/// Times never go back. A discipline drops and marks packets through the [`AqmContext`], which counts them.
pub(crate) trait QueueDiscipline: BoxedClone + fmt::Debug + Send + Sync {
    /// Takes a packet at its arrival, or drops it, or drops others to make room.
    fn enqueue(&mut self, waiting: Waiting, ctx: &mut AqmContext<'_>);
    /// Returns the packet that the bottleneck, free since `now`, sends next. `None` only if no packet waits.
    fn dequeue(&mut self, now: Instant, ctx: &mut AqmContext<'_>) -> Option<Waiting>;
    /// The number of waiting packets, and their IP bytes.
    fn backlog(&self) -> (usize, u64);
}

/// Copies a discipline with its state.
pub(crate) trait BoxedClone {
    fn boxed(&self) -> Box<dyn QueueDiscipline>;
}

impl<T: QueueDiscipline + Clone + 'static> BoxedClone for T {
    fn boxed(&self) -> Box<dyn QueueDiscipline> {
        Box::new(self.clone())
    }
}

/// The actions of a discipline on packets, and its view of the link.
pub(crate) struct AqmContext<'a> {
    pub(crate) store: &'a mut PacketStore,
    pub(crate) counters: &'a mut LinkCounters,
    pub(crate) bottleneck: &'a Bottleneck,
    pub(crate) start: Instant,
    /// Packets and bytes that are chosen but still wait. They count against the limit.
    pub(crate) chosen: (usize, u64),
    /// True if no packet waits or is being sent. Then a packet of any size is accepted.
    pub(crate) idle: bool,
}

impl Aqm {
    /// The names of all disciplines except `abc`.
    pub const NAMES: [&'static str; 5] = ["drop-tail", "codel", "fq-codel", "pie", "red"];

    /// Returns a discipline by its name, with the parameters that its source recommends.
    pub fn named(name: &str) -> Option<Aqm> {
        match name {
            "drop-tail" => Some(Aqm::DropTail),
            "codel" => Some(Aqm::Codel(CodelConfig::default())),
            "fq-codel" => Some(Aqm::FqCodel(FqCodelConfig::default())),
            "pie" => Some(Aqm::Pie(PieConfig::default())),
            "red" => Some(Aqm::Red(RedConfig::default())),
            "abc" => Some(Aqm::Abc(AbcConfig::default())),
            _ => None,
        }
    }

    pub(crate) fn check(self, limit: QueueLimit) -> Result<(), ConfigError> {
        match self {
            Aqm::DropTail => Ok(()),
            Aqm::Codel(config) => config.check(),
            Aqm::FqCodel(config) => config.check(),
            Aqm::Pie(config) => config.check(),
            Aqm::Red(config) => config.check(limit),
            Aqm::Abc(config) => config.check(),
        }
    }

    /// Builds the discipline; `random` is for it alone. Returns `None` for drop-tail, which the link implements itself.
    pub(crate) fn build(self, limit: QueueLimit, mut random: Random) -> Option<Box<dyn QueueDiscipline>> {
        Some(match self {
            Aqm::DropTail => return None,
            Aqm::Codel(config) => Box::new(codel::Codel::new(config, limit)),
            Aqm::FqCodel(config) => Box::new(fq_codel::FqCodel::new(config, limit, random.below(u64::MAX))),
            Aqm::Pie(config) => Box::new(pie::Pie::new(config, limit, random)),
            Aqm::Red(config) => Box::new(red::Red::new(config, limit, random)),
            Aqm::Abc(config) => Box::new(abc::Abc::new(config, limit)),
        })
    }
}

impl Clone for Box<dyn QueueDiscipline> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl AqmContext<'_> {
    /// Marks a packet whose ends support ECN (RFC 3168, Section 5). Returns false if they do not; then the packet must
    /// be dropped.
    pub(crate) fn mark(&mut self, handle: &PacketHandle) -> bool {
        let Some(packet) = self.store.packet_mut(handle) else { return false };
        match packet.ecn() {
            Some(Ecn::Ect0 | Ecn::Ect1) => {
                packet.set_ecn(Ecn::Ce);
                self.counters.marked.add(handle.bytes);
                true
            }
            // Another link has marked it.
            Some(Ecn::Ce) => true,
            Some(Ecn::NotEct) | None => false,
        }
    }

    /// True if a packet has the mark "accelerate", ECT(1) (ABC).
    pub(crate) fn accelerates(&self, handle: &PacketHandle) -> bool {
        self.store.packet(handle).is_some_and(|packet| packet.ecn() == Some(Ecn::Ect1))
    }

    /// Sets the mark "brake", ECT(0), on a packet (ABC).
    pub(crate) fn brake(&mut self, handle: &PacketHandle) {
        if let Some(packet) = self.store.packet_mut(handle) {
            packet.set_ecn(Ecn::Ect0);
            self.counters.marked.add(handle.bytes);
        }
    }

    /// Drops a packet before the queue is full.
    pub(crate) fn drop_early(&mut self, waiting: Waiting) {
        self.counters.dropped_by_aqm.add(waiting.handle.bytes);
        self.store.discard(waiting.handle);
    }

    /// Drops a packet because the queue is full.
    pub(crate) fn drop_for_room(&mut self, waiting: Waiting) {
        self.counters.dropped_by_queue.add(waiting.handle.bytes);
        self.store.discard(waiting.handle);
    }

    /// Adds a packet to a first-in, first-out queue, or drops it if there is no room.
    pub(crate) fn admit(&mut self, fifo: &mut DropTail, waiting: Waiting) {
        if self.has_room(fifo, waiting.handle.bytes) {
            fifo.push(waiting);
        } else {
            self.drop_for_room(waiting);
        }
    }

    /// True if a first-in, first-out queue has room for a packet.
    pub(crate) fn has_room(&self, fifo: &DropTail, bytes: u32) -> bool {
        self.idle || fifo.has_room_beside(self.chosen, bytes)
    }

    /// Bytes that the bottleneck could have sent between two times; `None` without a limit.
    pub(crate) fn capacity_bytes(&self, from: Instant, to: Instant) -> Option<u64> {
        let since = |at: Instant| at.saturating_since(self.start);
        self.bottleneck.capacity_bytes(since(from), since(to))
    }
}

/// Returns an error if a configured time is zero.
fn check_time(time: Duration) -> Result<(), ConfigError> {
    if time.is_zero() { Err(ConfigError::ZeroAqmTime) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
