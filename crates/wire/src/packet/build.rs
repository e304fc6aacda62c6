//! Building packets, for tests and simulators.

use core::net::{IpAddr, SocketAddr};

use super::options::{MAX_OPTIONS_LEN, TcpOptionsRepr, encode_timestamps};
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

/// The header fields of a plain segment, as nearly all are. Its only option may be timestamps.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TcpFields {
    /// Sequence number.
    pub seq: Seq,
    /// Acknowledgement number.
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// Window, not scaled.
    pub window: u16,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
}

/// The common part of the headers of all packets from one address and port to another.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(from = "FlowKey", into = "FlowKey")]
pub struct HeaderTemplate {
    /// IP header and ports, without lengths and checksums.
    bytes: [u8; TEMPLATE_LEN],
    /// Offset of the header behind the IP header.
    ip_header_len: u8,
    /// The sum of the addresses.
    addresses: u64,
    /// The sum of the IP header without its length.
    ip_header: u64,
}

impl HeaderTemplate {
    /// The template of TCP in this direction: hop limit 64, not ECN-capable, "don't fragment" set.
    ///
    /// If only one address is IPv4, both become IPv6.
    pub fn tcp(key: FlowKey) -> Self {
        Self::new(key, IP_PROTOCOL_TCP)
    }

    fn new(key: FlowKey, protocol: u8) -> Self {
        let mut bytes = [0; TEMPLATE_LEN];
        let ip_header_len = match (key.src.ip(), key.dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                bytes[..12].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, HOP_LIMIT, protocol, 0, 0]);
                bytes[12..16].copy_from_slice(&src.octets());
                bytes[16..20].copy_from_slice(&dst.octets());
                IPV4_HEADER_LEN
            }
            _ => {
                bytes[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, protocol, HOP_LIMIT]);
                bytes[8..24].copy_from_slice(&ipv6_octets(key.src));
                bytes[24..40].copy_from_slice(&ipv6_octets(key.dst));
                IPV6_HEADER_LEN
            }
        };
        bytes[ip_header_len..ip_header_len + 2].copy_from_slice(&key.src.port().to_be_bytes());
        bytes[ip_header_len + 2..ip_header_len + 4].copy_from_slice(&key.dst.port().to_be_bytes());
        let addresses = match ip_header_len {
            IPV4_HEADER_LEN => checksum::sum(&bytes[12..20]),
            _ => checksum::sum(&bytes[8..40]),
        };
        let ip_header = checksum::sum(&bytes[..ip_header_len]);
        HeaderTemplate { bytes, ip_header_len: ip_header_len as u8, addresses, ip_header }
    }

    /// The direction of the template. Addresses of mixed families have become IPv6.
    pub fn key(&self) -> FlowKey {
        let port = |at: usize| u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]);
        let ports = usize::from(self.ip_header_len);
        let (src, dst): (IpAddr, IpAddr) = match ports {
            IPV4_HEADER_LEN => (octets::<4>(&self.bytes, 12).into(), octets::<4>(&self.bytes, 16).into()),
            _ => (octets::<16>(&self.bytes, 8).into(), octets::<16>(&self.bytes, 24).into()),
        };
        FlowKey::new(SocketAddr::new(src, port(ports)), SocketAddr::new(dst, port(ports + 2)))
    }
}

impl From<FlowKey> for HeaderTemplate {
    fn from(key: FlowKey) -> Self {
        HeaderTemplate::tcp(key)
    }
}

impl From<HeaderTemplate> for FlowKey {
    fn from(template: HeaderTemplate) -> Self {
        template.key()
    }
}

fn octets<const N: usize>(bytes: &[u8; TEMPLATE_LEN], at: usize) -> [u8; N] {
    let mut octets = [0; N];
    octets.copy_from_slice(&bytes[at..at + N]);
    octets
}

impl Packet {
    /// A TCP packet with a partial checksum and no link header, otherwise as in [`HeaderTemplate::tcp`].
    ///
    /// A length that does not fit the IP header field is written as zero.
    pub fn build_tcp(key: FlowKey, tcp: &TcpRepr, payload: Payload) -> Packet {
        let mut packet = Packet::bare(Payload::Length(0));
        packet.become_tcp(&HeaderTemplate::tcp(key), tcp, payload);
        packet
    }

    /// Replaces this packet by the one that [`build_tcp`](Self::build_tcp) makes.
    pub fn become_tcp(&mut self, template: &HeaderTemplate, tcp: &TcpRepr, payload: Payload) {
        let &TcpRepr { seq, ack, flags, window, urgent_pointer, options } = tcp;
        let fields = TcpFields { seq, ack, flags, window, timestamps: None };
        self.write_tcp(template, &fields, urgent_pointer, payload, |area| options.encode(area));
    }

    /// As [`become_tcp`](Self::become_tcp), for a plain segment.
    #[inline]
    pub fn become_plain_tcp(&mut self, template: &HeaderTemplate, fields: &TcpFields, payload: Payload) {
        self.write_tcp(template, fields, 0, payload, |area| match fields.timestamps {
            Some(timestamps) => encode_timestamps(area, timestamps),
            None => 0,
        });
    }

    /// `options` writes the options and returns their length in bytes.
    #[inline(always)]
    fn write_tcp(
        &mut self,
        template: &HeaderTemplate,
        fields: &TcpFields,
        urgent_pointer: u16,
        payload: Payload,
        options: impl FnOnce(&mut [u8; MAX_OPTIONS_LEN]) -> usize,
    ) {
        self.header[..TEMPLATE_LEN].copy_from_slice(&template.bytes);
        let tcp_at = usize::from(template.ip_header_len);
        let Some(header) = self.header[tcp_at..].first_chunk_mut::<TCP_HEADER_MAX>() else { return };
        let options_len = header.last_chunk_mut().map_or(0, options);
        let tcp_header_len = TCP_HEADER_LEN + options_len;
        header[4..8].copy_from_slice(&fields.seq.0.to_be_bytes());
        header[8..12].copy_from_slice(&fields.ack.0.to_be_bytes());
        let data_offset = tcp_header_len as u16 / 4;
        header[12..14].copy_from_slice(&(data_offset << 12 | fields.flags.bits()).to_be_bytes());
        header[14..16].copy_from_slice(&fields.window.to_be_bytes());
        header[18..20].copy_from_slice(&urgent_pointer.to_be_bytes());
        let tcp_len = tcp_header_len + payload.len();
        // A partial checksum is the sum of the pseudo header only.
        let sum = checksum::fold(template.addresses + checksum::tcp_and_len(tcp_len));
        header[16..18].copy_from_slice(&sum.to_be_bytes());
        match (&mut self.payload, payload) {
            (Payload::Length(own), Payload::Length(len)) => *own = len,
            (own, payload) => *own = payload,
        }
        self.offload = None;
        self.gso_size = None;
        self.link_len = 0;
        self.header_len = (tcp_at + tcp_header_len) as u8;
        self.tcp_at = template.ip_header_len;
        self.opaque = None;
        self.checksum = Checksum::Partial;
        self.write_ip_len(template);
    }

    /// A UDP packet without a checksum, opaque like every UDP packet: cross traffic.
    pub fn build_udp(key: FlowKey, payload: Payload) -> Packet {
        let template = HeaderTemplate::new(key, IP_PROTOCOL_UDP);
        let mut packet = Packet::bare(payload);
        packet.header[..TEMPLATE_LEN].copy_from_slice(&template.bytes);
        let udp_at = usize::from(template.ip_header_len);
        let len = u16::try_from(UDP_HEADER_LEN + packet.payload.len()).unwrap_or(0);
        packet.header[udp_at + 4..udp_at + 6].copy_from_slice(&len.to_be_bytes());
        packet.header_len = (udp_at + UDP_HEADER_LEN) as u8;
        packet.opaque = Some(OpaqueReason::NotTcp);
        packet.write_ip_len(&template);
        packet
    }

    /// A packet without headers.
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

    /// Writes the length and, in IPv4, the header checksum. Both are zero before.
    fn write_ip_len(&mut self, template: &HeaderTemplate) {
        let len = self.ip_len();
        if usize::from(template.ip_header_len) == IPV4_HEADER_LEN {
            let len = u16::try_from(len).unwrap_or(0);
            self.header[2..4].copy_from_slice(&len.to_be_bytes());
            let sum = !checksum::fold(template.ip_header + u64::from(len));
            self.header[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            let len = u16::try_from(len - IPV6_HEADER_LEN).unwrap_or(0);
            self.header[4..6].copy_from_slice(&len.to_be_bytes());
        }
    }
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
const TCP_HEADER_MAX: usize = TCP_HEADER_LEN + MAX_OPTIONS_LEN;
const UDP_HEADER_LEN: usize = 8;
/// IPv6 and ports.
const TEMPLATE_LEN: usize = 44;
const HOP_LIMIT: u8 = 64;
const IP_PROTOCOL_TCP: u8 = 6;
const IP_PROTOCOL_UDP: u8 = 17;

const _: () = assert!(IPV6_HEADER_LEN + TCP_HEADER_LEN + MAX_OPTIONS_LEN <= HEADER_CAPACITY);
