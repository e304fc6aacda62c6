//! Parsing bytes into a [`Packet`].

use core::ops::Range;

use etherparse::{IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice, TcpHeaderSlice};

use super::{HEADER_CAPACITY, OpaqueReason, Packet, Payload};
use crate::buffer::{Buffer, BufferPool};

impl Packet {
    /// The IP packet `ip` with the link header `link`. Data that the parser does not understand becomes an opaque
    /// packet.
    ///
    /// Bytes beyond the length in the IP header (Ethernet padding) are left out. `None` only when the pool is
    /// exhausted.
    pub fn parse(link: &[u8], ip: &[u8], pool: &mut BufferPool) -> Option<Packet> {
        let (mut packet, payload) = Packet::parse_headers(link, ip);
        packet.set_payload(pool.copy_from(&ip[payload])?);
        Some(packet)
    }

    /// As [`parse`](Self::parse), without the payload. Also returns the range of the payload in `ip`, for callers that
    /// need not copy it.
    pub fn parse_headers(link: &[u8], ip: &[u8]) -> (Packet, Range<usize>) {
        let found = inspect(ip);
        let ip = &ip[..found.ip_len];
        let (header_len, tcp_at, opaque) = match found.headers {
            Ok(headers) => (headers.len, headers.tcp_at, None),
            Err(reason) => (ip.len().min(HEADER_CAPACITY), 0, Some(reason)),
        };
        let packet = Packet::from_parts(link, &ip[..header_len], tcp_at, opaque, Payload::default());
        (packet, header_len..ip.len())
    }

    /// Sets the payload of a packet from [`parse_headers`](Self::parse_headers). The headers stay as they are.
    #[inline]
    pub fn set_payload(&mut self, payload: Buffer) {
        self.payload = payload.into();
    }

    /// The callers ensure that `header` fits `HEADER_CAPACITY`.
    pub(super) fn from_parts(
        link: &[u8],
        header: &[u8],
        tcp_at: usize,
        opaque: Option<OpaqueReason>,
        payload: Payload,
    ) -> Packet {
        let mut packet = Packet::bare(payload);
        packet.header_len = header.len() as u8;
        packet.tcp_at = tcp_at as u8;
        packet.opaque = opaque;
        packet.header[..header.len()].copy_from_slice(header);
        packet.set_link(link);
        packet
    }
}

/// An opaque packet of no bytes.
impl Default for Packet {
    fn default() -> Packet {
        Packet::from_parts(&[], &[], 0, Some(OpaqueReason::NotIp), Payload::Length(0))
    }
}

impl From<Buffer> for Packet {
    /// An opaque packet of these bytes, for data that is not IP.
    fn from(bytes: Buffer) -> Packet {
        Packet::from_parts(&[], &[], 0, Some(OpaqueReason::NotIp), bytes.into())
    }
}

struct Found {
    /// Number of bytes that belong to the packet.
    ip_len: usize,
    headers: Result<Headers, OpaqueReason>,
}

struct Headers {
    tcp_at: usize,
    /// IP and TCP headers together.
    len: usize,
}

fn inspect(ip: &[u8]) -> Found {
    let opaque = |reason| Found { ip_len: ip.len(), headers: Err(reason) };
    let stated = match ip.first().map(|first| first >> 4) {
        Some(4) => ipv4_len(ip),
        Some(6) => ipv6_len(ip),
        _ => Err(OpaqueReason::NotIp),
    };
    match stated {
        Err(reason) => opaque(reason),
        Ok(ip_len) if ip_len > ip.len() => opaque(OpaqueReason::Malformed),
        Ok(ip_len) => match tcp_headers(&ip[..ip_len]) {
            // A malformed packet is forwarded unchanged, with its padding.
            Err(OpaqueReason::Malformed) => opaque(OpaqueReason::Malformed),
            headers => Found { ip_len, headers },
        },
    }
}

/// The total length in an IPv4 header.
fn ipv4_len(ip: &[u8]) -> Result<usize, OpaqueReason> {
    let header = Ipv4HeaderSlice::from_slice(ip).map_err(|_| OpaqueReason::Malformed)?;
    let total_len = usize::from(header.total_len());
    // Linux writes zero if a super-packet is longer than the field allows.
    if total_len == 0 && ip.len() > usize::from(u16::MAX) {
        return Err(OpaqueReason::Jumbogram);
    }
    if total_len < header.slice().len() { Err(OpaqueReason::Malformed) } else { Ok(total_len) }
}

/// The total length by an IPv6 header.
fn ipv6_len(ip: &[u8]) -> Result<usize, OpaqueReason> {
    let header = Ipv6HeaderSlice::from_slice(ip).map_err(|_| OpaqueReason::Malformed)?;
    let payload_len = usize::from(header.payload_length());
    // RFC 2675, Section 2: zero, with the length in a hop-by-hop option. Newer Linux omits the option.
    let jumbo = header.next_header() == IpNumber::IPV6_HEADER_HOP_BY_HOP || ip.len() > usize::from(u16::MAX);
    if payload_len == 0 && jumbo {
        return Err(OpaqueReason::Jumbogram);
    }
    Ok(header.slice().len() + payload_len)
}

/// Finds the TCP header in a packet cut to the length in its IP header.
fn tcp_headers(ip: &[u8]) -> Result<Headers, OpaqueReason> {
    let tcp_at = if ip[0] >> 4 == 4 { ipv4_tcp_at(ip)? } else { ipv6_tcp_at(ip)? };
    let tcp = TcpHeaderSlice::from_slice(&ip[tcp_at..]).map_err(|_| OpaqueReason::Malformed)?;
    let len = tcp_at + tcp.slice().len();
    if len > HEADER_CAPACITY { Err(OpaqueReason::HeadersTooLong) } else { Ok(Headers { tcp_at, len }) }
}

fn ipv4_tcp_at(ip: &[u8]) -> Result<usize, OpaqueReason> {
    let header = Ipv4HeaderSlice::from_slice(ip).map_err(|_| OpaqueReason::Malformed)?;
    if header.is_fragmenting_payload() {
        Err(OpaqueReason::Fragment)
    } else if header.protocol() != IpNumber::TCP {
        Err(OpaqueReason::NotTcp)
    } else {
        Ok(header.slice().len())
    }
}

/// Skips the extension headers. Each is at least 8 bytes long, so the loop ends.
fn ipv6_tcp_at(ip: &[u8]) -> Result<usize, OpaqueReason> {
    let header = Ipv6HeaderSlice::from_slice(ip).map_err(|_| OpaqueReason::Malformed)?;
    let mut next = header.next_header();
    let mut at = header.slice().len();
    loop {
        match next {
            IpNumber::TCP => return Ok(at),
            IpNumber::IPV6_FRAGMENTATION_HEADER => return Err(OpaqueReason::Fragment),
            IpNumber::IPV6_HEADER_HOP_BY_HOP
            | IpNumber::IPV6_ROUTE_HEADER
            | IpNumber::IPV6_DESTINATION_OPTIONS => {}
            _ => return Err(OpaqueReason::NotTcp),
        }
        let extension = Ipv6RawExtHeaderSlice::from_slice(&ip[at..]).map_err(|_| OpaqueReason::Malformed)?;
        // RFC 8200, Section 8.1: checksum and connection belong to the final destination. The header has it only when
        // no segments are left.
        let segments_left = extension.payload().get(1).copied().unwrap_or(0);
        if next == IpNumber::IPV6_ROUTE_HEADER && segments_left > 0 {
            return Err(OpaqueReason::NotTcp);
        }
        next = extension.next_header();
        at += extension.slice().len();
    }
}
