//! Packets that neither end has sent: forged in the name of an end, altered in flight, or sent by a router.

use paceline_tcp::State;
use paceline_wire::{Flags, Packet, Payload, PortId, TcpOptionsRepr, TcpRepr};

use super::{Middle, World, bytes_of, key};

impl<M: Middle> World<'_, M> {
    /// Forges a segment of `side` with numbers near its own. Its payload is what the side has written there. This tests
    /// forged numbers, not forged data.
    pub(super) fn forge(&mut self, side: usize) {
        self.is_honest = false;
        let one = &self.sides[side];
        let (base, first, written, clock) = (one.last, one.first, one.written, one.clock);
        let choices = &mut self.choices;
        let (seq, ack) = (base.0.add(choices.offset()), base.1.add(choices.offset()));
        let flags = match choices.byte() {
            bits if bits & 0xc0 == 0 => Flags::ACK,
            bits => Flags::from_bits_truncate(u16::from(bits & 0x3f)),
        };
        let options = TcpOptionsRepr {
            timestamps: (choices.byte() & 1 == 0).then(|| (clock.wrapping_add(choices.offset()), 0)),
            sack_blocks: (choices.byte() & 3 == 3)
                .then(|| (ack.add(choices.offset()), ack.add(choices.offset())))
                .into_iter()
                .collect(),
            ..TcpOptionsRepr::default()
        };
        let window = choices.word();
        let len = usize::from(choices.byte()) * 8;
        let at = seq.add(u32::from(flags.contains(Flags::SYN)));
        let position = first.map(|first| u64::from(at.0.wrapping_sub(first.0).wrapping_sub(1)));
        let payload = match position {
            Some(position) if position + len as u64 <= written => bytes_of(side, position, len),
            _ => Payload::Length(0),
        };
        let repr = TcpRepr { seq, ack, flags, window, options, ..TcpRepr::default() };
        let mut packet = Packet::build_tcp(key(side), &repr, payload);
        packet.complete_checksum();
        self.note_forged(side, &packet);
        self.middle.handle_packet(self.now, PortId(side as u8), packet);
    }

    /// Changes a few header bytes of a packet that `side` has sent.
    pub(super) fn forge_raw(&mut self, side: usize) {
        self.is_honest = false;
        let Some(packet) = self.sides[side].out.front() else { return };
        let (mut bytes, headers) = (packet.to_vec(), packet.header().len());
        for _ in 0..1 + self.choices.byte() % 4 {
            let at = usize::from(self.choices.byte()) % headers;
            bytes[at] = self.choices.byte();
        }
        bytes.truncate(headers);
        let Some(packet) = Packet::parse(&[], &bytes, &mut self.pool) else { return };
        // A forged segment that is too long would carry bytes of no stream.
        if packet.payload().is_empty() {
            self.note_forged(side, &packet);
            self.middle.handle_packet(self.now, PortId(side as u8), packet);
        }
    }

    fn note_forged(&mut self, side: usize, packet: &Packet) {
        let Some(tcp) = packet.tcp() else { return };
        // A forged answer to a SYN with the right acknowledgement determines where the stream begins (RFC 9293, Section
        // 3.10.7.3).
        let says_begin = tcp.flags().contains(Flags::SYN) && Some(tcp.seq()) != self.sides[side].first;
        let state = self.sides[1 - side].connection().map(|connection| connection.state());
        self.is_misled[1 - side] |=
            says_begin && matches!(state, None | Some(State::SynSent | State::SynReceived));
        self.forged_acks[1 - side].insert(tcp.ack().0);
        self.sides[side].sent.note(tcp.seq(), tcp.end_seq());
    }

    /// Forges a message of a router between the middle and `side`: a packet was too big, or the destination is
    /// unreachable.
    pub(super) fn forge_icmp(&mut self, side: usize) {
        // An altered packet may be shorter than a router's quotation.
        let Some(quoted) = self.sides[side].into.front().map(Packet::to_vec).filter(|ip| ip.len() >= QUOTED)
        else {
            return;
        };
        let mut ip = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 9, 9, 10, 0, 1 - side as u8, 1];
        let code = if self.choices.byte() & 1 == 0 { 4 } else { 1 };
        let mtu = self.choices.word().to_be_bytes();
        ip.extend([3, code, 0, 0, 0, 0, mtu[0], mtu[1]]);
        ip.extend(&quoted[..QUOTED]);
        let Some(message) = Packet::parse(&[], &ip, &mut self.pool) else { return };
        self.middle.handle_packet(self.now, PortId(side as u8), message);
    }
}

/// Length of the IPv4 header and eight bytes (RFC 792).
const QUOTED: usize = 28;
