//! Out-of-order data and unread in-order data, as bytes or only as lengths.

use alloc::collections::VecDeque;

use paceline_wire::{Buffer, Payload};

use crate::ranges::RangeSet;

/// The ranges received, and their bytes if they are given.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Reassembly {
    ranges: RangeSet,
    chunks: VecDeque<(u64, Buffer)>,
    ready: VecDeque<Payload>,
    waiting: u64,
}

/// Result of an insertion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inserted {
    /// The range that contains the data now. `None` if it was discarded.
    pub(super) block: Option<(u64, u64)>,
    /// Set if all of it had arrived before.
    pub(super) duplicate: Option<(u64, u64)>,
}

/// Our choice: the most ranges, and the most packets behind a hole. Each new packet must find its place among them. No
/// honest peer makes more (8 MB in segments of 536 bytes are fewer). Data that would add another is discarded.
const RANGES_MAX: usize = 1 << 14;
const CHUNKS_MAX: usize = 1 << 14;

impl Reassembly {
    /// True if no data waits for a hole to be filled.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The position after the highest out-of-order byte, or zero.
    pub(super) fn highest(&self) -> u64 {
        self.ranges.last().map_or(0, |(_, end)| end)
    }

    /// True if it has `ready` bytes in order, and out of order only bytes of its ranges, all between `nxt` and `edge`.
    /// For a state read from another process.
    pub(super) fn is_sound(&self, ready: u64, nxt: u64, edge: u64) -> bool {
        let mut from = nxt;
        let chunks_lie_in_ranges = self.chunks.iter().all(|(start, bytes)| {
            let after = *start >= from;
            from = start.saturating_add(bytes.len() as u64);
            after && self.ranges.covering(*start).is_some_and(|(_, end)| from <= end)
        });
        // Disjoint ranges, and payloads in memory, cannot overflow these sums.
        let ready_now: u64 = self.ready.iter().map(|payload| payload.len() as u64).sum();
        self.ranges.is_sound(nxt, edge)
            && chunks_lie_in_ranges
            && self.ranges.iter().map(|(start, end)| end - start).sum::<u64>() == self.waiting
            && ready_now == ready
    }

    /// Bytes that wait for a hole to be filled.
    pub(super) fn out_of_order_bytes(&self) -> u64 {
        self.waiting
    }

    /// Number of memory pieces in use.
    pub(super) fn pieces(&self) -> usize {
        self.chunks.len() + self.ready.len()
    }

    /// Stores out-of-order data. Data `at_head` is always stored, because all other data waits for it.
    pub(super) fn insert(&mut self, start: u64, end: u64, payload: &Payload, at_head: bool) -> Inserted {
        let full = self.chunks.len() >= CHUNKS_MAX
            || self.ranges.len() >= RANGES_MAX && self.ranges.covering(start).is_none();
        if full && !at_head {
            return Inserted::default();
        }
        let (chunks, waiting) = (&mut self.chunks, &mut self.waiting);
        let mut fresh = 0;
        let merged = self.ranges.insert(start, end, |from, to| {
            fresh += to - from;
            if let Payload::Bytes(bytes) = payload {
                let part = bytes.slice((from - start) as usize..(to - start) as usize);
                let at = match chunks.back() {
                    Some(&(last, _)) if last > from => chunks.partition_point(|&(at, _)| at < from),
                    _ => chunks.len(),
                };
                chunks.insert(at, (from, part));
            }
        });
        *waiting += fresh;
        Inserted { block: Some(merged), duplicate: (fresh == 0).then_some((start, end)) }
    }

    /// Appends in-order data for the application.
    pub(super) fn deliver(&mut self, payload: &Payload) {
        if payload.is_empty() {
            return;
        }
        if let Some(last) = self.ready.back_mut()
            && let Some(joined) = last.join(payload)
        {
            *last = joined;
            return;
        }
        self.ready.push_back(payload.clone());
    }

    /// Appends all data that is in order from `nxt` on. Returns the position after it.
    pub(super) fn deliver_from(&mut self, nxt: u64) -> u64 {
        let Some((start, end)) = self.ranges.first().filter(|&(start, _)| start <= nxt) else { return nxt };
        self.ranges.remove_below(end);
        self.waiting -= end - start;
        let mut at = start;
        while at < end {
            let next = self.chunks.front().map_or(end, |&(start, _)| start.min(end));
            if next > at {
                self.deliver(&Payload::Length((next - at) as u32));
                at = next;
            } else if let Some((start, bytes)) = self.chunks.pop_front() {
                at = start + bytes.len() as u64;
                self.deliver(&Payload::Bytes(bytes));
            }
        }
        end
    }

    /// Takes up to `max` in-order bytes.
    pub(super) fn read(&mut self, max: usize) -> Option<Payload> {
        let front = self.ready.front_mut()?;
        if max == 0 {
            return None;
        }
        if front.len() <= max {
            return self.ready.pop_front();
        }
        let part = front.slice(0..max);
        *front = front.slice(max..front.len());
        Some(part)
    }

    /// The in-order data to be read next.
    pub(super) fn front(&self) -> Option<&Payload> {
        self.ready.front()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut Payload> {
        self.ready.front_mut()
    }

    /// Discards all in-order data.
    pub(super) fn discard_ready(&mut self) {
        while self.ready.pop_front().is_some() {}
    }
}
