//! A gateway and packets of a few flows, whose ends do what no end does. Shared by the fuzz target `gateway` and by the
//! replay of its corpus.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{
    BufferPool, Duration, Flags, FlowKey, Instant, Node, Packet, Payload, PortId, Seq, TcpOptionsRepr,
    TcpRepr,
};

use super::exercise::{check, config};
use super::world::Choices;

/// Runs a gateway. `data` has its configuration, then packets and time. Everything that leaves was sent by somebody:
/// the bytes at their numbers, the acknowledgements, and, to the bit, whatever is not TCP.
pub fn gateway(data: &[u8]) {
    let mut choices = Choices(data);
    let config = config(&mut choices, FlowMode::Transparent);
    let mut watch = Watch::new(config);
    for _ in 0..STEPS_MAX {
        if choices.0.is_empty() {
            break;
        }
        watch.step(&mut choices);
    }
}

/// What one end of a flow has sent.
#[derive(Default)]
struct Said {
    acks: HashSet<u32>,
    /// Numbers whose bytes were sent.
    sent: Vec<Range<u32>>,
    /// Bytes of bent packets, by their number.
    bent: HashMap<u32, u8>,
    next: u32,
}

impl Said {
    /// Returns how many numbers from `position` on were sent.
    fn sent_from(&self, position: u32) -> u32 {
        let left = |range: &Range<u32>| {
            range.end.wrapping_sub(range.start).checked_sub(position.wrapping_sub(range.start))
        };
        self.sent.iter().filter_map(left).max().unwrap_or(0)
    }
}

fn byte_of(position: u32) -> u8 {
    (position.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

struct Watch {
    gateway: Gateway,
    config: GatewayConfig,
    now: Instant,
    said: HashMap<FlowKey, Said>,
    /// Packets that are not TCP or cannot be understood.
    opaque: HashSet<Vec<u8>>,
    pool: BufferPool,
}

fn key(flow: u8, from_client: bool) -> FlowKey {
    let port = 40_000 + u16::from(flow & 3);
    let [client, server] = match flow & 4 {
        0 => [1, 0].map(|net| (Ipv4Addr::new(10, 0, net, 1)).into()),
        _ => [1, 0].map(|net| Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, 1).into()),
    };
    let key = FlowKey::new(SocketAddr::new(client, port), SocketAddr::new(server, 443));
    if from_client { key } else { key.reversed() }
}

impl Watch {
    fn new(config: GatewayConfig) -> Watch {
        Watch {
            gateway: Gateway::new(config.clone()),
            config,
            now: Instant::ZERO + Duration::from_secs(100),
            said: HashMap::new(),
            opaque: HashSet::new(),
            pool: BufferPool::new(1 << 22),
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let what = choices.byte();
        match what >> 5 {
            0 => {
                let ms = u64::from(choices.byte());
                self.now += Duration::from_millis(if ms < 200 { ms } else { (ms - 199) * 500 });
                self.gateway.handle_timeout(self.now);
            }
            1 => self.open(what),
            2 => self.bent(what, choices),
            _ => self.segment(what, choices),
        }
        self.leave();
    }

    /// Makes a handshake that both ends mean.
    fn open(&mut self, what: u8) {
        let options = TcpOptionsRepr {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: (what & 8 == 0).then_some((1, 0)),
            ..TcpOptionsRepr::default()
        };
        for (from_client, ack, flags) in
            [(true, 0, Flags::SYN), (false, 1, Flags::SYN | Flags::ACK), (true, 1, Flags::ACK)]
        {
            let seq = u32::from(!flags.contains(Flags::SYN));
            let options = if seq == 0 {
                options
            } else {
                TcpOptionsRepr { timestamps: options.timestamps, ..TcpOptionsRepr::default() }
            };
            let repr = TcpRepr {
                seq: Seq(seq),
                ack: Seq(ack),
                flags,
                window: 60_000,
                options,
                ..TcpRepr::default()
            };
            self.send(key(what, from_client), from_client, &repr, 0, 0);
        }
    }

    /// Sends one segment with numbers near those that its end has reached, or anywhere.
    fn segment(&mut self, what: u8, choices: &mut Choices<'_>) {
        let from_client = what & 16 == 16;
        let key = key(what, from_client);
        let (own, other) = (self.next_of(&key), self.next_of(&key.reversed()));
        let seq = own.wrapping_add(choices.offset());
        let ack = other.wrapping_add(choices.offset());
        let flags = match choices.byte() {
            bits if bits < 160 => Flags::ACK,
            bits => Flags::from_bits_truncate(u16::from(bits & 0x3f)),
        };
        let options = TcpOptionsRepr {
            timestamps: (what & 8 == 0).then(|| (choices.word().into(), 0)),
            sack_blocks: (what & 32 == 32)
                .then(|| (Seq(ack.wrapping_add(choices.offset())), Seq(ack.wrapping_add(choices.offset()))))
                .into_iter()
                .collect(),
            ..TcpOptionsRepr::default()
        };
        let repr = TcpRepr {
            seq: Seq(seq),
            ack: Seq(ack),
            flags,
            window: choices.word(),
            options,
            ..TcpRepr::default()
        };
        let len = usize::from(choices.byte()) * 2;
        self.send(key, from_client, &repr, len, what);
    }

    fn next_of(&self, key: &FlowKey) -> u32 {
        self.said.get(key).map_or(1, |said| said.next)
    }

    /// Sends a segment with some bytes changed, so that it may be anything.
    fn bent(&mut self, what: u8, choices: &mut Choices<'_>) {
        let from_client = what & 16 == 16;
        let repr = TcpRepr {
            seq: Seq(self.next_of(&key(what, from_client))),
            flags: Flags::ACK,
            window: 500,
            ..TcpRepr::default()
        };
        let mut packet = Packet::build_tcp(key(what, from_client), &repr, Payload::from(vec![what; 40]));
        packet.complete_checksum();
        let mut ip = packet.to_vec();
        for _ in 0..1 + choices.byte() % 6 {
            let at = usize::from(choices.byte()) % ip.len();
            ip[at] = choices.byte();
        }
        ip.truncate(ip.len() - usize::from(choices.byte() % 64));
        let Some(packet) = Packet::parse(&[], &ip, &mut self.pool) else { return };
        self.note(&packet);
        self.gateway.handle_packet(self.now, if from_client { RADIO } else { WAN }, packet);
    }

    /// Sends a packet whose bytes follow from their numbers, as with an honest end. `attacks` judges the cases in
    /// which they differ.
    fn send(&mut self, key: FlowKey, from_client: bool, repr: &TcpRepr, len: usize, what: u8) {
        let first = repr.seq.0.wrapping_add(u32::from(repr.flags.contains(Flags::SYN)));
        let bytes: Vec<u8> = (0..len as u32).map(|n| byte_of(first.wrapping_add(n))).collect();
        let mut packet = Packet::build_tcp(key, repr, bytes.into());
        if what & 64 == 64 {
            packet.set_gso_size(Some(500));
        } else {
            packet.complete_checksum();
        }
        self.note(&packet);
        self.gateway.handle_packet(self.now, if from_client { RADIO } else { WAN }, packet);
    }

    fn note(&mut self, packet: &Packet) {
        let (Some(tcp), Some(key)) = (packet.tcp(), packet.flow_key()) else {
            self.opaque.insert(packet.to_vec());
            return;
        };
        let said = self.said.entry(key).or_default();
        said.acks.insert(tcp.ack().0);
        said.next = tcp.end_seq().0;
        let first = tcp.seq().0.wrapping_add(u32::from(tcp.flags().contains(Flags::SYN)));
        said.sent.push(first..first.wrapping_add(packet.payload().len() as u32));
        for (n, &byte) in packet.payload().bytes().unwrap().iter().enumerate() {
            let position = first.wrapping_add(n as u32);
            if byte != byte_of(position) {
                said.bent.insert(position, byte);
            }
        }
    }

    fn leave(&mut self) {
        for n in 0.. {
            let Some((port, packet)) = self.gateway.poll_transmit(self.now) else { break };
            assert!(n < SENT_MAX, "it sends for ever");
            assert!(port == WAN || port == RADIO);
            self.judge(port, &packet);
        }
        check(&self.gateway, &self.config);
    }

    fn judge(&self, port: PortId, packet: &Packet) {
        let (Some(tcp), Some(key)) = (packet.tcp(), packet.flow_key()) else {
            assert!(self.opaque.contains(&packet.to_vec()), "nobody sent it, to port {port:?}");
            return;
        };
        let said = self.said.get(&key).unwrap_or_else(|| panic!("a flow that nobody has: {key:?}"));
        if tcp.flags().contains(Flags::ACK) {
            // It may also be a step towards one (flow/ack_steps.rs).
            let is_said = |ack: &u32| *ack == tcp.ack().0 || port == WAN && Seq(*ack).distance(tcp.ack()) > 0;
            assert!(said.acks.iter().any(is_said), "an acknowledgement that nobody sent: {:?}", tcp.ack());
        }
        let first = tcp.seq().0.wrapping_add(u32::from(tcp.flags().contains(Flags::SYN)));
        let mut sent = 0;
        for (n, byte) in packet.payload().bytes().unwrap().iter().enumerate() {
            let position = first.wrapping_add(n as u32);
            if sent == 0 {
                sent = said.sent_from(position);
            }
            let is_honest = *byte == byte_of(position) && sent > 0;
            sent = sent.saturating_sub(1);
            assert!(is_honest || said.bent.get(&position) == Some(byte), "at {position}, to port {port:?}");
        }
    }
}

const STEPS_MAX: usize = 64;
const SENT_MAX: usize = 10_000;
