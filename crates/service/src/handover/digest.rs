//! A digest behind the state. A damaged state is refused as a whole, before anything is built from it.
//!
//! Older programs write no digest, and ignore it when they read.

use std::hash::Hasher;
use std::io::{self, Write};

use twox_hash::XxHash64;

/// Marks the following bytes as the digest. No state without a digest ends with it.
const MARK: &[u8; 8] = b"PLDIGEST";
const LEN: usize = MARK.len() + size_of::<u64>();
const SEED: u64 = 1;

/// Writes the content and its digest.
pub(super) fn write<W: Write>(
    out: W,
    content: impl FnOnce(&mut DigestWriter<W>) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = DigestWriter { out, hash: XxHash64::with_seed(SEED) };
    content(&mut out)?;
    let digest = out.hash.finish();
    out.out.write_all(MARK)?;
    out.out.write_all(&digest.to_le_bytes())?;
    out.out.flush()
}

/// Returns the state without its digest.
///
/// # Errors
/// The state differs from what was written.
pub(super) fn checked(written: &[u8]) -> io::Result<&[u8]> {
    let Some((state, tail)) = written.len().checked_sub(LEN).map(|at| written.split_at(at)) else {
        return Ok(written);
    };
    let Some(digest) = tail.strip_prefix(MARK) else { return Ok(written) };
    let mut hash = XxHash64::with_seed(SEED);
    hash.write(state);
    match hash.finish().to_le_bytes() == *digest {
        true => Ok(state),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged; restart the gateway")),
    }
}

/// Passes bytes on, and computes their digest.
pub(super) struct DigestWriter<W> {
    out: W,
    hash: XxHash64,
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        self.hash.write(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_more_or_less_is_noticed_and_older_states_are_read() {
        let mut written = Vec::new();
        write(&mut written, |out| out.write_all(b"state")).unwrap();
        assert_eq!(checked(&written).unwrap(), b"state");
        for bit in 0..5 * 8 {
            let mut damaged = written.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(checked(&damaged).is_err());
        }
        assert_eq!(checked(b"an older program's").unwrap(), b"an older program's");
        assert_eq!(checked(b"x").unwrap(), b"x");
    }
}
