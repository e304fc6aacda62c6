//! The work for a packet, in looks at kept data: the same for the first and the ten thousandth, whoever sends it.

use paceline_wire::{
    Duration, Flags, FlowKey, Instant, Node, Packet, Payload, PortId, Seq, TcpOptionsRepr, TcpRepr,
};

use crate::ids::EntryId;
use crate::{Gateway, GatewayConfig, RADIO, WAN};

/// The most looks for a packet that touches one piece of the stream. They include those for packets that leave by it,
/// and for a probe, a repair or a timeout.
const LOOKS_MAX: u64 = 40;

struct Counted {
    gateway: Gateway,
    now: Instant,
    id: EntryId,
    /// The most looks for one packet since the last question.
    most: u64,
}

fn key() -> FlowKey {
    FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: "10.0.1.1:80".parse().unwrap() }
}

impl Counted {
    /// A flow whose client shows a window of a gigabyte and acknowledges nothing by itself.
    fn open() -> Counted {
        let now = Instant::ZERO + Duration::from_secs(1);
        let mut counted =
            Counted { gateway: Gateway::new(GatewayConfig::default()), now, id: EntryId::default(), most: 0 };
        let packets = [(RADIO, Flags::SYN), (WAN, Flags::SYN | Flags::ACK), (RADIO, Flags::ACK)];
        for (port, flags) in packets {
            counted.gateway.handle_packet(now, port, packet(port, 0, 1, flags, 0, &[]));
        }
        counted.id = counted.gateway.table.find(&key()).unwrap();
        counted
    }

    fn looks(&self) -> u64 {
        self.gateway.table.flow(self.id).unwrap().buffer.looks.get()
    }

    fn tell(&mut self, port: PortId, packet: Packet) {
        let before = self.looks();
        self.gateway.handle_packet(self.now, port, packet);
        let mut packets = 1;
        while self.gateway.poll_transmit(self.now).is_some() {
            packets += 1;
        }
        self.gateway.handle_timeout(self.now);
        self.most = self.most.max((self.looks() - before) / packets);
        self.now += Duration::from_micros(50);
    }

    fn data(&mut self, start: u32, len: u32) {
        self.tell(WAN, packet(WAN, 1 + start, 1, Flags::ACK, len, &[]));
    }

    fn ack(&mut self, position: u32, blocks: &[(u32, u32)]) {
        self.tell(RADIO, packet(RADIO, 1, 1 + position, Flags::ACK, 0, blocks));
    }

    /// Returns the most looks since the last question.
    fn most(&mut self) -> u64 {
        core::mem::take(&mut self.most)
    }
}

fn packet(port: PortId, seq: u32, ack: u32, flags: Flags, len: u32, blocks: &[(u32, u32)]) -> Packet {
    let is_syn = flags.contains(Flags::SYN);
    let mut options = TcpOptionsRepr {
        mss: is_syn.then_some(1_460),
        window_scale: is_syn.then_some(14),
        sack_permitted: is_syn,
        ..Default::default()
    };
    for &(start, end) in blocks {
        let _ = options.sack_blocks.push(Seq(1 + start), Seq(1 + end));
    }
    let repr = TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window: 60_000, options, ..Default::default() };
    let key = if port == WAN { key().reversed() } else { key() };
    Packet::build_tcp(key, &repr, Payload::Length(len))
}

/// Kept data grows to ten thousand pieces. Each kind of packet is tried at both ends and in the middle.
#[test]
fn a_packet_is_as_much_work_whatever_is_kept() {
    for gap in [0, 1] {
        let mut counted = Counted::open();
        let mut firsts = 0;
        for n in 0..10_000 {
            counted.data(n * (1 + gap), 1);
            if n == 100 {
                firsts = counted.most();
            }
        }
        let sent = 10_000 * (1 + gap);
        let lasts = counted.most();
        assert!(lasts <= firsts.max(LOOKS_MAX), "{lasts} looks, {firsts} for the first hundred");
        for place in (0..sent).step_by(97) {
            // The same data again, and then data for the gap beside it.
            counted.data(place, 1);
            counted.data(place + gap, 1);
        }
        let again = counted.most();
        for n in 0..1_000 {
            // Blocks anywhere, of everything, and of nothing.
            let at = n * 7_919 % sent;
            counted.ack(0, &[(at, at + 1), (at / 2, sent), (sent, sent + n)]);
        }
        let lies = counted.most();
        for n in 0..500 {
            counted.ack(n, &[]);
        }
        let acks = counted.most();
        assert!([again, lies, acks].into_iter().all(|most| most <= LOOKS_MAX), "{again}, {lies}, {acks}");
    }
}

/// A long packet that fills the gaps between many pieces costs no more for each packet that then leaves. Nor does a
/// copy of it.
#[test]
fn a_long_packet_is_as_much_work_as_the_packets_that_it_brings() {
    let mut counted = Counted::open();
    (0..2_000).for_each(|n| counted.data(2 * n, 1));
    counted.most();
    for _ in 0..2 {
        counted.data(0, 1_400);
    }
    let most = counted.most();
    assert!(most <= 1_400 + LOOKS_MAX, "{most}");
}
