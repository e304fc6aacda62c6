//! The TCP checksum of a packet in its three states.

use super::{Packet, u16_at};
use crate::checksum;

/// What the TCP checksum field of a packet holds, and who has looked at it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum Checksum {
    /// The checksum that goes on the wire; nobody has verified it.
    Full,
    /// Only the sum of the pseudo header: the next device completes it (virtio `NEEDS_CSUM`).
    Partial,
    /// Full, and the kernel found it right (virtio `DATA_VALID`).
    Verified,
}

impl Packet {
    /// The state of the TCP checksum. It says nothing of an opaque packet.
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// States what the checksum field holds, as the device that delivered the packet said; changes no byte.
    pub fn set_checksum(&mut self, checksum: Checksum) {
        self.checksum = checksum;
    }

    /// False when the TCP checksum is full and wrong.
    ///
    /// True without a look at the bytes in the other states, in an opaque packet, and where no payload bytes exist.
    pub fn verify_checksum(&self) -> bool {
        let known_good = self.checksum != Checksum::Full || !self.is_tcp() || self.payload.bytes().is_none();
        known_good || checksum::fold(self.pseudo_header() + self.tcp_sum()) == 0xffff
    }

    /// Turns a partial checksum into a full one.
    pub fn complete_checksum(&mut self) {
        if self.checksum == Checksum::Partial && self.is_tcp() {
            // The field holds the pseudo header's sum, so the sum over everything includes it.
            self.set_checksum_field(!checksum::fold(self.tcp_sum()));
            self.checksum = Checksum::Full;
        }
    }

    /// Writes the partial checksum of the packet as it is.
    pub(super) fn make_partial(&mut self) {
        self.set_checksum_field(checksum::fold(self.pseudo_header()));
        self.checksum = Checksum::Partial;
    }

    /// Updates the checksum for a pseudo header that said `old_len` and now says what the packet has.
    pub(super) fn change_tcp_len(&mut self, old_len: usize) {
        let (old, new) = (old_len as u64, self.tcp_len() as u64);
        let field = self.checksum_field();
        self.set_checksum_field(match self.checksum {
            // A partial checksum is the sum itself, not its complement.
            Checksum::Partial => !checksum::update(!field, old, new),
            Checksum::Full | Checksum::Verified => checksum::update(field, old, new),
        });
    }

    /// The length that the pseudo header states.
    pub(super) fn tcp_len(&self) -> usize {
        self.ip_len() - usize::from(self.tcp_at)
    }

    pub(super) fn checksum_field(&self) -> u16 {
        u16_at(&self.header, self.checksum_at())
    }

    pub(super) fn set_checksum_field(&mut self, checksum: u16) {
        let at = self.checksum_at();
        self.header[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }

    fn checksum_at(&self) -> usize {
        usize::from(self.tcp_at) + 16
    }

    fn pseudo_header(&self) -> u64 {
        self.addresses().map_or(0, |(src, dst)| checksum::pseudo_header(src, dst, self.tcp_len()))
    }

    /// The sum of TCP header and payload; a payload without bytes is one of zeros.
    fn tcp_sum(&self) -> u64 {
        let header = &self.header()[usize::from(self.tcp_at)..];
        checksum::sum(header) + self.payload.bytes().map_or(0, checksum::sum)
    }
}
