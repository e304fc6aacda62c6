//! Converts between the bytes of a device and a [`Packet`]: link headers, VLAN tags, and the state of the checksum.

use std::ops::Range;

use paceline_wire::{BufferPool, Checksum, Flags, Packet, Payload};

use crate::virtio::{self, VirtioHeader};

/// A received frame, split at the IP header.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    virtio: VirtioHeader,
    link: LinkHeader,
    /// Offset of `ip` in the frame as the kernel counts it, without a tag that came beside the frame.
    ip_start: usize,
    ip: &'a [u8],
}

/// Reason why a frame is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// The frame is longer than any packet that a device should hand over (IPv6 jumbograms).
    TooLong,
    /// The frame is too short for its link header, or the virtio header contradicts it.
    Malformed,
    /// No memory is left for the payload.
    PoolExhausted,
}

/// A VLAN tag that the kernel took out of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VlanTag {
    pub(crate) tpid: u16,
    pub(crate) tci: u16,
}

impl<'a> Frame<'a> {
    /// Splits the bytes from a packet socket: virtio header, Ethernet frame.
    pub(crate) fn parse(bytes: &'a [u8], tag: Option<VlanTag>) -> Result<Self, FrameError> {
        let (virtio, frame) = split_virtio(bytes)?;
        let ip_start = link_len(frame).ok_or(FrameError::Malformed)?;
        let (link, ip) = frame.split_at(ip_start);
        let link = LinkHeader::new(link, tag).ok_or(FrameError::Malformed)?;
        Ok(Frame { virtio, link, ip_start, ip })
    }

    /// Splits the bytes from a TUN: virtio header, IP packet.
    pub(crate) fn parse_tun(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (virtio, ip) = split_virtio(bytes)?;
        Ok(Frame { virtio, link: LinkHeader::default(), ip_start: 0, ip })
    }

    /// Returns the packet, and copies its payload to the pool.
    pub(crate) fn to_packet(&self, pool: &mut BufferPool) -> Result<Packet, FrameError> {
        let (mut packet, payload) = self.headers()?;
        packet.set_payload(pool.copy_from(&self.ip[payload]).ok_or(FrameError::PoolExhausted)?);
        Ok(packet)
    }

    /// Returns the packet without its payload, and the payload's range, counted from the IP header.
    pub(crate) fn headers(&self) -> Result<(Packet, Range<usize>), FrameError> {
        let (mut packet, payload) = if self.link.is_ip() {
            Packet::parse_headers(self.link.bytes(), self.ip)
        } else {
            let mut packet = Packet::default();
            packet.set_link(self.link.bytes());
            (packet, 0..self.ip.len())
        };
        match packet.tcp_offset() {
            Some(tcp_offset) => self.describe_tcp(&mut packet, tcp_offset)?,
            None => packet.set_offload(self.offload(packet.header().len() + payload.len())?),
        }
        Ok((packet, payload))
    }

    /// Offset of the IP header in the bytes from which the frame was parsed.
    pub(crate) fn ip_at(&self) -> usize {
        virtio::HEADER_LEN + self.ip_start
    }

    fn describe_tcp(&self, packet: &mut Packet, tcp_offset: usize) -> Result<(), FrameError> {
        let virtio = &self.virtio;
        if virtio.needs_checksum() {
            let expected = (self.ip_start + tcp_offset, TCP_CHECKSUM_OFFSET);
            if (usize::from(virtio.csum_start), virtio.csum_offset) != expected {
                return Err(FrameError::Malformed);
            }
            packet.set_checksum(Checksum::Partial);
        } else if virtio.flags & virtio::DATA_VALID != 0 {
            packet.set_checksum(Checksum::Verified);
        }
        if virtio.is_tcp_gso() {
            packet.set_gso_size(Some(virtio.gso_size));
        }
        Ok(())
    }

    /// Returns the virtio header for sending an opaque packet of `len` bytes without padding. Its positions count
    /// from the network header.
    fn offload(&self, len: usize) -> Result<Option<[u8; virtio::HEADER_LEN]>, FrameError> {
        if !self.virtio.needs_checksum() && self.virtio.gso_type == virtio::GSO_NONE {
            return Ok(None);
        }
        let inside = |position: u16| {
            let position = usize::from(position).checked_sub(self.ip_start).filter(|&at| at <= len);
            position.map(|at| at as u16).ok_or(FrameError::Malformed)
        };
        let mut header = self.virtio;
        if header.needs_checksum() {
            header.csum_start = inside(header.csum_start)?;
        }
        header.header_len = inside(header.header_len.max(self.ip_start as u16))?;
        header.flags &= virtio::NEEDS_CSUM;
        Ok(Some(header.to_bytes()))
    }
}

/// Writes the virtio, link, network and transport headers of `packet` to `prefix`. Returns their length, and the
/// payload.
pub(crate) fn assemble<'a>(packet: &'a Packet, prefix: &mut [u8; PREFIX_MAX]) -> (usize, &'a [u8]) {
    let link = packet.link();
    let headers = packet.header();
    let link_end = virtio::HEADER_LEN + link.len();
    let end = link_end + headers.len();
    prefix[..virtio::HEADER_LEN].copy_from_slice(&virtio_of(packet).to_bytes());
    prefix[virtio::HEADER_LEN..link_end].copy_from_slice(link);
    prefix[link_end..end].copy_from_slice(headers);
    let payload = match packet.payload() {
        Payload::Bytes(bytes) => &bytes[..],
        Payload::Length(len) => &ZEROS[..(*len as usize).min(ZEROS.len())],
    };
    (end, payload)
}

/// Returns the virtio header with which to send `packet`.
fn virtio_of(packet: &Packet) -> VirtioHeader {
    let link_len = packet.link().len() as u16;
    let (Some(tcp), Some(tcp_offset)) = (packet.tcp(), packet.tcp_offset()) else {
        let offload = packet.offload().and_then(|bytes| VirtioHeader::parse(&bytes));
        return offload.map_or(VirtioHeader::default(), |header| header.moved_by(link_len));
    };
    if packet.checksum() != Checksum::Partial {
        return VirtioHeader::default();
    }
    let gso_type = match packet.gso_size() {
        None => virtio::GSO_NONE,
        Some(_) => {
            let family = if packet.is_ipv6() { virtio::GSO_TCPV6 } else { virtio::GSO_TCPV4 };
            let ecn = if tcp.flags().contains(Flags::CWR) { virtio::GSO_ECN } else { 0 };
            family | ecn
        }
    };
    VirtioHeader {
        flags: virtio::NEEDS_CSUM,
        gso_type,
        header_len: link_len + packet.header().len() as u16,
        gso_size: packet.gso_size().unwrap_or(0),
        csum_start: link_len + tcp_offset as u16,
        csum_offset: TCP_CHECKSUM_OFFSET,
    }
}

/// Offset of the checksum in a TCP header (RFC 9293, Section 3.1).
const TCP_CHECKSUM_OFFSET: u16 = 16;
/// Largest length of all headers of a packet: virtio, Ethernet with two tags, and the inline headers of a [`Packet`].
pub(crate) const PREFIX_MAX: usize = 256;
static ZEROS: [u8; 65_536] = [0; 65_536];

/// An Ethernet header with up to two VLAN tags.
#[derive(Debug, Default)]
struct LinkHeader {
    bytes: [u8; LINK_MAX],
    len: usize,
}

const ADDRESSES_LEN: usize = 12;
const ETHERNET_LEN: usize = 14;
const TAG_LEN: usize = 4;
const LINK_MAX: usize = ETHERNET_LEN + 2 * TAG_LEN;

impl LinkHeader {
    fn new(link: &[u8], tag: Option<VlanTag>) -> Option<Self> {
        let mut header = LinkHeader::default();
        let mut push = |part: &[u8]| {
            header.bytes.get_mut(header.len..header.len + part.len())?.copy_from_slice(part);
            header.len += part.len();
            Some(())
        };
        let (addresses, rest) = link.split_at_checked(ADDRESSES_LEN)?;
        push(addresses)?;
        if let Some(tag) = tag {
            push(&tag.tpid.to_be_bytes())?;
            push(&tag.tci.to_be_bytes())?;
        }
        push(rest)?;
        Some(header)
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// True for IPv4 and IPv6, and without a link header: a TUN carries nothing else.
    fn is_ip(&self) -> bool {
        match self.bytes().last_chunk() {
            Some(ethertype) => {
                matches!(i32::from(u16::from_be_bytes(*ethertype)), libc::ETH_P_IP | libc::ETH_P_IPV6)
            }
            None => true,
        }
    }
}

/// Length of the link header: 14 bytes, and 4 for a tag within the frame.
fn link_len(frame: &[u8]) -> Option<usize> {
    let ethertype = u16::from_be_bytes(*frame.get(ADDRESSES_LEN..)?.first_chunk()?);
    let is_tagged = matches!(i32::from(ethertype), libc::ETH_P_8021Q | libc::ETH_P_8021AD);
    let len = if is_tagged { ETHERNET_LEN + TAG_LEN } else { ETHERNET_LEN };
    (frame.len() >= len).then_some(len)
}

fn split_virtio(bytes: &[u8]) -> Result<(VirtioHeader, &[u8]), FrameError> {
    let header = VirtioHeader::parse(bytes).ok_or(FrameError::Malformed)?;
    Ok((header, &bytes[virtio::HEADER_LEN..]))
}

#[cfg(test)]
mod tests;
