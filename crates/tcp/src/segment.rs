//! A received segment. Its options are read in one pass.

use paceline_wire::{Ecn, Flags, Packet, Seq};

/// The largest window scale shift (RFC 7323, Section 2.3).
pub(crate) const SHIFT_MAX: u8 = 14;

/// The fields of a segment that a connection needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Incoming {
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) len: u32,
    /// The longest payload of a packet on the wire, if several packets came as one.
    pub(crate) wire_len: u32,
    /// The ECN field of the IP header.
    pub(crate) ecn: Ecn,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) mss: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    sacks: [(Seq, Seq); 4],
    sack_count: u8,
}

impl Incoming {
    /// Reads the header. `None` for an opaque packet.
    pub(crate) fn parse(packet: &Packet) -> Option<Incoming> {
        let mut incoming = Incoming::default();
        incoming.read(packet).then_some(incoming)
    }

    /// As [`parse`](Self::parse), into a default value. It runs for every packet, and a copy would double its cost.
    #[inline(always)]
    pub(crate) fn read(&mut self, packet: &Packet) -> bool {
        let Some(tcp) = packet.tcp() else { return false };
        self.seq = tcp.seq();
        self.ack = tcp.ack();
        self.flags = tcp.flags();
        self.window = tcp.window();
        self.len = tcp.payload_len() as u32;
        self.wire_len = packet.gso_size().map_or(u32::MAX, u32::from);
        self.ecn = tcp.ecn();
        self.timestamps = only_timestamps(tcp.options());
        if self.timestamps.is_none() {
            self.read_options(tcp.options());
        }
        true
    }

    /// SACK blocks in wire order.
    pub(crate) fn sacks(&self) -> &[(Seq, Seq)] {
        &self.sacks[..usize::from(self.sack_count)]
    }

    /// True if the flag is set.
    pub(crate) fn has(&self, flag: Flags) -> bool {
        self.flags.contains(flag)
    }

    /// The number of sequence numbers that it takes.
    pub(crate) fn seq_len(&self) -> u32 {
        self.len + u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN))
    }

    /// Reads the options. A separate function, because nearly all segments have only timestamps.
    #[inline(never)]
    fn read_options(&mut self, mut bytes: &[u8]) {
        let syn = self.has(Flags::SYN);
        while let [kind, rest @ ..] = bytes {
            match kind {
                0 => return,
                1 => {
                    bytes = rest;
                    continue;
                }
                _ => {}
            }
            let Some(&len) = rest.first() else { return };
            let Some(data) = bytes.get(2..usize::from(len)) else { return };
            match (kind, data) {
                (2, &[a, b]) if syn => self.mss = Some(u16::from_be_bytes([a, b])),
                (3, &[shift]) if syn => self.window_scale = Some(shift.min(SHIFT_MAX)),
                (4, []) if syn => self.sack_permitted = true,
                (5, blocks) => self.read_sacks(blocks),
                (8, &[a, b, c, d, e, f, g, h]) => {
                    self.timestamps =
                        Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
                }
                _ => {}
            }
            bytes = bytes.get(usize::from(len)..).unwrap_or_default();
        }
    }

    fn read_sacks(&mut self, blocks: &[u8]) {
        self.sack_count = 0;
        for block in blocks.chunks_exact(8).take(4) {
            let word =
                |at: usize| Seq(u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]));
            self.sacks[usize::from(self.sack_count)] = (word(0), word(4));
            self.sack_count += 1;
        }
    }
}

/// Reads the options of nearly all segments: only timestamps (RFC 7323, Appendix A).
#[inline]
fn only_timestamps(options: &[u8]) -> Option<(u32, u32)> {
    let options: &[u8; 12] = options.try_into().ok()?;
    // One word at a time.
    let word =
        |at: usize| u32::from_be_bytes([options[at], options[at + 1], options[at + 2], options[at + 3]]);
    (word(0) == 0x0101_080a).then(|| (word(4), word(8)))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::net::{Ipv4Addr, SocketAddr};

    use paceline_wire::{FlowKey, Payload, SackBlocks, TcpOptionsRepr, TcpRepr};
    use proptest::prelude::*;

    use super::*;

    fn key() -> FlowKey {
        let [a, b] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 80)));
        FlowKey::new(a, b)
    }

    #[test]
    fn options_are_read_as_they_were_written() {
        let mut sacks = SackBlocks::default();
        sacks.push(Seq(5), Seq(9));
        sacks.push(Seq(20), Seq(30));
        let options =
            TcpOptionsRepr { timestamps: Some((7, 8)), sack_blocks: sacks, ..TcpOptionsRepr::default() };
        let repr = TcpRepr { options, flags: Flags::ACK, ..TcpRepr::default() };
        let incoming = Incoming::parse(&Packet::build_tcp(key(), &repr, Payload::Length(3))).unwrap();
        assert_eq!(incoming.timestamps, Some((7, 8)));
        assert_eq!(incoming.sacks(), sacks.as_slice());
        assert_eq!(incoming.seq_len(), 3);
    }

    proptest! {
        /// The reader accepts any bytes.
        #[test]
        fn any_option_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut incoming =
                Incoming::parse(&Packet::build_tcp(key(), &TcpRepr::default(), Payload::Length(0))).unwrap();
            incoming.read_options(&bytes);
            prop_assert!(incoming.sacks().len() <= 4);
        }
    }
}
