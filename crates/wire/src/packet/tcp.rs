//! Reading the TCP header of a packet.

use super::options::{Options, TcpOption, kind};
use super::{Ecn, Packet, ecn_of, u16_at, u32_at};
use crate::seq::Seq;

bitflags::bitflags! {
    /// The control bits of a TCP header.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
    pub struct Flags: u16 {
        /// No more data from the sender.
        const FIN = 0x001;
        /// Synchronise sequence numbers.
        const SYN = 0x002;
        /// Reset the connection.
        const RST = 0x004;
        /// Push.
        const PSH = 0x008;
        /// The acknowledgement number is valid.
        const ACK = 0x010;
        /// The urgent pointer is valid.
        const URG = 0x020;
        /// ECN echo (RFC 3168).
        const ECE = 0x040;
        /// Congestion window reduced (RFC 3168).
        const CWR = 0x080;
        /// Accurate ECN (RFC 9768).
        const AE = 0x100;
    }
}

/// A view of the TCP header of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    header: &'a [u8; FIXED_LEN],
    options: &'a [u8],
    payload_len: u32,
    ecn: Ecn,
}

/// A TCP header without options.
const FIXED_LEN: usize = 20;

impl Packet {
    /// The TCP header. `None` in an opaque packet.
    #[inline]
    pub fn tcp(&self) -> Option<Tcp<'_>> {
        self.is_tcp().then(|| self.tcp_view())
    }

    /// The TCP header. The packet must be TCP.
    #[inline]
    pub(super) fn tcp_view(&self) -> Tcp<'_> {
        let header = &self.header()[usize::from(self.tcp_at)..];
        // A TCP packet has a whole header.
        let (header, options) = header.split_first_chunk().unwrap_or((&[0; FIXED_LEN], &[]));
        // The length of a payload fits 32 bits, as that of a buffer does.
        Tcp { header, options, payload_len: self.payload.len() as u32, ecn: ecn_of(self.header()) }
    }
}

impl<'a> Tcp<'a> {
    /// The source port.
    #[inline]
    pub fn src_port(self) -> u16 {
        u16_at(self.header, 0)
    }

    /// The destination port.
    #[inline]
    pub fn dst_port(self) -> u16 {
        u16_at(self.header, 2)
    }

    /// The sequence number.
    #[inline]
    pub fn seq(self) -> Seq {
        Seq(u32_at(self.header, 4))
    }

    /// The acknowledgement number, valid only with the ACK flag.
    #[inline]
    pub fn ack(self) -> Seq {
        Seq(u32_at(self.header, 8))
    }

    /// The control bits.
    #[inline]
    pub fn flags(self) -> Flags {
        Flags::from_bits_truncate(u16_at(self.header, 12))
    }

    /// The window field, not scaled.
    #[inline]
    pub fn window(self) -> u16 {
        u16_at(self.header, 14)
    }

    /// The checksum field.
    pub fn checksum_field(self) -> u16 {
        u16_at(self.header, 16)
    }

    /// The urgent pointer, valid only with the URG flag.
    pub fn urgent_pointer(self) -> u16 {
        u16_at(self.header, 18)
    }

    /// Bytes of data.
    #[inline]
    pub fn payload_len(self) -> usize {
        self.payload_len as usize
    }

    /// The sequence numbers that the segment takes: data, SYN and FIN.
    pub fn seq_len(self) -> u32 {
        let flags = self.flags();
        let controls = u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
        self.payload_len.wrapping_add(controls)
    }

    /// The sequence number after the segment.
    pub fn end_seq(self) -> Seq {
        self.seq().add(self.seq_len())
    }

    /// The ECN field of the IP header.
    #[inline]
    pub fn ecn(self) -> Ecn {
        self.ecn
    }

    /// The bytes of the option area.
    #[inline]
    pub fn options(self) -> &'a [u8] {
        self.options
    }

    /// Maximum segment size, in a SYN.
    pub fn mss(self) -> Option<u16> {
        self.last_in_syn(kind::MSS, 2).map(|data| u16_at(data, 0))
    }

    /// Window scale shift, in a SYN; at most 14 (RFC 7323, Section 2.3).
    pub fn window_scale(self) -> Option<u8> {
        self.last_in_syn(kind::WINDOW_SCALE, 1).map(|data| data[0].min(14))
    }

    /// SACK-permitted, in a SYN.
    pub fn sack_permitted(self) -> bool {
        self.last_in_syn(kind::SACK_PERMITTED, 0).is_some()
    }

    /// TSval and TSecr.
    pub fn timestamps(self) -> Option<(u32, u32)> {
        self.last(kind::TIMESTAMPS, 8).map(|data| (u32_at(data, 0), u32_at(data, 4)))
    }

    /// SACK blocks in wire order, at most four. Each extends from its first sequence number to the one after its last.
    pub fn sack_blocks(self) -> impl Iterator<Item = (Seq, Seq)> + Clone + 'a {
        self.iter()
            .filter(|option| option.kind == kind::SACK && option.data.len() % 8 == 0)
            .flat_map(|option| option.data.chunks_exact(8))
            .map(|block| (Seq(u32_at(block, 0)), Seq(u32_at(block, 4))))
    }

    /// True with an option that signs the header: TCP-MD5 or TCP-AO. Nothing in such a packet may be edited.
    pub fn covers_headers(self) -> bool {
        self.iter().any(|option| matches!(option.kind, kind::MD5 | kind::AO))
    }

    /// True with a Multipath TCP option. The window then belongs to a connection of several flows.
    pub fn mptcp(self) -> bool {
        self.iter().any(|option| option.kind == kind::MPTCP)
    }

    /// True with a Fast Open option, or its experimental form (RFC 7413, Appendix A).
    pub fn fast_open(self) -> bool {
        const MAGIC: [u8; 2] = [0xf9, 0x89];
        self.iter().any(|option| match option.kind {
            kind::FAST_OPEN => true,
            kind::EXPERIMENT_1 | kind::EXPERIMENT_2 => option.data.starts_with(&MAGIC),
            _ => false,
        })
    }

    fn iter(self) -> Options<'a> {
        Options::new(self.options())
    }

    /// The data of the last option of this kind and length. Of repeated options Linux also uses the last one.
    fn last(self, kind: u8, len: usize) -> Option<&'a [u8]> {
        let of_kind = |option: &TcpOption<'_>| option.kind == kind && option.data.len() == len;
        self.iter().filter(of_kind).last().map(|option| option.data)
    }

    fn last_in_syn(self, kind: u8, len: usize) -> Option<&'a [u8]> {
        if self.flags().contains(Flags::SYN) { self.last(kind, len) } else { None }
    }
}
