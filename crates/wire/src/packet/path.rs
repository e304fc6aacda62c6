//! Header fields of a packet's path: link header, traffic class, flow label, hop limit. For packets that stand in for
//! others.

use super::{LINK_CAPACITY, Packet, u16_at};

/// Path fields taken from one packet, for others on the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PathMarks {
    link: [u8; LINK_CAPACITY],
    link_len: u8,
    /// Without the ECN field, which belongs to the ends of a connection.
    dscp: u8,
    /// Zero in IPv4.
    flow_label: u32,
    hop_limit: u8,
}

impl PathMarks {
    /// The path of an answer, with exchanged Ethernet addresses.
    #[must_use]
    pub fn reversed(mut self) -> PathMarks {
        if usize::from(self.link_len) >= 12 {
            self.link[..12].rotate_left(6);
        }
        PathMarks { hop_limit: ANSWER_HOPS, ..self }
    }
}

impl Packet {
    /// The path fields of this packet. `None` if [`addresses`](Self::addresses) is.
    pub fn path_marks(&self) -> Option<PathMarks> {
        self.addresses()?;
        let header = self.header();
        let (dscp, flow_label, hop_limit) = match *header.first_chunk::<9>()? {
            [a, b, c, d, .., hop_limit, _] if a >> 4 == 6 => {
                ((a << 4 | b >> 4) & DSCP, u32::from_be_bytes([0, b & 0x0f, c, d]), hop_limit)
            }
            [_, tos, .., ttl] => (tos & DSCP, 0, ttl),
        };
        Some(PathMarks { link: self.link, link_len: self.link_len, dscp, flow_label, hop_limit })
    }

    /// Sets the path fields of this packet. `id` is the IPv4 identification, which distinguishes the segments of a
    /// super-packet. Does nothing if [`addresses`](Self::addresses) is `None`.
    pub fn set_path_marks(&mut self, marks: &PathMarks, id: u16) {
        let Some((src, _)) = self.addresses() else { return };
        (self.link, self.link_len) = (marks.link, marks.link_len);
        if src.is_ipv6() {
            let class = self.header[0] << 4 & 0xf0 | self.header[1] >> 4;
            let class = class & !DSCP | marks.dscp;
            let word = 6 << 28 | u32::from(class) << 20 | marks.flow_label & 0x000f_ffff;
            self.header[..4].copy_from_slice(&word.to_be_bytes());
            self.header[7] = marks.hop_limit;
            return;
        }
        let tos = self.header[1] & !DSCP | marks.dscp;
        self.set_ipv4_word(0, u16::from_be_bytes([self.header[0], tos]));
        self.set_ipv4_word(4, id);
        self.set_ipv4_word(8, u16_at(&self.header, 8) & 0x00ff | u16::from(marks.hop_limit) << 8);
    }
}

/// Hop limit of a packet that originates here (RFC 1700).
const ANSWER_HOPS: u8 = 64;
/// RFC 2474, Section 3.
const DSCP: u8 = 0xfc;

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use super::*;
    use crate::{BufferPool, Ecn, FlowKey, Payload, TcpRepr};

    fn packet(from: &str, to: &str) -> Packet {
        let key = FlowKey::new(from.parse::<SocketAddr>().unwrap(), to.parse().unwrap());
        Packet::build_tcp(key, &TcpRepr::default(), Payload::from(alloc::vec![7; 100]))
    }

    #[test]
    fn a_packet_that_stands_in_for_another_goes_its_way() {
        for (from, to) in [("10.0.0.1:80", "10.0.0.2:4000"), ("[2001:db8::1]:80", "[2001:db8::2]:4000")] {
            let mut bytes = packet(from, to).to_vec();
            if bytes[0] >> 4 == 6 {
                bytes[..4].copy_from_slice(&(6u32 << 28 | 0xb9 << 20 | 0x12345).to_be_bytes());
                bytes[7] = 37;
            } else {
                (bytes[1], bytes[8]) = (0xb9, 37);
            }
            let theirs = Packet::parse(&[1; 14], &bytes, &mut BufferPool::new(1 << 16)).unwrap();
            let mut ours = packet(from, to);
            ours.set_path_marks(&theirs.path_marks().unwrap(), 99);
            assert_eq!(ours.path_marks(), theirs.path_marks());
            // The other packet is ECT(1), which is not copied.
            assert_eq!((ours.ecn(), ours.link()), (Some(Ecn::NotEct), &[1; 14][..]));
            let again = ours.to_vec();
            assert_eq!(
                crate::checksum::fold(crate::checksum::sum(&again[..20])) == 0xffff,
                again[0] >> 4 == 4
            );
            let parsed = Packet::parse(&[], &again, &mut BufferPool::new(1 << 16)).unwrap();
            assert_eq!(parsed.flow_key(), ours.flow_key());
            let mut answer = packet(to, from);
            let marks = Packet { link: core::array::from_fn(|n| n as u8), ..ours }.path_marks().unwrap();
            answer.set_path_marks(&marks.reversed(), 0);
            assert_eq!(answer.link(), [6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 12, 13]);
        }
    }
}
