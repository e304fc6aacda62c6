//! Packets read one by one from a descriptor, as one batch.

use std::io;

use crate::frame::{Frame, FrameError};

/// Slots of equal length, and the lengths of the packets in them.
#[derive(Debug)]
pub(crate) struct ReadBatch {
    bytes: Box<[u8]>,
    slot_bytes: usize,
    lens: Vec<usize>,
}

impl ReadBatch {
    /// A batch of at most `packets`, each of at most `slot_bytes` with its virtio header.
    pub(crate) fn new(packets: usize, slot_bytes: usize) -> Self {
        let bytes = vec![0; packets * slot_bytes].into_boxed_slice();
        ReadBatch { bytes, slot_bytes, lens: Vec::with_capacity(packets) }
    }

    /// Fills the slots with packets that wait. `read` writes one into its slot and returns its length. Returns their
    /// number. An error, for example an interface that goes down, does not discard the packets read before it.
    pub(crate) fn fill(&mut self, mut read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
        self.lens.clear();
        for slot in self.bytes.chunks_exact_mut(self.slot_bytes) {
            match read(slot) {
                Ok(len) => self.lens.push(len),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => break,
                Err(_) if !self.lens.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.lens.len())
    }

    /// Returns packet `index` of those read last.
    pub(crate) fn frame(&self, index: usize) -> Result<Frame<'_>, FrameError> {
        let start = index * self.slot_bytes;
        Frame::parse_tun(&self.bytes[start..start + self.lens[index]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_leaves_the_packets_before_it_and_an_empty_batch_reports_it() {
        let mut batch = ReadBatch::new(3, 64);
        let mut left = 2;
        let down = || io::Error::from(io::ErrorKind::NetworkDown);
        let mut read = |_: &mut [u8]| {
            left -= 1;
            if left < 0 { Err(down()) } else { Ok(10) }
        };
        assert_eq!(batch.fill(&mut read).unwrap(), 2);
        assert_eq!(batch.fill(&mut read).unwrap_err().kind(), io::ErrorKind::NetworkDown);
        assert_eq!(batch.fill(|_| Ok(10)).unwrap(), 3, "no more than there are slots");
        assert_eq!(batch.fill(|_| Err(io::ErrorKind::WouldBlock.into())).unwrap(), 0);
    }
}
