//! Ranges of a stream, as seen by a tap.

use std::collections::BTreeMap;

use paceline_wire::{Packet, Seq};

/// Disjoint ranges by start. It does not use tcp's RangeSet, so that it is an independent witness.
#[derive(Debug, Default)]
pub(crate) struct Covered(BTreeMap<u64, u64>);

impl Covered {
    /// Adds `start..end` and returns the number of new bytes.
    pub(crate) fn add(&mut self, start: u64, end: u64) -> u64 {
        let (mut from, mut to, mut known) = (start, end, 0);
        while let Some((&first, &last)) = self.0.range(..=to).next_back().filter(|(_, last)| **last >= from) {
            known += last.min(end).saturating_sub(first.max(start));
            (from, to) = (from.min(first), to.max(last));
            self.0.remove(&first);
        }
        self.0.insert(from, to);
        end - start - known
    }
}

/// Unwraps the sequence numbers of one direction.
#[derive(Debug, Default)]
pub(crate) struct Unwrap(u64);

impl Unwrap {
    pub(crate) fn position(&mut self, seq: Seq) -> u64 {
        let position = seq.unwrap_near(self.0.max(1 << 32));
        self.0 = self.0.max(position);
        position
    }

    /// Returns the range of the payload of `packet`, if it has any.
    pub(crate) fn payload(&mut self, packet: &Packet) -> Option<(u64, u64)> {
        let len = packet.payload().len() as u64;
        let start = self.position(packet.tcp()?.seq());
        (len > 0).then_some((start, start + len))
    }
}
