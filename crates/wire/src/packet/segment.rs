//! Cutting packets: super-packets into segments, and parts for trimming and retransmission.

use core::iter::FusedIterator;
use core::ops::Range;

use super::{Checksum, Flags, Packet, Payload, u16_at};

impl Packet {
    /// A packet with the bytes `range` of this one's payload and the same options.
    ///
    /// Its sequence number is that of its first byte. FIN and PSH stay with the last byte, SYN and CWR with the first.
    /// URG stays if its pointer is still ahead. The IPv4 identification advances as if the super-packet were split. It
    /// remains a super-packet if it is longer than `gso_size`. A good checksum becomes partial, a wrong one stays
    /// wrong. A range that leaves the payload is cut. An opaque packet cannot be cut and is returned whole.
    #[must_use]
    pub fn slice_payload(&self, range: Range<usize>) -> Packet {
        let len = self.payload.len();
        let end = range.end.min(len);
        let start = range.start.min(end);
        if !self.is_tcp() || (start == 0 && end == len) {
            return self.clone();
        }
        self.cut(start..end, self.verify_checksum())
    }

    /// Replaces the payload by `payload`, another version of the same bytes with equal length. The checksum becomes
    /// partial.
    pub fn replace_payload(&mut self, payload: Payload) {
        if self.is_tcp() && payload.len() == self.payload.len() {
            self.payload = payload;
            self.make_partial();
        }
    }

    /// The segments of a super-packet over the same memory, or the packet itself if it is none.
    pub fn segments(self) -> Segments {
        let splits =
            self.is_tcp() && self.gso_size.is_some_and(|size| self.payload.len() > usize::from(size));
        // Verified once for all segments, because each check reads the whole payload.
        let good = !splits || self.verify_checksum();
        Segments { packet: Some(self), splits, good, at: 0 }
    }

    fn cut(&self, range: Range<usize>, good: bool) -> Packet {
        let mut part = self.clone();
        part.payload = self.payload.slice(range.clone());
        part.gso_size = self.gso_size.filter(|&size| part.payload.len() > usize::from(size));
        part.update_ip_len();
        if let Some(size) = self.gso_size {
            part.advance_ipv4_id(range.start / usize::from(size));
        }
        let is_last = range.end == self.payload.len();
        part.cut_controls(range.start, is_last);
        match self.checksum {
            Checksum::Partial => part.change_tcp_len(self.tcp_len()),
            Checksum::Full if !good => part.make_wrong(),
            Checksum::Full | Checksum::Verified => part.make_partial(),
        }
        part
    }

    fn advance_ipv4_id(&mut self, segments: usize) {
        if self.header[0] >> 4 == 4 {
            let id = u16_at(&self.header, 4).wrapping_add(segments as u16);
            self.set_ipv4_word(4, id);
        }
    }

    /// Sets sequence number, flags and urgent pointer for the part from `start` on.
    fn cut_controls(&mut self, start: usize, is_last: bool) {
        let Some(mut tcp) = self.tcp_mut() else { return };
        let view = tcp.as_tcp();
        let (mut seq, mut flags, urgent) = (view.seq(), view.flags(), view.urgent_pointer());
        if !is_last {
            flags.remove(Flags::FIN | Flags::PSH);
        }
        if start > 0 {
            // The SYN comes before the data (RFC 9293, Section 3.4).
            seq = seq.add(u32::from(flags.contains(Flags::SYN))).add(start as u32);
            flags.remove(Flags::SYN | Flags::CWR);
            if flags.contains(Flags::URG) {
                let ahead = usize::from(urgent).checked_sub(start).filter(|&ahead| ahead > 0);
                flags.set(Flags::URG, ahead.is_some());
                tcp.set_urgent_pointer(ahead.map_or(0, |ahead| ahead as u16));
            }
        }
        tcp.set_seq(seq);
        tcp.set_flags(flags);
    }

    /// Gives a part of a damaged packet a wrong checksum, so that the receiver drops it.
    fn make_wrong(&mut self) {
        self.make_partial();
        self.complete_checksum();
        self.set_checksum_field(self.checksum_field() ^ 1);
    }
}

/// The segments of a packet, in order: see [`Packet::segments`].
#[derive(Clone, Debug)]
pub struct Segments {
    packet: Option<Packet>,
    splits: bool,
    good: bool,
    at: usize,
}

impl Iterator for Segments {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        let packet = self.packet.as_ref()?;
        if !self.splits {
            return self.packet.take();
        }
        let size = usize::from(packet.gso_size.unwrap_or(u16::MAX));
        let start = self.at;
        self.at = (start + size).min(packet.payload.len());
        let segment = packet.cut(start..self.at, self.good);
        if self.at == packet.payload.len() {
            self.packet = None;
        }
        Some(segment)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.packet {
            None => 0,
            Some(packet) if self.splits => {
                (packet.payload.len() - self.at).div_ceil(usize::from(packet.gso_size.unwrap_or(u16::MAX)))
            }
            Some(_) => 1,
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Segments {}

impl FusedIterator for Segments {}
