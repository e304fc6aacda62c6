//! Shared payload bytes, and a pool that recycles their memory.
//!
//! A chunk of memory returns to its pool when the last [`Buffer`] over it is dropped, on any thread. So packets cost no
//! allocation once the pool has grown to what the traffic needs. Data received into a [`Block`] becomes a buffer when
//! block and pool exchange memory, so long payload is not copied.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut, Range};
use core::sync::atomic::{AtomicUsize, Ordering};

use spin::Mutex;

/// Keeps bytes in recycled memory, of which it never holds more than a fixed amount.
#[derive(Debug)]
pub struct BufferPool {
    shared: Arc<Shared>,
    max_bytes: usize,
}

impl BufferPool {
    /// A pool whose chunks never exceed `max_bytes`, in use and spare together.
    pub fn new(max_bytes: usize) -> Self {
        BufferPool { shared: Arc::new(Shared::default()), max_bytes }
    }

    /// A buffer with a copy of `bytes`; `None` when the pool is exhausted.
    pub fn copy_from(&mut self, bytes: &[u8]) -> Option<Buffer> {
        if bytes.is_empty() {
            return Some(Buffer::default());
        }
        let end = u32::try_from(bytes.len()).ok()?;
        let mut chunk = self.chunk(bytes.len())?;
        // Always unique: the chunk is new, or its last buffer was dropped.
        Arc::get_mut(&mut chunk)?.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Buffer { chunk: Some(chunk), start: 0, end })
    }

    /// A buffer of `len` bytes with copies of `parts`, one behind the other. Missing bytes are zero, excess bytes are
    /// left out. `None` when the pool is exhausted.
    pub fn gather<'a>(&mut self, len: usize, parts: impl Iterator<Item = &'a [u8]>) -> Option<Buffer> {
        if len == 0 {
            return Some(Buffer::default());
        }
        let end = u32::try_from(len).ok()?;
        let mut chunk = self.chunk(len)?;
        let mut room = Arc::get_mut(&mut chunk)?.bytes.get_mut(..len)?;
        for part in parts {
            let (to, rest) = room.split_at_mut(part.len().min(room.len()));
            to.copy_from_slice(&part[..to.len()]);
            room = rest;
        }
        room.fill(0);
        Some(Buffer { chunk: Some(chunk), start: 0, end })
    }

    /// A buffer with the bytes of `range` of `block`. A range that leaves the block is cut. `None` when the pool is
    /// exhausted.
    ///
    /// A range that needs as much memory as a block is not copied. The block's memory becomes the buffer's, and the
    /// block gets other memory of the pool with arbitrary content. A shorter range is copied and the block keeps its
    /// memory, so that few bytes never hold much memory.
    pub fn keep(&mut self, block: &mut Block, range: Range<usize>) -> Option<Buffer> {
        let end = range.end.min(Block::LEN);
        let start = range.start.min(end);
        if end - start <= COPIED_MAX {
            return self.copy_from(&block[start..end]);
        }
        let mut chunk = self.chunk(Block::LEN)?;
        // Unique, as above. Both have the same length, so the pool's memory does not change.
        mem::swap(&mut Arc::get_mut(&mut chunk)?.bytes, &mut block.bytes);
        Some(Buffer { chunk: Some(chunk), start: start as u32, end: end as u32 })
    }

    /// Bytes of memory that buffers occupy, as whole chunks.
    pub fn in_use(&self) -> usize {
        self.allocated().saturating_sub(self.shared.spare_bytes())
    }

    /// Bytes of memory held, in use and spare.
    pub fn allocated(&self) -> usize {
        self.shared.allocated.load(Ordering::Relaxed)
    }

    /// The upper bound of [`allocated`](Self::allocated).
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    fn chunk(&mut self, len: usize) -> Option<Arc<Chunk>> {
        let class = CLASSES.iter().position(|&size| size >= len);
        if let Some(chunk) = class.and_then(|class| self.shared.spare[class].lock().pop()) {
            return Some(chunk);
        }
        let size = class.map_or(len, |class| CLASSES[class]);
        self.make_room(size)?;
        // Only this method adds memory, and it has exclusive access to the pool, so the bound holds.
        self.shared.allocated.fetch_add(size, Ordering::Relaxed);
        Some(Arc::new(Chunk { bytes: vec![0; size].into_boxed_slice(), home: Arc::downgrade(&self.shared) }))
    }

    /// Frees spare chunks of other sizes until `size` more bytes may be allocated.
    fn make_room(&mut self, size: usize) -> Option<()> {
        let fits =
            |pool: &Self| pool.max_bytes.checked_sub(size).is_some_and(|rest| pool.allocated() <= rest);
        for class in (0..CLASSES.len()).rev() {
            while !fits(self) {
                if self.shared.spare[class].lock().pop().is_none() {
                    break;
                }
            }
        }
        fits(self).then_some(())
    }
}

/// Memory outside the pool, to receive a packet into. [`BufferPool::keep`] makes a buffer of its content.
///
/// The bytes are on the heap and stay at their address until then, even if the block is moved.
pub struct Block {
    // `Block::LEN` bytes: a pool distinguishes chunks by their length.
    bytes: Box<[u8]>,
}

impl Block {
    /// Length of a block: the longest frame of a device, in whole cache lines. That is an IP packet of 65,535 bytes, a
    /// link header of 22 (Ethernet with two VLAN tags) and a virtio header of 10.
    pub const LEN: usize = (65_535_usize + 22 + 10).next_multiple_of(64);
}

/// A block of zeros. If the system maps memory lazily, it takes little until it is written to.
impl Default for Block {
    fn default() -> Block {
        Block { bytes: vec![0; Block::LEN].into_boxed_slice() }
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Block")
    }
}

/// Shared, immutable bytes: a range of a chunk. Clones and slices do not copy.
#[derive(Clone, Default)]
pub struct Buffer {
    chunk: Option<Arc<Chunk>>,
    start: u32,
    end: u32,
}

impl Buffer {
    /// The bytes of `range`, over the same memory. A range that leaves the buffer is cut.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Buffer {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        if start == end {
            return Buffer::default();
        }
        // Both are at most `self.len()`, which fits 32 bits.
        Buffer { chunk: self.chunk.clone(), start: self.start + start as u32, end: self.start + end as u32 }
    }

    /// This buffer and `next` as one, if they are adjacent in the same memory.
    #[must_use]
    pub fn join(&self, next: &Buffer) -> Option<Buffer> {
        match (&self.chunk, &next.chunk) {
            (_, None) => Some(self.clone()),
            (None, _) => Some(next.clone()),
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) && self.end == next.start => {
                Some(Buffer { chunk: Some(a.clone()), start: self.start, end: next.end })
            }
            _ => None,
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let range = self.start as usize..self.end as usize;
        self.chunk.as_ref().and_then(|chunk| chunk.bytes.get(range)).unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(mut chunk) = self.chunk.take() else { return };
        // If two threads drop the last two buffers at the same time, each may see the other's. Then the chunk is freed
        // instead.
        if Arc::get_mut(&mut chunk).is_some()
            && let Some(home) = chunk.home.upgrade()
        {
            home.recycle(chunk);
        }
    }
}

/// Takes the bytes without a copy. They belong to no pool.
impl From<Vec<u8>> for Buffer {
    fn from(mut bytes: Vec<u8>) -> Buffer {
        bytes.truncate(u32::MAX as usize);
        let end = bytes.len() as u32;
        Buffer {
            chunk: Some(Arc::new(Chunk { bytes: bytes.into_boxed_slice(), home: Weak::new() })),
            start: 0,
            end,
        }
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

impl serde::Serialize for Buffer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

/// The bytes belong to no pool.
impl<'de> serde::Deserialize<'de> for Buffer {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Buffer::from(serde_bytes::ByteBuf::deserialize(deserializer)?.into_vec()))
    }
}

/// Chunk sizes: an Ethernet payload, then doubled. The last size is that of a block, which holds the largest
/// super-packet with its headers. Longer buffers get a chunk of exactly their length.
const CLASSES: [usize; 6] = [2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, Block::LEN];

/// Longer data gets a chunk as long as a block.
const COPIED_MAX: usize = CLASSES[CLASSES.len() - 2];

/// Most spare chunks kept in each class. Our choice: the burst of a large receive ring, while the queues stay small.
const MAX_SPARE_CHUNKS: usize = 8192;

#[derive(Debug, Default)]
struct Shared {
    /// The chunk returned last is used first, because its memory is still in the processor's cache.
    spare: [Mutex<Vec<Arc<Chunk>>>; CLASSES.len()],
    allocated: AtomicUsize,
}

impl Shared {
    fn recycle(&self, chunk: Arc<Chunk>) {
        if let Some(class) = CLASSES.iter().position(|&size| size == chunk.bytes.len()) {
            let mut spare = self.spare[class].lock();
            if spare.len() < MAX_SPARE_CHUNKS {
                spare.push(chunk);
            }
        }
    }

    fn spare_bytes(&self) -> usize {
        self.spare.iter().zip(CLASSES).map(|(spare, size)| spare.lock().len() * size).sum()
    }
}

struct Chunk {
    bytes: Box<[u8]>,
    home: Weak<Shared>,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.allocated.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} bytes)", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slices_share_and_are_cut_to_the_buffer() {
        let buffer = Buffer::from(vec![1, 2, 3, 4, 5]);
        assert_eq!(*buffer.slice(1..3), [2, 3]);
        assert_eq!(*buffer.slice(1..3).slice(1..9), [3]);
        assert_eq!(*buffer.slice(7..9), []);
        #[expect(clippy::reversed_empty_ranges)]
        let reversed = 3..1;
        assert_eq!(*buffer.slice(reversed), []);
    }

    #[test]
    fn neighbours_join_and_others_do_not() {
        let buffer = Buffer::from(vec![1, 2, 3, 4, 5]);
        let (a, b) = (buffer.slice(0..2), buffer.slice(2..5));
        assert_eq!(a.join(&b), Some(buffer.clone()));
        assert_eq!(b.join(&a), None);
        assert_eq!(a.join(&Buffer::from(vec![3])), None);
        assert_eq!(Buffer::default().join(&b), Some(b.clone()));
        assert_eq!(b.join(&Buffer::default()), Some(b));
    }

    #[test]
    fn memory_is_used_again() {
        let mut pool = BufferPool::new(1 << 20);
        let first = pool.copy_from(&[1; 1448]).unwrap();
        let address = first.as_ptr();
        let part = first.slice(100..200);
        drop(first);
        assert_eq!(pool.in_use(), 2048);
        drop(part);
        assert_eq!((pool.in_use(), pool.allocated()), (0, 2048));
        let second = pool.copy_from(&[2; 10]).unwrap();
        assert_eq!(second.as_ptr(), address);
        assert_eq!(*second, [2; 10]);
    }

    #[test]
    fn parts_are_put_together() {
        let mut pool = BufferPool::new(1 << 20);
        drop(pool.copy_from(&[9; 10]).unwrap());
        let parts = [&[1, 2][..], &[], &[3]];
        assert_eq!(*pool.gather(5, parts.into_iter()).unwrap(), [1, 2, 3, 0, 0]);
        assert_eq!(*pool.gather(2, parts.into_iter()).unwrap(), [1, 2]);
        assert_eq!(pool.gather(0, parts.into_iter()).unwrap().len(), 0);
    }

    #[test]
    fn spare_memory_of_another_size_gives_way() {
        let mut pool = BufferPool::new(Block::LEN);
        drop(pool.copy_from(&[0; 60_000]).unwrap());
        let small: Vec<_> = core::iter::from_fn(|| pool.copy_from(&[0; 1448])).collect();
        assert_eq!(small.len(), 32);
        drop(small);
        assert!(pool.copy_from(&[0; 60_000]).is_some());
    }

    #[test]
    fn a_long_range_of_a_block_is_not_copied() {
        let mut pool = BufferPool::new(Block::LEN);
        let mut block = Block::default();
        block.fill(1);
        let received_at = block.as_ptr();
        let long = pool.keep(&mut block, 100..100 + COPIED_MAX + 1).unwrap();
        assert_eq!(long.as_ptr(), received_at.wrapping_add(100));
        assert_ne!(block.as_ptr(), received_at);
        block.fill(2);
        assert!(long.len() == COPIED_MAX + 1 && long.iter().all(|&byte| byte == 1));
        assert_eq!((pool.in_use(), pool.allocated()), (Block::LEN, Block::LEN));
        // Without free pool memory the block keeps its own.
        let other = block.as_ptr();
        assert!(pool.keep(&mut block, 0..Block::LEN).is_none());
        assert_eq!((block.as_ptr(), block[0]), (other, 2));
        drop(long);
        assert_eq!((pool.in_use(), pool.allocated()), (0, Block::LEN));
        // The two pieces of memory are exchanged again.
        let next = pool.keep(&mut block, 7..Block::LEN + 9).unwrap();
        assert_eq!((next.as_ptr(), next.len()), (other.wrapping_add(7), Block::LEN - 7));
        assert_eq!(block.as_ptr(), received_at);
    }

    #[test]
    fn a_short_range_of_a_block_is_copied() {
        let mut pool = BufferPool::new(1 << 20);
        let mut block = Block::default();
        block.fill(1);
        let received_at = block.as_ptr();
        for (len, capacity) in [(0, 0), (10, 2 << 10), (COPIED_MAX, COPIED_MAX)] {
            let short = pool.keep(&mut block, 100..100 + len).unwrap();
            assert_eq!((short.len(), pool.in_use()), (len, capacity));
            assert_eq!(block.as_ptr(), received_at);
        }
    }

    #[test]
    fn what_is_longer_than_any_class_still_counts() {
        let mut pool = BufferPool::new(100_000);
        let buffer = pool.copy_from(&[7; 90_000]).unwrap();
        assert_eq!(pool.in_use(), 90_000);
        assert!(pool.copy_from(&[7; 90_000]).is_none());
        drop(buffer);
        assert_eq!(pool.allocated(), 0);
    }

    #[test]
    fn empty_buffers_cost_nothing() {
        let mut pool = BufferPool::new(0);
        assert_eq!(pool.copy_from(&[]).unwrap().len(), 0);
        assert!(pool.copy_from(&[1]).is_none());
    }

    #[test]
    fn buffers_outlive_their_pool_and_travel_between_threads() {
        let mut pool = BufferPool::new(1 << 20);
        let buffers: Vec<_> = (0..100u8).map(|n| pool.copy_from(&[n; 3000]).unwrap()).collect();
        let copies = buffers.clone();
        let other = std::thread::spawn(move || copies.iter().map(|b| usize::from(b[2999])).sum::<usize>());
        drop(buffers);
        assert_eq!(other.join().unwrap(), 4950);
        assert_eq!(pool.in_use(), 0);
        let last = pool.copy_from(b"still here").unwrap();
        drop(pool);
        assert_eq!(*last, *b"still here");
    }

    fn capacity(len: usize) -> usize {
        match len {
            0..=COPIED_MAX => len.next_power_of_two().max(2 << 10),
            _ => len.max(Block::LEN),
        }
    }

    proptest! {
        /// For any copies, receptions and returns. The bound holds, and no two live buffers share memory, nor do a
        /// buffer and a block.
        #[test]
        fn memory_is_bounded_and_never_shared(
            max_bytes in 0usize..300_000,
            operations in proptest::collection::vec((any::<u8>(), 1usize..70_000, any::<bool>(), any::<bool>()), 1..60),
        ) {
            let mut pool = BufferPool::new(max_bytes);
            let mut blocks = [Block::default(), Block::default()];
            let mut live = VecDeque::new();
            for (mark, len, receive, give_back) in operations {
                let (buffer, len) = if receive {
                    let block = &mut blocks[usize::from(mark % 2)];
                    let len = len.min(Block::LEN);
                    block.fill(mark);
                    (pool.keep(block, Block::LEN - len..Block::LEN), len)
                } else {
                    (pool.copy_from(&vec![mark; len]), len)
                };
                // Spare memory never causes a refusal.
                let needed = live.iter().map(|&(_, _, len)| capacity(len)).sum::<usize>() + capacity(len);
                prop_assert_eq!(buffer.is_some(), needed <= max_bytes);
                live.extend(buffer.map(|buffer| (buffer, mark, len)));
                if give_back {
                    live.pop_front();
                }
                prop_assert!(pool.allocated() <= max_bytes);
                prop_assert!(pool.in_use() <= pool.allocated());
                for (buffer, mark, len) in &live {
                    prop_assert_eq!(buffer.len(), *len);
                    prop_assert!(buffer.iter().all(|byte| byte == mark));
                }
                prop_assert!(blocks.iter().all(|block| block.len() == Block::LEN));
            }
            live.clear();
            prop_assert_eq!(pool.in_use(), 0);
        }
    }
}
