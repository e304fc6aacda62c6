//! The payload of a packet.

use alloc::vec::Vec;
use core::ops::Range;

use crate::buffer::Buffer;

/// The bytes after the headers. In the simulator, where no bytes exist, only their number.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Payload {
    /// Real bytes in shared memory.
    Bytes(Buffer),
    /// The number of bytes, whose content nobody reads.
    Length(u32),
}

impl Payload {
    /// The number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Payload::Bytes(buffer) => buffer.len(),
            Payload::Length(len) => *len as usize,
        }
    }

    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `range`. A range that leaves the payload is cut.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Payload {
        match self {
            Payload::Bytes(buffer) => Payload::Bytes(buffer.slice(range)),
            Payload::Length(len) => {
                let end = range.end.min(*len as usize);
                Payload::Length(end.saturating_sub(range.start) as u32)
            }
        }
    }

    /// This payload and `next` as one, without a copy. `None` if they are not adjacent in one buffer.
    #[must_use]
    pub fn join(&self, next: &Payload) -> Option<Payload> {
        match (self, next) {
            (Payload::Bytes(this), Payload::Bytes(next)) => this.join(next).map(Payload::Bytes),
            (Payload::Length(this), Payload::Length(next)) => this.checked_add(*next).map(Payload::Length),
            _ => None,
        }
    }

    /// The bytes, if they exist.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Payload::Bytes(buffer) => Some(buffer),
            Payload::Length(_) => None,
        }
    }
}

impl Default for Payload {
    fn default() -> Payload {
        Payload::Bytes(Buffer::default())
    }
}

impl From<Buffer> for Payload {
    fn from(buffer: Buffer) -> Payload {
        Payload::Bytes(buffer)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Payload::Bytes(bytes.into())
    }
}
