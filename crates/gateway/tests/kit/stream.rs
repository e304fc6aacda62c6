//! The bytes that flows carry. They follow from their position, so any corruption shows.

use paceline_wire::{FlowKey, Payload};

/// Whether payloads exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Only lengths. This is fast, and contiguity is still checked.
    #[default]
    Length,
    /// Real bytes, verified by the receiver, and full checksums.
    Bytes,
}

/// The stream of one direction of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    seed: u64,
    content: Content,
}

impl Stream {
    /// `key` is the key of the packets that carry the stream.
    pub fn new(key: &FlowKey, content: Content) -> Self {
        let seed = u64::from(key.src.port()) << 16 | u64::from(key.dst.port());
        Stream { seed: mix(seed), content }
    }

    pub fn content(&self) -> Content {
        self.content
    }

    /// Bytes `start..end` of the stream.
    pub fn payload(&self, start: u64, end: u64) -> Payload {
        match self.content {
            _ if start == end => Payload::default(),
            Content::Length => Payload::Length((end - start) as u32),
            Content::Bytes => Payload::from((start..end).map(|at| self.byte(at)).collect::<Vec<u8>>()),
        }
    }

    /// The number of wrong bytes in `payload`, which begins at `start`.
    pub fn wrong_bytes(&self, payload: &Payload, start: u64) -> u64 {
        let Some(bytes) = payload.bytes() else { return 0 };
        bytes.iter().zip(start..).filter(|(byte, at)| **byte != self.byte(*at)).count() as u64
    }

    fn byte(&self, at: u64) -> u8 {
        mix(self.seed ^ (at >> 3)).to_le_bytes()[(at & 7) as usize]
    }
}

/// The finaliser of SplitMix64.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
