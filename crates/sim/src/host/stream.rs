//! The bytes that a connection carries. They follow from their position, so any corruption shows.

use paceline_wire::{FlowKey, Payload};

/// What one end writes, and what it should read.
#[derive(Debug)]
pub(super) struct Streams {
    written: u64,
    expected: u64,
    pub(super) wrong_bytes: u64,
}

impl Streams {
    /// `key` is the direction from this end.
    pub(super) fn new(key: &FlowKey) -> Self {
        let seed = |key: &FlowKey| mix(u64::from(key.src.port()) << 16 | u64::from(key.dst.port()));
        Streams { written: seed(key), expected: seed(&key.reversed()), wrong_bytes: 0 }
    }

    /// At most `most` bytes to write from position `start` on.
    pub(super) fn to_write(&self, start: u64, most: u32) -> Payload {
        let end = start + u64::from(most.min(WRITE_PIECE));
        Payload::from((start..end).map(|at| byte(self.written, at)).collect::<Vec<u8>>())
    }

    /// Counts the wrong bytes in `payload`, which begins at position `start`.
    pub(super) fn check(&mut self, payload: &Payload, start: u64) {
        let bytes = payload.bytes().unwrap_or_default().iter().zip(start..);
        let right = bytes.filter(|&(&byte_read, at)| byte_read == byte(self.expected, at)).count();
        self.wrong_bytes += (payload.len() - right) as u64;
    }
}

/// Bytes of one write.
const WRITE_PIECE: u32 = 1 << 16;

fn byte(seed: u64, at: u64) -> u8 {
    mix(seed ^ (at >> 3)).to_le_bytes()[(at & 7) as usize]
}

/// The finaliser of SplitMix64.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
