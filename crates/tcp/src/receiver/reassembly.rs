//! Data out of order, and data in order that nobody has read: bytes, or only how many.

use alloc::collections::VecDeque;

use paceline_wire::{Buffer, Payload};

use crate::ranges::RangeSet;

/// Ranges that have come; the bytes are kept where there are any.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Reassembly {
    ranges: RangeSet,
    chunks: VecDeque<(u64, Buffer)>,
    ready: VecDeque<Payload>,
    waiting: u64,
}

/// What became of data that was kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inserted {
    /// The range that contains it now; `None` if it was thrown away.
    pub(super) block: Option<(u64, u64)>,
    /// Set when all of it had come before.
    pub(super) duplicate: Option<(u64, u64)>,
}

/// Our choice: holes that are kept apart, and packets behind a hole, whose place has to be found among the others. More than any
/// honest peer makes (8 MB in segments of 536 bytes are fewer); what would add another is thrown away.
const RANGES_MAX: usize = 1 << 14;
const CHUNKS_MAX: usize = 1 << 14;

impl Reassembly {
    /// True when nothing waits for a hole.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The position after the highest byte out of order; zero without any.
    pub(super) fn highest(&self) -> u64 {
        self.ranges.last().map_or(0, |(_, end)| end)
    }

    /// Whether it has `ready` bytes in order, and only bytes of its ranges out of order, all between `nxt` and `edge`: of one that was read.
    pub(super) fn is_sound(&self, ready: u64, nxt: u64, edge: u64) -> bool {
        let mut from = nxt;
        let chunks_lie_in_ranges = self.chunks.iter().all(|(start, bytes)| {
            let after = *start >= from;
            from = start.saturating_add(bytes.len() as u64);
            after && self.ranges.covering(*start).is_some_and(|(_, end)| from <= end)
        });
        // Ranges that lie apart, and payloads in memory, sum up to no more than a number holds.
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

    /// Pieces of memory that are in use.
    pub(super) fn pieces(&self) -> usize {
        self.chunks.len() + self.ready.len()
    }

    /// Keeps data out of order. What begins `at_head` is always taken, because it is what all the rest waits for.
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

    /// Hands data in order to the application.
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

    /// Hands over everything from `nxt` that is in order; returns the position after it.
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

    /// Up to `max` bytes in order.
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

    /// What is in order and read next.
    pub(super) fn front(&self) -> Option<&Payload> {
        self.ready.front()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut Payload> {
        self.ready.front_mut()
    }

    /// Throws away what is in order.
    pub(super) fn discard_ready(&mut self) {
        while self.ready.pop_front().is_some() {}
    }
}
