//! The server's data that the gateway keeps: packets by stream position, until the client has acknowledged them.

use core::ops::Range;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use paceline_wire::{Instant, Packet};

use crate::pool::PIECE_MIN;

/// A kept packet and the range of the stream that it carries; a FIN counts as one position, at the end.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Chunk {
    /// First stream position.
    pub(crate) start: u64,
    /// Position after the last.
    pub(crate) end: u64,
    /// Arrival from the server.
    pub(crate) arrival: Instant,
    packet: Packet,
}

impl Chunk {
    /// The packet that carries the stream from `start` to `end`, both inside the chunk.
    pub(crate) fn packet(&self, start: u64, end: u64) -> Packet {
        if start == self.start && end == self.end {
            return self.packet.clone();
        }
        let payload = self.packet.payload().len();
        let from = (start - self.start) as usize;
        let to = (end - self.start) as usize;
        self.packet.slice_payload(from.min(payload)..to.min(payload))
    }

    /// The packet as it came.
    pub(crate) fn whole(&self) -> &Packet {
        &self.packet
    }

    /// Payload bytes of one wire packet.
    pub(crate) fn segment_len(&self) -> u64 {
        match self.packet.gso_size() {
            Some(size) => u64::from(size).max(1),
            None => self.end - self.start,
        }
    }

    /// True if it is one segment as the server cut it, which is not divided.
    fn is_single(&self) -> bool {
        self.packet.gso_size().is_none()
    }

    /// Where a piece that starts at `start` and has at most `limit` bytes ends: after whole segments, at least one.
    pub(crate) fn piece_end(&self, start: u64, limit: u64) -> u64 {
        if self.is_single() {
            return self.end;
        }
        let segment = self.segment_len();
        let segments = (limit / segment).max(1);
        // The FIN travels with the last byte.
        let end = start.saturating_add(segments * segment);
        if end >= self.end - 1 { self.end } else { end }
    }
}

/// Kept packets, sorted, without overlap; there may be gaps where the server's packets did not arrive.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(from = "Written"))]
pub(crate) struct Store {
    chunks: VecDeque<Chunk>,
    bytes: u64,
    /// Positions of the stream that are kept.
    #[cfg_attr(feature = "serde", serde(skip))]
    held: u64,
}

/// A [`Store`] as it is written down, now and by older programs.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct Written {
    chunks: VecDeque<Chunk>,
    bytes: u64,
}

#[cfg(feature = "serde")]
impl From<Written> for Store {
    fn from(Written { chunks, bytes }: Written) -> Self {
        let held = chunks.iter().map(|chunk| chunk.end - chunk.start).sum();
        Store { chunks, bytes, held }
    }
}

impl Store {
    /// Bytes kept; a small packet counts for what it occupies.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The chunk that holds the byte at `position`.
    pub(crate) fn at(&self, position: u64) -> Option<&Chunk> {
        self.from(position).filter(|c| c.start <= position)
    }

    /// The chunk that holds the byte at `position`, or else the next one.
    pub(crate) fn from(&self, position: u64) -> Option<&Chunk> {
        // New data starts at the last chunk, and acknowledged data ends at the first: look there first.
        if let Some(last) = self.chunks.back()
            && last.start <= position
        {
            return (position < last.end).then_some(last);
        }
        let index = self.chunks.partition_point(|c| c.end <= position);
        self.chunks.get(index)
    }

    /// Appends to `gaps` what of `range` is not kept.
    pub(crate) fn gaps(&self, range: Range<u64>, gaps: &mut Vec<Range<u64>>) {
        let mut position = range.start;
        while position < range.end {
            let chunk = self.from(position);
            let next = chunk.map_or(range.end, |chunk| chunk.start.min(range.end));
            if position < next {
                gaps.push(position..next);
            }
            position = chunk.map_or(range.end, |chunk| chunk.end);
        }
    }

    /// Keeps what is new in `packet`, which carries the stream from `start` to `end`; false if nothing is. Retransmissions may be cut
    /// differently from the originals, so only the gaps are filled.
    pub(crate) fn insert(&mut self, start: u64, end: u64, packet: Packet, arrival: Instant) -> bool {
        if self.chunks.back().is_none_or(|last| last.end <= start) {
            self.bytes += cost(start, end);
            self.held += end - start;
            self.chunks.push_back(Chunk { start, end, arrival, packet });
            return true;
        }
        let whole = Chunk { start, end, arrival, packet };
        let mut is_new = false;
        let mut position = start;
        while position < end {
            let index = self.chunks.partition_point(|c| c.end <= position);
            let next = self.chunks.get(index).map_or(end, |c| c.start.min(end));
            if position < next {
                self.bytes += cost(position, next);
                self.held += next - position;
                let packet = whole.packet(position, next);
                self.chunks.insert(index, Chunk { start: position, end: next, arrival, packet });
                is_new = true;
                position = next;
            } else {
                position = self.chunks.get(index).map_or(end, |c| c.end);
            }
        }
        is_new
    }

    /// Drops what lies wholly below `position`.
    pub(crate) fn release_below(&mut self, position: u64) {
        while let Some(front) = self.chunks.front()
            && front.end <= position
        {
            // An older program, whose state this may be, counted less.
            self.bytes = self.bytes.saturating_sub(cost(front.start, front.end));
            self.held = self.held.saturating_sub(front.end - front.start);
            self.chunks.pop_front();
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
        (self.bytes, self.held) = (0, 0);
    }

    /// Something between `una` and `received`, below which nothing is kept but what reaches above it, is not kept.
    pub(crate) fn has_gap(&self, una: u64, received: u64) -> bool {
        let below = self.chunks.front().map_or(0, |front| una.saturating_sub(front.start));
        self.held.saturating_sub(below) < received.saturating_sub(una)
    }

    /// Drops wire packets of more than `max_segment` payload bytes, so that the server's smaller ones can take their
    /// place.
    pub(crate) fn drop_larger_than(&mut self, max_segment: u64) {
        self.chunks.retain(|c| c.segment_len() <= max_segment);
        self.bytes = self.chunks.iter().map(|c| cost(c.start, c.end)).sum();
        self.held = self.chunks.iter().map(|c| c.end - c.start).sum();
    }
}

/// What a packet with this range counts for.
fn cost(start: u64, end: u64) -> u64 {
    (end - start).max(PIECE_MIN)
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use paceline_wire::Instant;

    use super::{Packet, Store};

    /// The state of a program that did not count what is held.
    #[derive(serde::Serialize)]
    struct Older {
        chunks: alloc::collections::VecDeque<super::Chunk>,
        bytes: u64,
    }

    #[test]
    fn a_store_of_an_older_program_has_no_gaps_but_its_own() {
        let mut store = Store::default();
        for start in [0, 1_000, 3_000] {
            assert!(store.insert(start, start + 1_000, Packet::default(), Instant::ZERO));
        }
        let older = Older { chunks: store.chunks.clone(), bytes: store.bytes };
        let written = rmp_serde::to_vec_named(&older).unwrap();
        let mut store: Store = rmp_serde::from_slice(&written).unwrap();
        let mut gaps = alloc::vec::Vec::new();
        store.gaps(0..4_000, &mut gaps);
        assert_eq!(gaps.first(), Some(&(2_000..3_000)));
        assert_eq!((store.has_gap(0, 2_000), store.has_gap(500, 4_000)), (false, true));
        store.release_below(3_000);
        assert_eq!((store.has_gap(3_000, 4_000), store.has_gap(3_500, 4_000)), (false, false));
    }
}
