//! The packet that travels between nodes: header bytes with room for added options, the offsets in them, and the
//! payload.

mod build;
mod edit;
mod integrity;
mod join;
mod options;
mod parse;
mod path;
mod payload;
mod segment;
mod state;
mod tcp;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub use build::{HeaderTemplate, TcpFields, TcpRepr};
pub use edit::{NoRoom, TcpMut};
pub use integrity::Checksum;
pub use options::{SackBlocks, TcpOptionsRepr};
pub use path::PathMarks;
pub use payload::Payload;
pub use segment::Segments;
pub use tcp::{Flags, Tcp};

use crate::flow::FlowKey;

/// An owned packet: link header, IP and TCP headers, payload, and the device's information on checksum and
/// segmentation.
///
/// A packet that is not one whole TCP segment is *opaque*: it has no TCP view and is forwarded unchanged. A packet with
/// `gso_size` is a *super-packet*: [`segments`](Packet::segments) splits it.
///
/// Fields that every packet needs come first, so that they lie in two cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Packet {
    payload: Payload,
    gso_size: Option<u16>,
    link_len: u8,
    header_len: u8,
    // Offset of the TCP header, which ends at `header_len`. Zero in an opaque packet.
    tcp_at: u8,
    opaque: Option<OpaqueReason>,
    checksum: Checksum,
    offload: Option<[u8; 10]>,
    // Only the first `header_len` bytes are valid. In an opaque packet they are its first bytes, whatever their
    // meaning.
    header: [u8; HEADER_CAPACITY],
    link: [u8; LINK_CAPACITY],
}

impl Packet {
    /// The link header, as received or set.
    pub fn link(&self) -> &[u8] {
        &self.link[..usize::from(self.link_len)]
    }

    /// Replaces the link header. At most 22 bytes (Ethernet with two VLAN tags) are kept.
    pub fn set_link(&mut self, link: &[u8]) {
        let len = link.len().min(LINK_CAPACITY);
        self.link[..len].copy_from_slice(&link[..len]);
        self.link_len = len as u8;
    }

    /// True if [`tcp`](Self::tcp) returns a view.
    #[inline]
    pub fn is_tcp(&self) -> bool {
        self.opaque.is_none()
    }

    /// The reason that this packet has no TCP view. `None` if it has one.
    pub fn opaque_reason(&self) -> Option<OpaqueReason> {
        self.opaque
    }

    /// True for IPv6 with any protocol.
    pub fn is_ipv6(&self) -> bool {
        matches!(self.addresses(), Some((IpAddr::V6(_), _)))
    }

    /// Source and destination of any well-formed IP packet.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        if matches!(self.opaque, Some(OpaqueReason::NotIp | OpaqueReason::Malformed)) {
            return None;
        }
        let header = self.header();
        match header.first()? >> 4 {
            4 => Some((ipv4_at(header, 12)?, ipv4_at(header, 16)?)),
            6 => Some((ipv6_at(header, 8)?, ipv6_at(header, 24)?)),
            _ => None,
        }
    }

    /// The ECN field of the IP header. `None` if [`addresses`](Self::addresses) is.
    pub fn ecn(&self) -> Option<Ecn> {
        self.addresses()?;
        Some(ecn_of(self.header()))
    }

    /// The length of the IP packet with headers and payload, for a super-packet as a whole.
    #[inline]
    pub fn ip_len(&self) -> usize {
        usize::from(self.header_len) + self.payload.len()
    }

    /// Addresses and ports of a TCP packet.
    pub fn flow_key(&self) -> Option<FlowKey> {
        let tcp = self.tcp()?;
        let (src, dst) = self.addresses()?;
        Some(FlowKey::new(SocketAddr::new(src, tcp.src_port()), SocketAddr::new(dst, tcp.dst_port())))
    }

    /// Source and destination port of a whole UDP datagram without extension headers. `None` for everything else.
    pub fn udp_ports(&self) -> Option<(u16, u16)> {
        if self.opaque != Some(OpaqueReason::NotTcp) {
            return None;
        }
        let header = self.header();
        let at = match *header.first()? {
            first if first >> 4 == 6 => (header[6] == UDP).then_some(40),
            first => (header[9] == UDP).then_some(usize::from(first & 15) * 4),
        }?;
        let ports: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
        Some((u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])))
    }

    /// IP and TCP header bytes. For an opaque packet its first bytes: `header` and `payload` together are the packet.
    #[inline]
    pub fn header(&self) -> &[u8] {
        &self.header[..usize::from(self.header_len)]
    }

    /// Offset of the TCP header in [`header`](Self::header): `csum_start` of a virtio header, less the link header.
    #[inline]
    pub fn tcp_offset(&self) -> Option<usize> {
        self.is_tcp().then_some(usize::from(self.tcp_at))
    }

    /// The bytes behind the header.
    #[inline]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// The payload size of the segments of a super-packet. `None` for an ordinary packet.
    #[inline]
    pub fn gso_size(&self) -> Option<u16> {
        self.gso_size
    }

    /// Marks a super-packet, or with `None` or zero an ordinary packet.
    pub fn set_gso_size(&mut self, gso_size: Option<u16>) {
        self.gso_size = gso_size.filter(|&size| size > 0);
    }

    /// The virtio header that came with an opaque packet. It is sent unchanged with the packet.
    pub fn offload(&self) -> Option<[u8; 10]> {
        self.offload
    }

    /// Keeps the virtio header of an opaque packet.
    pub fn set_offload(&mut self, offload: Option<[u8; 10]>) {
        self.offload = offload;
    }

    /// Writes headers and payload to `out` and returns their length. `None` if `out` is too short. A payload without
    /// bytes is written as zeros.
    pub fn write_ip(&self, out: &mut [u8]) -> Option<usize> {
        let out = out.get_mut(..self.ip_len())?;
        let (header, payload) = out.split_at_mut(usize::from(self.header_len));
        header.copy_from_slice(self.header());
        match self.payload.bytes() {
            Some(bytes) => payload.copy_from_slice(bytes),
            None => payload.fill(0),
        }
        Some(self.ip_len())
    }

    /// Returns the bytes that [`write_ip`](Self::write_ip) writes, in a new vector. For tests and captures.
    pub fn to_vec(&self) -> alloc::vec::Vec<u8> {
        let mut bytes = alloc::vec![0; self.ip_len()];
        self.write_ip(&mut bytes);
        bytes
    }
}

impl Clone for Packet {
    fn clone(&self) -> Packet {
        let mut copy = Packet::bare(Payload::Length(0));
        copy.clone_from(self);
        copy
    }

    /// Copies only the used part of the header, if it has the usual length.
    #[inline]
    fn clone_from(&mut self, other: &Packet) {
        match (&mut self.payload, &other.payload) {
            (Payload::Length(own), Payload::Length(len)) => *own = *len,
            (own, payload) => *own = payload.clone(),
        }
        if usize::from(other.header_len) <= USUAL_HEADER {
            self.header[..USUAL_HEADER].copy_from_slice(&other.header[..USUAL_HEADER]);
        } else {
            self.header = other.header;
        }
        if other.link_len > 0 {
            self.link = other.link;
        }
        self.offload = other.offload;
        self.gso_size = other.gso_size;
        self.link_len = other.link_len;
        self.header_len = other.header_len;
        self.tcp_at = other.tcp_at;
        self.opaque = other.opaque;
        self.checksum = other.checksum;
    }
}

/// The reason that a packet is forwarded without a TCP view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum OpaqueReason {
    /// Neither IPv4 nor IPv6: ARP, or anything else.
    NotIp,
    /// Another protocol, or TCP behind headers that the parser does not follow.
    NotTcp,
    /// A fragment, or an IPv6 packet with a fragment header.
    Fragment,
    /// The headers contradict each other or the length of the packet.
    Malformed,
    /// IP and TCP headers together exceed the capacity.
    HeadersTooLong,
    /// Longer than the length field of its IP header allows.
    Jumbogram,
}

/// The ECN field of the IP header (RFC 3168, Section 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, as RFC 3168 senders mark.
    Ect0,
    /// ECN-capable, as L4S senders mark.
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// IPv6 with 92 bytes of extension headers and the longest TCP header. It leaves room for an added option in all common
/// cases.
const HEADER_CAPACITY: usize = 192;

/// IPv6 and TCP with timestamps, or IPv4 and TCP with three SACK blocks. A few wide moves copy this length.
const USUAL_HEADER: usize = 80;

/// The protocol number of UDP (RFC 768).
const UDP: u8 = 17;

/// Ethernet and two VLAN tags.
const LINK_CAPACITY: usize = 22;

#[inline]
fn ecn_of(ip_header: &[u8]) -> Ecn {
    let bits = match ip_header {
        [first, _, ..] if first >> 4 == 6 => ip_header[1] >> 4,
        [_, tos, ..] => *tos,
        _ => 0,
    };
    match bits & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

fn ipv4_at(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(Ipv4Addr::from(octets).into())
}

fn ipv6_at(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
    Some(Ipv6Addr::from(octets).into())
}

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let mut word = [0; 2];
    word.copy_from_slice(&bytes[at..at + 2]);
    u16::from_be_bytes(word)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}
