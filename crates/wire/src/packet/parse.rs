//! From bytes to a [`Packet`].

use core::ops::Range;

use etherparse::{IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice, TcpHeaderSlice};

use super::{HEADER_CAPACITY, OpaqueReason, Packet, Payload};
use crate::buffer::{Buffer, BufferPool};

impl Packet {
    /// The IP packet `ip` behind the link header `link`. What cannot be understood becomes an opaque packet.
    ///
    /// Bytes beyond the length that the IP header states (Ethernet padding) are left out.
    /// `None` only when the pool is exhausted.
    pub fn parse(link: &[u8], ip: &[u8], pool: &mut BufferPool) -> Option<Packet> {
        let (mut packet, payload) = Packet::parse_headers(link, ip);
        packet.set_payload(pool.copy_from(&ip[payload])?);
        Some(packet)
    }

    /// What [`parse`](Self::parse) makes of `ip`, as yet without payload, and where in `ip` the payload is: for callers that have
    /// another way than to copy it.
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

    /// Gives a packet of [`parse_headers`](Self::parse_headers) its payload; the headers stay as they are.
    #[inline]
    pub fn set_payload(&mut self, payload: Buffer) {
        self.payload = payload.into();
    }

    /// `header` fits `HEADER_CAPACITY`; the callers have seen to that.
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
    /// An opaque packet of these bytes, for what is not IP.
    fn from(bytes: Buffer) -> Packet {
        Packet::from_parts(&[], &[], 0, Some(OpaqueReason::NotIp), bytes.into())
    }
}

struct Found {
    /// How many of the bytes belong to the packet.
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
            // Pass on what is broken as it came, padding and all.
            Err(OpaqueReason::Malformed) => opaque(OpaqueReason::Malformed),
            headers => Found { ip_len, headers },
        },
    }
}

/// The total length that an IPv4 header states.
fn ipv4_len(ip: &[u8]) -> Result<usize, OpaqueReason> {
    let header = Ipv4HeaderSlice::from_slice(ip).map_err(|_| OpaqueReason::Malformed)?;
    let total_len = usize::from(header.total_len());
    // Linux writes zero when a super-packet is longer than the field can say.
    if total_len == 0 && ip.len() > usize::from(u16::MAX) {
        return Err(OpaqueReason::Jumbogram);
    }
    if total_len < header.slice().len() { Err(OpaqueReason::Malformed) } else { Ok(total_len) }
}

/// The total length that an IPv6 header states.
fn ipv6_len(ip: &[u8]) -> Result<usize, OpaqueReason> {
    let header = Ipv6HeaderSlice::from_slice(ip).map_err(|_| OpaqueReason::Malformed)?;
    let payload_len = usize::from(header.payload_length());
    // RFC 2675, Section 2: zero, and the length in a hop-by-hop option; newer Linux leaves the option out.
    let jumbo = header.next_header() == IpNumber::IPV6_HEADER_HOP_BY_HOP || ip.len() > usize::from(u16::MAX);
    if payload_len == 0 && jumbo {
        return Err(OpaqueReason::Jumbogram);
    }
    Ok(header.slice().len() + payload_len)
}

/// Finds the TCP header in a packet that is as long as its IP header states.
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

/// Steps over the extension headers. Each is at least 8 bytes long, so this ends.
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
        // RFC 8200, Section 8.1: the checksum and the connection belong to the final destination, which the
        // header names only when no segments are left.
        let segments_left = extension.payload().get(1).copied().unwrap_or(0);
        if next == IpNumber::IPV6_ROUTE_HEADER && segments_left > 0 {
            return Err(OpaqueReason::NotTcp);
        }
        next = extension.next_header();
        at += extension.slice().len();
    }
}
