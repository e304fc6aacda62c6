//! The TCP checksum of a packet in its three states.

use super::{Packet, u16_at};
use crate::checksum;

/// Content of a packet's TCP checksum field, and whether it was verified.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum Checksum {
    /// The complete checksum, not verified.
    Full,
    /// Only the sum of the pseudo header. The next device completes it (virtio `NEEDS_CSUM`).
    Partial,
    /// The complete checksum, verified by the kernel (virtio `DATA_VALID`).
    Verified,
}

impl Packet {
    /// The state of the TCP checksum. It has no meaning for an opaque packet.
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Sets the state of the checksum field, as the delivering device reported it. Changes no byte.
    pub fn set_checksum(&mut self, checksum: Checksum) {
        self.checksum = checksum;
    }

    /// False if the TCP checksum is complete and wrong.
    ///
    /// True without a check in the other states, in an opaque packet, and if the payload has no bytes.
    pub fn verify_checksum(&self) -> bool {
        let known_good = self.checksum != Checksum::Full || !self.is_tcp() || self.payload.bytes().is_none();
        known_good || checksum::fold(self.pseudo_header() + self.tcp_sum()) == 0xffff
    }

    /// Completes a partial checksum.
    pub fn complete_checksum(&mut self) {
        if self.checksum == Checksum::Partial && self.is_tcp() {
            // The field holds the sum of the pseudo header, so the sum over everything includes it.
            self.set_checksum_field(!checksum::fold(self.tcp_sum()));
            self.checksum = Checksum::Full;
        }
    }

    /// Writes the partial checksum of the packet.
    pub(super) fn make_partial(&mut self) {
        self.set_checksum_field(checksum::fold(self.pseudo_header()));
        self.checksum = Checksum::Partial;
    }

    /// Updates the checksum when the length in the pseudo header changes from `old_len` to the packet's length.
    pub(super) fn change_tcp_len(&mut self, old_len: usize) {
        let (old, new) = (old_len as u64, self.tcp_len() as u64);
        let field = self.checksum_field();
        self.set_checksum_field(match self.checksum {
            // A partial checksum is the sum itself, not its complement.
            Checksum::Partial => !checksum::update(!field, old, new),
            Checksum::Full | Checksum::Verified => checksum::update(field, old, new),
        });
    }

    /// The length in the pseudo header.
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

    /// The sum of TCP header and payload. A payload without bytes counts as zeros.
    fn tcp_sum(&self) -> u64 {
        let header = &self.header()[usize::from(self.tcp_at)..];
        checksum::sum(header) + self.payload.bytes().map_or(0, checksum::sum)
    }
}
