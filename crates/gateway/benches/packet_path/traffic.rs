//! Downloads through a gateway in virtual time. Servers send as the window allows, and clients acknowledge.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{
    Duration, Flags, FlowKey, Instant, Node, Packet, Payload, PortId, SackBlocks, Seq, TcpOptionsRepr,
    TcpRepr,
};

/// Assignment of flows to subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)] // Each benchmark uses some.
pub(crate) enum Subscribers {
    /// Every flow has its own client.
    Many,
    /// All flows belong to one client.
    One,
}

/// One pair of client and server.
struct Host {
    key: FlowKey,
    /// Next sequence number of the server, and the right edge of the window that it was shown.
    next: u32,
    edge: u32,
    /// The client's newest timestamp.
    echo: u32,
    /// Data that the client has: all below `have`, and the ranges in `pieces`.
    have: u32,
    pieces: Vec<(u32, u32)>,
    /// First sequence numbers of the newest segments.
    recent: [u32; 8],
}

/// Flows of 11.6 Mbit/s each, for any number of flows, over a radio link of 50 ms.
pub(crate) struct Downloads {
    gateway: Gateway,
    hosts: Vec<Host>,
    link: VecDeque<(Instant, u32, u32, u32)>,
    now: Instant,
    turn: usize,
    random: u64,
    /// Lost packets per 1,000.
    loss: u64,
}

impl Downloads {
    /// Opens all flows and runs them until their steady state.
    pub(crate) fn start(flows: u32, subscribers: Subscribers, loss: u64) -> Self {
        let mut downloads = Downloads::open(flows, subscribers);
        downloads.loss = loss;
        for _ in 0..WARM_UP_STEPS * flows {
            downloads.step();
        }
        downloads
    }

    /// Opens all flows.
    pub(crate) fn open(flows: u32, subscribers: Subscribers) -> Self {
        let mut downloads = Downloads {
            gateway: Gateway::new(GatewayConfig::default()),
            hosts: Vec::with_capacity(flows as usize),
            link: VecDeque::new(),
            now: Instant::ZERO,
            turn: 0,
            random: 1,
            loss: 0,
        };
        for number in 0..flows {
            let (client, port) = match subscribers {
                Subscribers::Many => (number, 40_000),
                Subscribers::One => (0, 10_000 + number as u16),
            };
            let client = Ipv4Addr::from(0x0a01_0000 + client);
            let key =
                FlowKey { src: SocketAddr::from((client, port)), dst: SocketAddr::from(([10, 0, 0, 1], 80)) };
            downloads.hosts.push(Host {
                key,
                next: 1,
                edge: 64_000,
                echo: 0,
                have: 1,
                pieces: Vec::with_capacity(16),
                recent: [0; 8],
            });
            downloads.shake_hands(key);
        }
        downloads
    }

    /// Payload bytes that the gateway keeps.
    pub(crate) fn kept(&self) -> u64 {
        self.gateway.buffered_bytes()
    }

    /// Memory of the hosts and the link, which does not belong to the gateway.
    pub(crate) fn bytes(&self) -> usize {
        let pieces: usize =
            self.hosts.iter().map(|host| host.pieces.capacity() * size_of::<(u32, u32)>()).sum();
        let link = self.link.capacity() * size_of::<(Instant, u32, u32, u32)>();
        self.hosts.capacity() * size_of::<Host>() + pieces + link
    }

    /// Sends a full segment of the next flow, and first delivers all that arrives by then.
    pub(crate) fn step(&mut self) {
        self.now += STEP / self.hosts.len() as u64;
        let number = self.turn;
        self.turn = (number + 1) % self.hosts.len();
        self.deliver();
        let host = &mut self.hosts[number];
        if host.edge.wrapping_sub(host.next) as i32 >= MSS as i32 {
            let repr =
                TcpRepr { seq: Seq(host.next), ack: Seq(1), window: 500, ..plain(self.now, host.echo) };
            let packet = Packet::build_tcp(host.key.reversed(), &repr, Payload::Length(MSS));
            host.next = host.next.wrapping_add(MSS);
            self.pass(WAN, packet);
        }
        if self.gateway.poll_timeout().is_some_and(|at| at <= self.now) {
            self.gateway.handle_timeout(self.now);
            self.drain();
        }
    }

    /// Delivers the segments that have arrived at the clients, and sends their acknowledgements.
    fn deliver(&mut self) {
        while let Some(&(at, number, start, end)) = self.link.front()
            && at <= self.now
        {
            self.link.pop_front();
            let host = &mut self.hosts[number as usize];
            host.receive(start, end);
            let mut repr = TcpRepr { seq: Seq(1), ack: Seq(host.have), window: 8_000, ..plain(self.now, 0) };
            repr.options.sack_blocks = host.blocks();
            let packet = Packet::build_tcp(host.key, &repr, Payload::Length(0));
            self.pass(RADIO, packet);
        }
    }

    fn pass(&mut self, port: PortId, packet: Packet) {
        self.gateway.handle_packet(self.now, port, packet);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some((port, packet)) = self.gateway.poll_transmit(self.now) {
            let Some((key, tcp)) = packet.flow_key().zip(packet.tcp()) else { continue };
            let client = if port == RADIO { key.dst } else { key.src };
            let number = self.number(client);
            if port == RADIO {
                self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if (self.random >> 33) % 1000 >= self.loss {
                    self.link.push_back((self.now + RTT, number as u32, tcp.seq().0, tcp.end_seq().0));
                }
            } else if tcp.flags() == Flags::ACK {
                let host = &mut self.hosts[number];
                host.edge = tcp.ack().0.wrapping_add(u32::from(tcp.window()) << SHIFT);
                host.echo = tcp.timestamps().map_or(0, |(value, _)| value);
            }
        }
    }

    fn number(&self, client: SocketAddr) -> usize {
        match client {
            SocketAddr::V4(v4) if v4.port() == 40_000 => (v4.ip().to_bits() - 0x0a01_0000) as usize,
            other => usize::from(other.port() - 10_000),
        }
    }

    fn shake_hands(&mut self, key: FlowKey) {
        let options = TcpOptionsRepr {
            mss: Some(1_460),
            window_scale: Some(SHIFT),
            sack_permitted: true,
            timestamps: Some((0, 0)),
            ..Default::default()
        };
        let syn = TcpRepr { flags: Flags::SYN, window: 64_000, options, ..Default::default() };
        let syn_ack = TcpRepr { flags: Flags::SYN | Flags::ACK, ack: Seq(1), ..syn };
        let ack = TcpRepr { seq: Seq(1), ack: Seq(1), window: 8_000, ..plain(self.now, 0) };
        for (port, packet) in [
            (RADIO, Packet::build_tcp(key, &syn, Payload::Length(0))),
            (WAN, Packet::build_tcp(key.reversed(), &syn_ack, Payload::Length(0))),
            (RADIO, Packet::build_tcp(key, &ack, Payload::Length(0))),
        ] {
            self.gateway.handle_packet(self.now, port, packet);
            while self.gateway.poll_transmit(self.now).is_some() {}
        }
    }
}

impl Host {
    fn receive(&mut self, start: u32, end: u32) {
        self.recent.rotate_right(1);
        self.recent[0] = start;
        let at = self.pieces.partition_point(|&(from, _)| (from.wrapping_sub(start) as i32) < 0);
        self.pieces.insert(at, (start, end));
        self.pieces.dedup_by(|next, piece| {
            let joins = next.0.wrapping_sub(piece.1) as i32 <= 0;
            if joins && next.1.wrapping_sub(piece.1) as i32 > 0 {
                piece.1 = next.1;
            }
            joins
        });
        while let Some(&(from, to)) = self.pieces.first()
            && from.wrapping_sub(self.have) as i32 <= 0
        {
            if to.wrapping_sub(self.have) as i32 > 0 {
                self.have = to;
            }
            self.pieces.remove(0);
        }
    }

    /// Returns the data that it has beyond a hole, the newest first (RFC 2018, Section 4).
    fn blocks(&self) -> SackBlocks {
        let mut blocks: Vec<(Seq, Seq)> = Vec::new();
        for position in &self.recent {
            let holds = |piece: &&(u32, u32)| {
                position.wrapping_sub(piece.0) as i32 >= 0 && (position.wrapping_sub(piece.1) as i32) < 0
            };
            let block = self.pieces.iter().find(holds).map(|&(from, to)| (Seq(from), Seq(to)));
            blocks.extend(block.filter(|block| !blocks.contains(block)));
        }
        blocks.into_iter().collect()
    }
}

/// A segment as current kernels send it: with timestamps (RFC 7323) in milliseconds.
fn plain(now: Instant, echo: u32) -> TcpRepr {
    let options = TcpOptionsRepr {
        timestamps: Some(((now.as_nanos() / 1_000_000) as u32, echo)),
        ..Default::default()
    };
    TcpRepr { flags: Flags::ACK, options, ..Default::default() }
}

pub(crate) const MSS: u32 = 1_448;
const SHIFT: u8 = 7;
const RTT: Duration = Duration::from_millis(50);
/// Time between two segments of a flow.
const STEP: Duration = Duration::from_millis(1);
/// Segments of each flow before the measurement: ten round trips.
const WARM_UP_STEPS: u32 = 500;
