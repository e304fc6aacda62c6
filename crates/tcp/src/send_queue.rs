//! Written and unacknowledged data, as bytes or only as lengths.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use paceline_wire::{Buffer, BufferPool, Payload};

use crate::send_buffer::SendBuffer;

/// The chunks written, by stream position.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct SendQueue {
    chunks: VecDeque<(u64, Payload)>,
    una: u64,
    end: u64,
    buffer: SendBuffer,
    /// The application found no room (Linux SOCK_NOSPACE) and sleeps until a third is free.
    blocked: bool,
    /// The application will write no more.
    closed: bool,
    /// Reused memory for segments that cross from one write to the next.
    #[serde(skip)]
    crossing: Option<Box<BufferPool>>,
}

/// Size of that memory. Our choice: more than leaves at once.
const CROSSING_MAX: usize = 4 << 20;

impl SendQueue {
    /// An empty queue at `position`.
    pub(crate) fn new(position: u64, buffer: SendBuffer) -> Self {
        SendQueue {
            chunks: VecDeque::new(),
            una: position,
            end: position,
            buffer,
            blocked: false,
            closed: false,
            crossing: None,
        }
    }

    /// Takes as much of the payload as there is room for, and returns the number of bytes.
    pub(crate) fn write(&mut self, payload: &Payload) -> usize {
        if self.closed {
            return 0;
        }
        let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
        let len = payload.len().min(room);
        self.blocked |= len < payload.len();
        if len == 0 {
            return 0;
        }
        let part = if len == payload.len() { payload.clone() } else { payload.slice(0..len) };
        let start = self.end;
        self.end += len as u64;
        // Lengths are joined, so that in the simulator one chunk holds all. Bytes that are adjacent in memory are
        // joined, too.
        if let Some((_, last)) = self.chunks.back_mut()
            && let Some(joined) = last.join(&part)
        {
            *last = joined;
            return len;
        }
        self.chunks.push_back((start, part));
        len
    }

    /// True if it holds all bytes from `una` on. For a state read from another process.
    pub(crate) fn is_sound(&self) -> bool {
        let mut at = self.chunks.front().map_or(self.end, |&(start, _)| start);
        let begins = at <= self.una && self.una <= self.end;
        let follow = self.chunks.iter().all(|(start, payload)| {
            let follows = *start == at && !payload.is_empty();
            at = start.saturating_add(payload.len() as u64);
            follows
        });
        begins && follow && at == self.end
    }

    /// Replaces the buffer rule for current and future data.
    pub(crate) fn set_buffer(&mut self, buffer: SendBuffer) {
        self.buffer = buffer;
    }

    /// Free bytes of the buffer.
    pub(crate) fn room(&self) -> u64 {
        self.buffer.size().saturating_sub(self.end - self.una)
    }

    /// True if the application should write. After a refused write, a third must be free.
    pub(crate) fn is_writable(&self) -> bool {
        !self.closed && self.room() > 0 && (!self.blocked || self.buffer.wakes(self.end - self.una))
    }

    /// The application has woken up.
    pub(crate) fn wake(&mut self) {
        self.blocked = false;
    }

    /// True if the application waits for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// No more will be written.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.blocked = false;
    }

    /// True if it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Number of memory pieces that hold data.
    pub(crate) fn pieces(&self) -> usize {
        self.chunks.len()
    }

    /// The last written data, if it is still stored.
    pub(crate) fn last(&self) -> Option<&Payload> {
        self.chunks.back().map(|(_, payload)| payload)
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Payload> {
        self.chunks.back_mut().map(|(_, payload)| payload)
    }

    /// The position after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The current size of the buffer.
    pub(crate) fn size(&self) -> u64 {
        self.buffer.size()
    }

    /// The congestion window may have grown.
    pub(crate) fn on_window(&mut self, window_bytes: u64, windows: Option<u32>) {
        self.buffer.on_window(window_bytes, windows);
    }

    /// Frees acknowledged data.
    pub(crate) fn acknowledge(&mut self, una: u64) {
        self.una = una.clamp(self.una, self.end);
        while let Some((start, payload)) = self.chunks.front_mut() {
            let len = payload.len() as u64;
            if *start + len > self.una {
                // A chunk of lengths is cut, so that it never exceeds the largest payload length.
                if let (Payload::Length(left), true) = (&mut *payload, *start < self.una) {
                    *left -= (self.una - *start) as u32;
                    *start = self.una;
                }
                return;
            }
            self.chunks.pop_front();
        }
    }

    /// Start and end of the memory piece that holds the byte at `position`.
    pub(crate) fn piece(&self, position: u64) -> (u64, u64) {
        let piece = self.chunks.get(self.chunk_at(position));
        piece.map_or((position, position), |(at, payload)| (*at, at + payload.len() as u64))
    }

    /// The bytes from `start` to `end`. Copies only where the range crosses from one write to the next.
    pub(crate) fn payload(&mut self, start: u64, end: u64) -> Payload {
        let end = end.min(self.end);
        if start >= end {
            return Payload::default();
        }
        let first = self.chunk_at(start);
        let Some((at, payload)) = self.chunks.get(first) else {
            return Payload::Length((end - start) as u32);
        };
        let offset = start.saturating_sub(*at) as usize;
        let len = (end - start) as usize;
        if offset + len <= payload.len() {
            return payload.slice(offset..offset + len);
        }
        self.copy(first, start, end)
    }

    fn chunk_at(&self, position: u64) -> usize {
        match self.chunks.len() {
            0 | 1 => 0,
            _ => self.chunks.partition_point(|(at, payload)| at + payload.len() as u64 <= position),
        }
    }

    fn copy(&mut self, first: usize, start: u64, end: u64) -> Payload {
        let len = (end - start) as usize;
        // Lengths between bytes are read as zeros, as on the wire.
        let crossed = self.chunks.range(first..).take_while(|(at, _)| *at < end);
        let parts = crossed.map(|(at, payload)| {
            let from = start.saturating_sub(*at) as usize;
            let to = ((end - at) as usize).min(payload.len());
            (from..to, payload)
        });
        let bytes = parts.clone().all(|(_, payload)| payload.bytes().is_some());
        if bytes {
            let pool = self.crossing.get_or_insert_with(|| Box::new(BufferPool::new(CROSSING_MAX)));
            let slices = parts.clone().filter_map(|(range, payload)| payload.bytes()?.get(range));
            if let Some(buffer) = pool.gather(len, slices) {
                return Payload::Bytes(buffer);
            }
        }
        let mut copy = Vec::with_capacity(len);
        for (range, payload) in parts {
            match payload.bytes().and_then(|bytes| bytes.get(range.clone())) {
                Some(part) => copy.extend_from_slice(part),
                None => copy.resize(copy.len() + range.len(), 0),
            }
        }
        Payload::Bytes(Buffer::from(copy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send_buffer::SendBufferName;
    use alloc::vec;

    fn queue(size: u64) -> SendQueue {
        SendQueue::new(100, SendBufferName::Linux.build(size, size))
    }

    #[test]
    fn ranges_cross_writes() {
        let mut queue = queue(1_000);
        queue.write(&vec![1, 2, 3].into());
        queue.write(&vec![4, 5].into());
        queue.write(&vec![6].into());
        assert_eq!(queue.payload(101, 103).bytes(), Some(&[2, 3][..]));
        assert_eq!(queue.payload(102, 106).bytes(), Some(&[3, 4, 5, 6][..]));
        queue.acknowledge(104);
        assert_eq!(queue.payload(104, 106).bytes(), Some(&[5, 6][..]));
    }

    #[test]
    fn an_application_turned_away_is_woken_when_a_third_is_free() {
        let mut queue = queue(300);
        assert_eq!(queue.write(&Payload::Length(1_000)), 300);
        assert!(queue.is_blocked() && !queue.is_writable());
        queue.acknowledge(199);
        assert!(!queue.is_writable());
        queue.acknowledge(200);
        assert!(queue.is_writable());
        queue.wake();
        assert_eq!(queue.write(&Payload::Length(100)), 100);
        assert_eq!(queue.payload(250, 500).len(), 250);
    }
}
