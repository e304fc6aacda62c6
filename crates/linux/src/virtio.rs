//! The `virtio_net_hdr` that AF_PACKET (`PACKET_VNET_HDR`) and TUN (`IFF_VNET_HDR`) put before a packet.
//!
//! It tells if the checksum is complete, and into which segments to cut a super-packet. Without it, packets of a
//! virtual device would carry partial checksums that nobody completes.

/// Length in bytes of the legacy header, without the buffer count.
pub const HEADER_LEN: usize = 10;

/// A `virtio_net_hdr`, in the byte order of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioHeader {
    /// [`NEEDS_CSUM`], [`DATA_VALID`].
    pub flags: u8,
    /// [`GSO_NONE`], [`GSO_TCPV4`], [`GSO_TCPV6`] or [`GSO_UDP_L4`], possibly with [`GSO_ECN`].
    pub gso_type: u8,
    /// Bytes of link, network and transport header. A hint, but some kernels insist on it.
    pub header_len: u16,
    /// Payload bytes of each segment.
    pub gso_size: u16,
    /// Start of the checksummed part.
    pub csum_start: u16,
    /// Offset of the checksum from `csum_start`.
    pub csum_offset: u16,
}

/// The checksum field holds the sum of the pseudo header only.
pub const NEEDS_CSUM: u8 = 1;
/// The checksum was verified.
pub const DATA_VALID: u8 = 2;
/// Not a super-packet.
pub const GSO_NONE: u8 = 0;
/// TCP over IPv4.
pub const GSO_TCPV4: u8 = 1;
/// TCP over IPv6.
pub const GSO_TCPV6: u8 = 4;
/// UDP datagrams of equal size (Linux 6.2).
pub const GSO_UDP_L4: u8 = 5;
/// The CWR flag belongs to the first segment only.
pub const GSO_ECN: u8 = 0x80;

impl VirtioHeader {
    /// Reads the header at the start of `bytes`. `None` if there are too few.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<HEADER_LEN>()?;
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Some(VirtioHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            header_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        })
    }

    /// Returns the bytes of the header.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        let words = [self.header_len, self.gso_size, self.csum_start, self.csum_offset];
        for (word, place) in words.iter().zip(bytes[2..].chunks_exact_mut(2)) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// True if the checksum is partial.
    pub fn needs_checksum(&self) -> bool {
        self.flags & NEEDS_CSUM != 0
    }

    /// Returns the header for the same packet with `bytes` more bytes in front.
    #[must_use]
    pub fn moved_by(mut self, bytes: u16) -> Self {
        self.header_len = self.header_len.saturating_add(bytes);
        if self.needs_checksum() {
            self.csum_start = self.csum_start.saturating_add(bytes);
        }
        self
    }

    /// True for TCP super-packets.
    pub fn is_tcp_gso(&self) -> bool {
        matches!(self.gso_type & !GSO_ECN, GSO_TCPV4 | GSO_TCPV6) && self.gso_size > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_fields_correspond() {
        let header = VirtioHeader {
            flags: NEEDS_CSUM,
            gso_type: GSO_TCPV4 | GSO_ECN,
            header_len: 54,
            gso_size: 1448,
            csum_start: 34,
            csum_offset: 16,
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes[..2], [1, 0x81]);
        assert_eq!(u16::from_ne_bytes([bytes[4], bytes[5]]), 1448);
        assert_eq!(VirtioHeader::parse(&bytes), Some(header));
        assert_eq!(VirtioHeader::parse(&bytes[..9]), None);
        assert!(header.is_tcp_gso() && header.needs_checksum());
        assert!(!VirtioHeader { gso_size: 0, ..header }.is_tcp_gso());
        assert!(!VirtioHeader { gso_type: GSO_UDP_L4, ..header }.is_tcp_gso());
    }

    #[test]
    fn a_longer_link_header_moves_the_checksum() {
        let header =
            VirtioHeader { flags: NEEDS_CSUM, header_len: 40, csum_start: 20, ..VirtioHeader::default() };
        let moved = header.moved_by(18);
        assert_eq!((moved.header_len, moved.csum_start), (58, 38));
        assert_eq!(VirtioHeader::default().moved_by(14).csum_start, 0);
    }
}
