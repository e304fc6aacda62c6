//! Pseudo-random payload from a seed, and its digest.

use sha2::{Digest, Sha256};

/// SHA-256 of a stream.
pub(super) type Sha256Sum = [u8; 32];

/// An endless stream of bytes from a seed, with the SHA-256 of the consumed bytes.
#[derive(Debug)]
pub struct PayloadSource {
    state: u64,
    buffer: Vec<u8>,
    position: usize,
    digest: StreamDigest,
}

impl PayloadSource {
    /// Offers up to `chunk_bytes` at a time.
    pub fn new(seed: u64, chunk_bytes: usize, verify: bool) -> Self {
        let chunk_bytes = chunk_bytes.max(8).next_multiple_of(8);
        PayloadSource {
            state: seed,
            buffer: vec![0; chunk_bytes],
            position: chunk_bytes,
            digest: StreamDigest::new(verify),
        }
    }

    /// Returns the next bytes of the stream, at least one.
    pub fn pending(&mut self) -> &[u8] {
        if self.position == self.buffer.len() {
            self.refill();
        }
        &self.buffer[self.position..]
    }

    /// Consumes `bytes` of the bytes that [`PayloadSource::pending`] returned.
    pub fn consume(&mut self, bytes: usize) {
        let end = (self.position + bytes).min(self.buffer.len());
        self.digest.update(&self.buffer[self.position..end]);
        self.position = end;
    }

    /// Returns the SHA-256 of the consumed bytes. `None` without verification.
    pub fn digest(&self) -> Option<Sha256Sum> {
        self.digest.sum()
    }

    fn refill(&mut self) {
        for word in self.buffer.chunks_exact_mut(8) {
            word.copy_from_slice(&split_mix(&mut self.state).to_le_bytes());
        }
        self.position = 0;
    }
}

/// SHA-256 of a stream in pieces. Computes nothing without verification.
#[derive(Debug)]
pub(super) struct StreamDigest(Option<Sha256>);

impl StreamDigest {
    pub(super) fn new(verify: bool) -> Self {
        StreamDigest(verify.then(Sha256::new))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        if let Some(sha) = &mut self.0 {
            sha.update(bytes);
        }
    }

    pub(super) fn sum(&self) -> Option<Sha256Sum> {
        self.0.clone().map(|sha| sha.finalize().into())
    }
}

/// SplitMix64: fast, and different seeds give different streams.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(source: &mut PayloadSource, total: usize, step: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < total {
            let pending = source.pending();
            let n = pending.len().min(step).min(total - bytes.len());
            bytes.extend_from_slice(&pending[..n]);
            source.consume(n);
        }
        bytes
    }

    #[test]
    fn the_stream_does_not_depend_on_how_it_is_taken() {
        let (mut coarse, mut fine) = (PayloadSource::new(7, 4096, true), PayloadSource::new(7, 64, true));
        let bytes = take(&mut coarse, 10_000, 3_000);
        assert_eq!(bytes, take(&mut fine, 10_000, 13));
        assert_eq!(coarse.digest(), fine.digest());
        assert_eq!(coarse.digest().unwrap(), Sha256Sum::from(Sha256::digest(&bytes)));
        assert_ne!(bytes, take(&mut PayloadSource::new(8, 4096, true), 10_000, 4096));
    }

    #[test]
    fn nothing_is_hashed_unless_asked() {
        let mut source = PayloadSource::new(1, 64, false);
        take(&mut source, 100, 10);
        assert_eq!(source.digest(), None);
    }
}
