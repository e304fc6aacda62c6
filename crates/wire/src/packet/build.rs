//! Building packets, for tests and simulators.

use core::net::{IpAddr, SocketAddr};

use super::options::{MAX_OPTIONS_LEN, TcpOptionsRepr};
use super::{Flags, HEADER_CAPACITY, OpaqueReason, Packet, Payload};
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
        let (options, options_len) = tcp.options.encode();
        let mut header = Header::ip(key, IP_PROTOCOL_TCP);
        let tcp_at = header.len;
        header.push(&key.src.port().to_be_bytes());
        header.push(&key.dst.port().to_be_bytes());
        header.push(&tcp.seq.0.to_be_bytes());
        header.push(&tcp.ack.0.to_be_bytes());
        let data_offset = (20 + options_len) as u16 / 4;
        header.push(&(data_offset << 12 | tcp.flags.bits()).to_be_bytes());
        header.push(&tcp.window.to_be_bytes());
        header.push(&[0; 2]);
        header.push(&tcp.urgent_pointer.to_be_bytes());
        header.push(&options[..options_len]);
        let mut packet = Packet::from_parts(&[], &header.bytes[..header.len], tcp_at, None, payload);
        packet.finish_ip();
        packet.make_partial();
        packet
    }

    /// A UDP packet without a checksum, opaque like every UDP packet: cross traffic.
    pub fn build_udp(key: FlowKey, payload: Payload) -> Packet {
        let mut header = Header::ip(key, IP_PROTOCOL_UDP);
        header.push(&key.src.port().to_be_bytes());
        header.push(&key.dst.port().to_be_bytes());
        header.push(&u16::try_from(8 + payload.len()).unwrap_or(0).to_be_bytes());
        header.push(&[0; 2]);
        let bytes = &header.bytes[..header.len];
        let mut packet = Packet::from_parts(&[], bytes, 0, Some(OpaqueReason::NotTcp), payload);
        packet.finish_ip();
        packet
    }

    /// Length and, in IPv4, header checksum.
    fn finish_ip(&mut self) {
        self.update_ip_len();
        if self.header[0] >> 4 == 4 {
            self.header[10..12].fill(0);
            let sum = !checksum::fold(checksum::sum(&self.header[..IPV4_HEADER_LEN]));
            self.header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// Header bytes in the making. IPv6 and the longest TCP header are 100 bytes, which fit.
struct Header {
    bytes: [u8; HEADER_CAPACITY],
    len: usize,
}

const _: () = assert!(40 + 20 + MAX_OPTIONS_LEN <= HEADER_CAPACITY);

impl Header {
    fn ip(key: FlowKey, protocol: u8) -> Header {
        let mut header = Header { bytes: [0; HEADER_CAPACITY], len: 0 };
        match (key.src.ip(), key.dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                header.push(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
                header.push(&src.octets());
                header.push(&dst.octets());
            }
            _ => {
                header.push(&[0x60, 0, 0, 0, 0, 0, protocol, 64]);
                header.push(&ipv6_octets(key.src));
                header.push(&ipv6_octets(key.dst));
            }
        }
        header
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

fn ipv6_octets(address: SocketAddr) -> [u8; 16] {
    match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

const IPV4_HEADER_LEN: usize = 20;
const IP_PROTOCOL_TCP: u8 = 6;
const IP_PROTOCOL_UDP: u8 = 17;
