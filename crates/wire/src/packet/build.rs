//! Building packets, for tests and simulators.

use core::net::{IpAddr, SocketAddr};

use super::options::{MAX_OPTIONS_LEN, TcpOptionsRepr};
use super::{Checksum, Flags, HEADER_CAPACITY, LINK_CAPACITY, OpaqueReason, Packet, Payload};
use crate::checksum;
use crate::flow::FlowKey;
use crate::seq::Seq;

/// The fields of a TCP header to be built.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TcpRepr {
    /// Sequence number.
    pub seq: Seq,
    /// Acknowledgement number.
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// Window, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent_pointer: u16,
    /// Options.
    pub options: TcpOptionsRepr,
}

impl Packet {
    /// A TCP packet with a partial checksum, hop limit 64, not ECN-capable, "don't fragment" set, and no link header.
    ///
    /// If only one address is IPv4, both become IPv6. A length that the IP header cannot say is written as zero.
    pub fn build_tcp(key: FlowKey, tcp: &TcpRepr, payload: Payload) -> Packet {
        let mut packet = Packet::bare(Payload::Length(0));
        packet.become_tcp(key, tcp, payload);
        packet
    }

    /// Turns this packet, whatever it was, into the one that [`build_tcp`](Self::build_tcp) makes.
    pub fn become_tcp(&mut self, key: FlowKey, tcp: &TcpRepr, payload: Payload) {
        let tcp_at = if key.src.is_ipv4() && key.dst.is_ipv4() { IPV4_HEADER_LEN } else { IPV6_HEADER_LEN };
        let options_len = self.write_tcp(tcp_at, key, tcp);
        self.payload = payload;
        self.offload = None;
        self.gso_size = None;
        self.link_len = 0;
        self.header_len = (tcp_at + TCP_HEADER_LEN + options_len) as u8;
        self.tcp_at = tcp_at as u8;
        self.opaque = None;
        self.checksum = Checksum::Partial;
        let addresses = self.write_ip_header(key, IP_PROTOCOL_TCP);
        let sum = addresses + checksum::tcp_and_len(self.tcp_len());
        self.set_checksum_field(checksum::fold(sum));
    }

    /// A UDP packet without a checksum, opaque like every UDP packet: cross traffic.
    pub fn build_udp(key: FlowKey, payload: Payload) -> Packet {
        let mut packet = Packet::bare(payload);
        let udp_at = if key.src.is_ipv4() && key.dst.is_ipv4() { IPV4_HEADER_LEN } else { IPV6_HEADER_LEN };
        let len = u16::try_from(8 + packet.payload.len()).unwrap_or(0);
        let words = [key.src.port(), key.dst.port(), len, 0];
        packet.write_words(udp_at, words);
        packet.header_len = (udp_at + UDP_HEADER_LEN) as u8;
        packet.opaque = Some(OpaqueReason::NotTcp);
        packet.write_ip_header(key, IP_PROTOCOL_UDP);
        packet
    }

    /// Without any header.
    #[inline(always)]
    pub(super) fn bare(payload: Payload) -> Packet {
        Packet {
            payload,
            header: [0; HEADER_CAPACITY],
            link: [0; LINK_CAPACITY],
            offload: None,
            gso_size: None,
            link_len: 0,
            header_len: 0,
            tcp_at: 0,
            opaque: None,
            checksum: Checksum::Full,
        }
    }

    /// The TCP header but for its checksum; returns the length of the options.
    fn write_tcp(&mut self, tcp_at: usize, key: FlowKey, tcp: &TcpRepr) -> usize {
        let Some((fixed, options)) = self.header[tcp_at..].split_first_chunk_mut::<TCP_HEADER_LEN>() else {
            return 0;
        };
        let options_len = match options.first_chunk_mut() {
            Some(area) => tcp.options.encode(area),
            None => 0,
        };
        let data_offset = (TCP_HEADER_LEN + options_len) as u16 / 4;
        fixed[0..2].copy_from_slice(&key.src.port().to_be_bytes());
        fixed[2..4].copy_from_slice(&key.dst.port().to_be_bytes());
        fixed[4..8].copy_from_slice(&tcp.seq.0.to_be_bytes());
        fixed[8..12].copy_from_slice(&tcp.ack.0.to_be_bytes());
        fixed[12..14].copy_from_slice(&(data_offset << 12 | tcp.flags.bits()).to_be_bytes());
        fixed[14..16].copy_from_slice(&tcp.window.to_be_bytes());
        fixed[18..20].copy_from_slice(&tcp.urgent_pointer.to_be_bytes());
        options_len
    }

    fn write_words<const N: usize>(&mut self, at: usize, words: [u16; N]) {
        for (number, word) in words.into_iter().enumerate() {
            self.header[at + 2 * number..at + 2 * number + 2].copy_from_slice(&word.to_be_bytes());
        }
    }

    /// The IP header of a packet whose `header_len` is set; returns the sum of its addresses.
    fn write_ip_header(&mut self, key: FlowKey, protocol: u8) -> u64 {
        let len = self.ip_len();
        match (key.src.ip(), key.dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let total_len = u16::try_from(len).unwrap_or(0);
                let (src, dst) = (src.to_bits(), dst.to_bits());
                let addresses = words(src) + words(dst);
                let protocol = u16::from_be_bytes([HOP_LIMIT, protocol]);
                let sum = addresses + u64::from(IPV4_START) + u64::from(total_len);
                let sum = !checksum::fold(sum + u64::from(DONT_FRAGMENT) + u64::from(protocol));
                self.write_words(0, [IPV4_START, total_len, 0, DONT_FRAGMENT, protocol, sum]);
                self.header[12..16].copy_from_slice(&src.to_be_bytes());
                self.header[16..20].copy_from_slice(&dst.to_be_bytes());
                addresses
            }
            _ => {
                let payload_len = u16::try_from(len - IPV6_HEADER_LEN).unwrap_or(0);
                let next_header = u16::from_be_bytes([protocol, HOP_LIMIT]);
                self.write_words(0, [0x6000, 0, payload_len, next_header]);
                self.header[8..24].copy_from_slice(&ipv6_octets(key.src));
                self.header[24..40].copy_from_slice(&ipv6_octets(key.dst));
                checksum::sum(&self.header[8..40])
            }
        }
    }
}

/// The two words of an address, added.
fn words(address: u32) -> u64 {
    u64::from(address >> 16) + u64::from(address & 0xffff)
}

fn ipv6_octets(address: SocketAddr) -> [u8; 16] {
    match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

const IPV4_HEADER_LEN: usize = 20;
const IPV6_HEADER_LEN: usize = 40;
const TCP_HEADER_LEN: usize = 20;
const UDP_HEADER_LEN: usize = 8;
/// Version 4, five words of header, no differentiated service.
const IPV4_START: u16 = 0x4500;
const DONT_FRAGMENT: u16 = 0x4000;
const HOP_LIMIT: u8 = 64;
const IP_PROTOCOL_TCP: u8 = 6;
const IP_PROTOCOL_UDP: u8 = 17;

const _: () = assert!(IPV6_HEADER_LEN + TCP_HEADER_LEN + MAX_OPTIONS_LEN <= HEADER_CAPACITY);
