//! The server's data that the gateway keeps: packets by stream position, until the client has acknowledged them.

use core::ops::Range;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use paceline_wire::{Instant, Packet};

/// A kept packet and the range of the stream that it carries; a FIN counts as one position, at the end.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
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

    /// Returns the end of a piece from `start` with at most `limit` bytes: whole segments, at least one. A segment with
    /// more than `fits` bytes of payload is cut to `fits`.
    pub(crate) fn piece_end(&self, start: u64, limit: u64, fits: u64) -> u64 {
        // The FIN is no payload, and travels with the last byte.
        let payload = self.packet.payload().len() as u64;
        if self.packet.gso_size().map_or(payload, u64::from) > fits {
            let end = start.saturating_add(fits);
            return if end >= self.start + payload { self.end } else { end };
        }
        if self.is_single() {
            return self.end;
        }
        let segment = self.segment_len();
        let segments = (limit / segment).max(1);
        let end = start.saturating_add(segments * segment);
        if end >= self.end - 1 { self.end } else { end }
    }

    /// Replaces the bytes in `start..end` by those of `later`, and acknowledgement, window and timestamps, too. False
    /// if the bytes are equal. Bytes that do not exist, as in a simulator, are always equal.
    fn take_over(&mut self, later: &Chunk, start: u64, end: u64) -> bool {
        let (Some(own), Some(new)) = (self.bytes_in(start, end), later.bytes_in(start, end)) else {
            return false;
        };
        let payloads = (self.packet.payload().bytes(), later.packet.payload().bytes());
        let (Some(before), Some(after)) = payloads else { return false };
        // If two packets end the stream at different places, one has a byte where the other has its FIN.
        let len = own.len().min(new.len());
        let (own, new) = (own.start..own.start + len, new.start..new.start + len);
        if before[own.clone()] == after[new.clone()] {
            return false;
        }
        let mut bytes = before.to_vec();
        bytes[own].copy_from_slice(&after[new]);
        self.packet.replace_payload(bytes.into());
        if let (Some(new), Some(mut tcp)) = (later.packet.tcp(), self.packet.tcp_mut()) {
            tcp.set_ack(new.ack());
            tcp.set_window(new.window());
            if let Some((value, echo)) = new.timestamps() {
                tcp.set_timestamps(value, echo);
            }
        }
        true
    }

    /// Returns where the stream positions `start..end` are in the payload.
    fn bytes_in(&self, start: u64, end: u64) -> Option<Range<usize>> {
        let len = self.packet.payload().len() as u64;
        let from = start.checked_sub(self.start)?.min(len);
        let to = end.checked_sub(self.start)?.min(len);
        (from < to).then_some(from as usize..to as usize)
    }
}

/// What became of a packet that was to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// True if some of it was not here before.
    pub(crate) is_new: bool,
    /// True if bytes differ from those that were here in their place.
    pub(crate) differs: bool,
}

/// Kept packets without overlap; there may be gaps where the server's packets did not arrive.
///
/// Data in order lies side by side in a queue, and costs O(1). Data beyond a gap lies apart until the gap is filled,
/// and costs O(log n). In a sorted queue alone, each packet of a long gap would move half of all others.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(from = "SerializedBuffer", into = "SerializedBuffer")]
pub(crate) struct RetransmitBuffer {
    run: VecDeque<Chunk>,
    /// By first position.
    apart: BTreeMap<u64, Chunk>,
    bytes: u64,
    /// Number of stream positions that are kept.
    held: u64,
    /// How often a chunk was looked for.
    #[cfg(test)]
    pub(crate) looks: core::cell::Cell<u64>,
}

/// A [`RetransmitBuffer`] as it is serialised. What is read from other processes may be wrong.
#[derive(serde::Serialize, serde::Deserialize)]
struct SerializedBuffer {
    chunks: VecDeque<Chunk>,
    /// Older programs read it.
    bytes: u64,
}

impl From<RetransmitBuffer> for SerializedBuffer {
    fn from(buffer: RetransmitBuffer) -> Self {
        let mut chunks: VecDeque<Chunk> = buffer.run;
        chunks.extend(buffer.apart.into_values());
        chunks.make_contiguous().sort_unstable_by_key(|chunk| chunk.start);
        SerializedBuffer { chunks, bytes: buffer.bytes }
    }
}

impl From<SerializedBuffer> for RetransmitBuffer {
    fn from(SerializedBuffer { chunks, .. }: SerializedBuffer) -> Self {
        let mut buffer = RetransmitBuffer::default();
        for chunk in chunks {
            let carries = chunk.packet.tcp().map(|tcp| u64::from(tcp.seq_len()));
            if chunk.end.checked_sub(chunk.start).is_some_and(|len| len > 0 && carries == Some(len)) {
                buffer.insert(chunk.start, chunk.end, chunk.packet, chunk.arrival);
            }
        }
        buffer
    }
}

/// Where a chunk is.
#[derive(Clone, Copy)]
enum Place {
    Run(usize),
    Apart(u64),
}

impl RetransmitBuffer {
    /// Bytes kept; a small packet counts for what it occupies.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty() && self.apart.is_empty()
    }

    /// The chunk that holds the byte at `position`.
    pub(crate) fn at(&self, position: u64) -> Option<&Chunk> {
        self.from(position).filter(|c| c.start <= position)
    }

    /// The chunk that holds the byte at `position`, or else the next one.
    pub(crate) fn from(&self, position: u64) -> Option<&Chunk> {
        match self.find(position)? {
            Place::Run(index) => self.run.get(index),
            Place::Apart(start) => self.apart.get(&start),
        }
    }

    fn find(&self, position: u64) -> Option<Place> {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        // New data starts at the last chunk: look there first.
        let index = match self.run.back() {
            Some(last) if last.start <= position => (position < last.end).then_some(self.run.len() - 1),
            Some(last) => Some(self.index_of(position, last.start)),
            None => None,
        };
        let in_run = index.and_then(|index| Some((self.run.get(index)?.start, Place::Run(index))));
        if self.apart.is_empty() {
            return in_run.map(|(_, place)| place);
        }
        let holds = self.apart.range(..=position).next_back().filter(|(_, c)| position < c.end);
        let next = holds.or_else(|| self.apart.range(position..).next());
        let apart = next.map(|(&start, _)| (start, Place::Apart(start)));
        in_run.into_iter().chain(apart).min_by_key(|(start, _)| *start).map(|(_, place)| place)
    }

    /// Returns the index of the run's chunk that holds `position`, or else of the next. `position` lies before the last
    /// chunk. Most segments are of one length, so linear interpolation is tried before binary search: each look is a
    /// line of memory.
    fn index_of(&self, position: u64, last_start: u64) -> usize {
        let first = self.run.front().map_or(last_start, |first| first.start);
        let chunks = self.run.len() as u64 - 1;
        let guess = position.saturating_sub(first).saturating_mul(chunks) / (last_start - first).max(1);
        let holds = |c: &Chunk| c.start <= position && position < c.end;
        if self.run.get(guess as usize).is_some_and(holds) {
            guess as usize
        } else {
            self.run.partition_point(|c| c.end <= position)
        }
    }

    /// Appends the parts of `range` that are not kept to `gaps`.
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

    /// Keeps what is new in `packet`, which carries the stream from `start` to `end`. Retransmissions may be cut
    /// differently from the originals, so only the gaps are filled. Where bytes differ from kept ones, the later copy
    /// is right. No server has two versions of its stream, and somebody else's packet may have come first.
    pub(crate) fn insert(&mut self, start: u64, end: u64, packet: Packet, arrival: Instant) -> Inserted {
        let whole = Chunk { start, end, arrival, packet };
        if self.apart.is_empty() && self.run.back().is_none_or(|last| last.end == start) {
            self.place(whole);
            return Inserted { is_new: true, differs: false };
        }
        let mut inserted = Inserted::default();
        let mut position = start;
        while position < end {
            let place = self.find(position);
            let chunk = match place {
                Some(Place::Run(index)) => self.run.get_mut(index),
                Some(Place::Apart(start)) => self.apart.get_mut(&start),
                None => None,
            };
            let next = chunk.as_ref().map_or(end, |chunk| chunk.start.min(end));
            if position < next {
                let packet = whole.packet(position, next);
                self.place(Chunk { start: position, end: next, arrival, packet });
                inserted.is_new = true;
                position = next;
            } else if let Some(chunk) = chunk {
                let to = chunk.end.min(end);
                inserted.differs |= chunk.take_over(&whole, position, to);
                position = to;
            }
        }
        inserted
    }

    /// Adds a chunk that overlaps no other.
    fn place(&mut self, chunk: Chunk) {
        self.bytes += cost(chunk.start, chunk.end);
        self.held += chunk.end - chunk.start;
        if self.run.back().is_none_or(|last| last.end == chunk.start) {
            let mut end = chunk.end;
            self.run.push_back(chunk);
            while let Some(next) = self.apart.remove(&end) {
                end = next.end;
                self.run.push_back(next);
            }
        } else if self.run.front().is_some_and(|front| front.start == chunk.end) {
            let mut start = chunk.start;
            self.run.push_front(chunk);
            while let Some(at) =
                self.apart.range(..start).next_back().filter(|(_, c)| c.end == start).map(|(&at, _)| at)
                && let Some(before) = self.apart.remove(&at)
            {
                start = before.start;
                self.run.push_front(before);
            }
        } else {
            self.apart.insert(chunk.start, chunk);
        }
    }

    /// Drops what lies wholly below `position`.
    pub(crate) fn release_below(&mut self, position: u64) {
        while self.run.front().is_some_and(|front| front.end <= position)
            && let Some(front) = self.run.pop_front()
        {
            self.let_go(&front);
        }
        while let Some(first) = self.apart.first_entry().filter(|first| first.get().end <= position) {
            let chunk = first.remove();
            self.let_go(&chunk);
        }
    }

    fn let_go(&mut self, chunk: &Chunk) {
        self.bytes = self.bytes.saturating_sub(cost(chunk.start, chunk.end));
        self.held = self.held.saturating_sub(chunk.end - chunk.start);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = RetransmitBuffer::default();
    }

    /// True if something between `una` and `received` is not kept. No chunk may end at or below `una`.
    pub(crate) fn has_gap(&self, una: u64, received: u64) -> bool {
        self.gap_bytes(una, received) > 0
    }

    /// Returns the bytes in that range that are not kept.
    pub(crate) fn gap_bytes(&self, una: u64, received: u64) -> u64 {
        let below = self.at(una).map_or(0, |front| una - front.start);
        received.saturating_sub(una).saturating_sub(self.held.saturating_sub(below))
    }
}

/// Returns the memory that a packet with this range counts for: its payload, and what is kept beside it.
pub(crate) fn cost(start: u64, end: u64) -> u64 {
    (end - start).max(PIECE_BYTES) + size_of::<Chunk>() as u64
}

/// The memory of a short payload (`paceline_wire::BufferPool`).
const PIECE_BYTES: u64 = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet that carries as many bytes of `value` as `start..end` has.
    fn packet(start: u64, end: u64, value: u8) -> Packet {
        let address = core::net::SocketAddr::from(([10, 0, 0, 1], 80));
        let key = paceline_wire::FlowKey { src: address, dst: address };
        let repr = paceline_wire::TcpRepr { seq: start.into(), ..Default::default() };
        Packet::build_tcp(key, &repr, alloc::vec![value; (end - start) as usize].into())
    }

    fn insert(buffer: &mut RetransmitBuffer, start: u64, end: u64, value: u8) -> Inserted {
        buffer.insert(start, end, packet(start, end, value), Instant::ZERO)
    }

    fn stream(buffer: &RetransmitBuffer, end: u64) -> Vec<u8> {
        let byte = |position| {
            let chunk = buffer.at(position)?;
            let one = chunk.packet(chunk.start, chunk.end);
            one.payload().bytes().map(|bytes| bytes[(position - chunk.start) as usize])
        };
        (0..end).map(|position| byte(position).unwrap_or(0)).collect()
    }

    #[test]
    fn where_copies_differ_the_later_one_counts() {
        let mut buffer = RetransmitBuffer::default();
        insert(&mut buffer, 0, 10, 1);
        insert(&mut buffer, 20, 30, 1);
        assert_eq!(insert(&mut buffer, 0, 10, 1), Inserted::default());
        assert_eq!(insert(&mut buffer, 5, 25, 2), Inserted { is_new: true, differs: true });
        let expected: Vec<u8> = (0..30).map(|n| if (5..25).contains(&n) { 2 } else { 1 }).collect();
        assert_eq!(stream(&buffer, 30), expected);
        assert!(buffer.at(22).unwrap().whole().verify_checksum());
    }

    #[test]
    fn gaps_are_filled_in_any_order() {
        let mut buffer = RetransmitBuffer::default();
        for start in [50, 10, 30, 20, 40, 0, 60] {
            assert!(insert(&mut buffer, start, start + 10, start as u8 + 1).is_new);
        }
        let expected: Vec<u8> = (0..70).map(|n| n / 10 * 10 + 1).collect();
        assert_eq!(stream(&buffer, 70), expected);
        assert!(!buffer.has_gap(0, 70) && buffer.has_gap(0, 71));
        buffer.release_below(35);
        assert_eq!((buffer.from(0).unwrap().start, buffer.has_gap(35, 70)), (30, false));
        buffer.release_below(70);
        assert!(buffer.is_empty() && buffer.bytes() == 0);
    }

    #[test]
    fn a_buffer_that_is_read_has_no_gaps_but_its_own_and_nothing_twice() {
        let mut buffer = RetransmitBuffer::default();
        for start in [0, 3_000, 1_000] {
            insert(&mut buffer, start, start + 1_000, 1);
        }
        let mut written = SerializedBuffer::from(buffer);
        let again = written.chunks[1].clone();
        written.chunks.push_back(Chunk { end: 1_500, ..again.clone() });
        written.chunks.push_back(again);
        let written = rmp_serde::to_vec_named(&written).unwrap();
        let mut buffer: RetransmitBuffer = rmp_serde::from_slice(&written).unwrap();
        let mut gaps = Vec::new();
        buffer.gaps(0..4_000, &mut gaps);
        assert_eq!(gaps.first(), Some(&(2_000..3_000)));
        assert_eq!((buffer.has_gap(0, 2_000), buffer.has_gap(500, 4_000)), (false, true));
        buffer.release_below(3_000);
        assert_eq!((buffer.has_gap(3_000, 4_000), buffer.has_gap(3_500, 4_000)), (false, false));
    }
}
