//! A download through a gateway between two endpoints that follow RFC 5961, while an attacker injects packets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_path::random::Random;
use paceline_path::{Delay, Link, LinkConfig, QueueLimit, RateProcess};
use paceline_tcp::{Config, ConnectionId, Endpoint, ReceiveBuffer, Status};
use paceline_wire::{
    Duration, Flags, FlowKey, Instant, Node, Packet, Payload, PortId, Rate, Seq, TcpOptionsRepr, TcpRepr,
};

/// Size of the victim's download.
const BYTES: u64 = 3_000_000;
/// Limits of the gateway's memory and of its number of flows.
const POOL_BYTES: usize = 64 << 20;
pub const MAX_FLOWS: usize = 2_000;
/// Interval between two blows.
const BLOW_EVERY: Duration = Duration::from_millis(5);

/// Returns a configuration with these limits for one of the modes.
pub fn config(mode: FlowMode) -> GatewayConfig {
    let mut config = GatewayConfig { mode, ..GatewayConfig::default() };
    config.limits.max_flows = MAX_FLOWS;
    config.limits.max_buffer_bytes = POOL_BYTES;
    config
}

/// Servers, wired link, gateway, radio link, clients. The first server and the first client are honest.
pub struct World {
    pub gateway: Gateway,
    pub random: Random,
    pub now: Instant,
    server: Endpoint,
    client: Endpoint,
    server_id: Option<ConnectionId>,
    client_id: ConnectionId,
    wired: [Link; 2],
    radio: [Link; 2],
    written: u64,
    read: u64,
    /// Packets sent to anyone but the honest hosts.
    pub strays: u64,
    /// The newest timestamp of the victim's server.
    pub server_clock: u32,
    /// The packet in progress is blind.
    is_judging: bool,
}

/// The byte of an attacker's payload. The download has nowhere eight of it in a row.
pub const FORGED: u8 = 0x66;

/// Returns an address in the network of servers (0) or clients (1). Number 1 is honest.
pub fn address(net: u8, n: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, net, n).into()
}

/// Returns the victim's flow, from client to server.
pub fn victim() -> FlowKey {
    FlowKey { src: SocketAddr::new(address(1, 1), 40_000), dst: SocketAddr::new(address(0, 1), 80) }
}

/// Returns a segment as the sender's network card sends it.
pub fn segment(key: FlowKey, repr: TcpRepr, payload: &[u8]) -> Packet {
    let mut packet = Packet::build_tcp(key, &repr, Payload::from(payload.to_vec()));
    packet.complete_checksum();
    packet
}

/// Returns a header with these fields.
pub fn header(seq: u32, ack: u32, flags: Flags) -> TcpRepr {
    TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window: 60_000, ..TcpRepr::default() }
}

impl World {
    pub fn new(config: GatewayConfig) -> World {
        World::with(config, true)
    }

    /// Creates a world whose two ends use timestamps, or do not.
    pub fn with(config: GatewayConfig, timestamps: bool) -> World {
        let start = Instant::ZERO + Duration::from_secs(1);
        let link = |mbps, ms, seed| {
            let config = LinkConfig {
                rate: RateProcess::Constant(Rate::from_mbps(mbps)),
                delay: Delay::Constant(Duration::from_millis(ms)),
                queue: QueueLimit::Packets(300),
                ..LinkConfig::default()
            };
            Link::new(config, seed, start).unwrap()
        };
        let (mut server, mut client) = (Endpoint::new(7), Endpoint::new(8));
        server.listen(victim().dst, Config { timestamps, ..Config::default() });
        let receiver =
            Config { receive_buffer: ReceiveBuffer::Fixed(512 << 10), timestamps, ..Config::default() };
        let client_id = client.connect(start, victim().src, victim().dst, &receiver);
        World {
            gateway: Gateway::new(config),
            random: Random::named(1, "attack"),
            now: start,
            server,
            client,
            server_id: None,
            client_id,
            wired: [link(1_000.0, 10, 1), link(1_000.0, 10, 2)],
            radio: [link(20.0, 30, 3), link(20.0, 30, 4)],
            written: 0,
            read: 0,
            strays: 0,
            server_clock: 0,
            is_judging: false,
        }
    }

    /// Returns the state of the victim's server. `None` before the handshake.
    pub fn server(&self) -> Option<Status> {
        Some(self.server.connection(self.server_id?)?.status(self.now))
    }

    /// Returns the state of the victim's client.
    pub fn client(&self) -> Option<Status> {
        Some(self.client.connection(self.client_id)?.status(self.now))
    }

    /// Returns milliseconds since time zero.
    pub fn now_ms(&self) -> u64 {
        self.now.as_nanos() / 1_000_000
    }

    /// An attacker's packet arrives at a port of the gateway.
    pub fn inject(&mut self, port: PortId, packet: Packet) {
        self.gateway.handle_packet(self.now, port, packet);
        self.pump();
    }

    /// Injects a packet whose numbers no receiver accepts. If it passes, it is not put on a link, where it would only
    /// take room.
    pub fn inject_blind(&mut self, port: PortId, packet: Packet) {
        self.is_judging = true;
        self.inject(port, packet);
        self.is_judging = false;
    }

    /// Injects a packet that only the gateway sees.
    pub fn inject_to_nobody(&mut self, port: PortId, packet: Packet) {
        self.pump();
        self.gateway.handle_packet(self.now, port, packet);
        while self.gateway.poll_transmit(self.now).is_some() {}
    }

    /// The victim downloads while `blow` strikes every 5 ms. Returns the duration in seconds.
    pub fn run(&mut self, mut blow: impl FnMut(&mut World)) -> f64 {
        let (start, limit) = (self.now, self.now + Duration::from_secs(60));
        let mut next_blow = start;
        while self.read < BYTES && self.now < limit {
            self.pump();
            let next = self.next_event().unwrap_or(limit).min(next_blow);
            self.now = self.now.max(next);
            self.step();
            if self.now >= next_blow {
                blow(self);
                next_blow = self.now + BLOW_EVERY;
            }
            assert!(self.gateway.buffered_bytes() <= POOL_BYTES as u64, "{}", self.gateway.buffered_bytes());
            assert!(self.gateway.flows() <= MAX_FLOWS, "{}", self.gateway.flows());
        }
        assert_eq!(self.read, BYTES, "at {:?}: {:?} {:?}", self.now, self.server(), self.client());
        self.now.saturating_since(start).as_secs_f64()
    }

    fn next_event(&self) -> Option<Instant> {
        let links = self.wired.iter().chain(&self.radio).map(Link::next_event);
        let nodes = [self.server.poll_timeout(), self.client.poll_timeout(), self.gateway.poll_timeout()];
        links.chain(nodes).flatten().min()
    }

    fn step(&mut self) {
        let now = self.now;
        let World { gateway, server, client, wired: [down, up], radio: [radio_down, radio_up], .. } = self;
        down.advance(now, &mut |d| gateway.handle_packet(d.at, WAN, d.packet));
        radio_up.advance(now, &mut |d| gateway.handle_packet(d.at, RADIO, d.packet));
        radio_down.advance(now, &mut |d| client.handle_packet(d.at, PortId(0), d.packet));
        up.advance(now, &mut |d| server.handle_packet(d.at, PortId(0), d.packet));
        gateway.handle_timeout(now);
        server.handle_timeout(now);
        client.handle_timeout(now);
    }

    fn pump(&mut self) {
        self.applications();
        let now = self.now;
        while let Some((_, packet)) = self.server.poll_transmit(now) {
            let stamps = packet.tcp().and_then(|tcp| tcp.timestamps());
            self.server_clock = stamps.map_or(self.server_clock, |(value, _)| value);
            self.wired[0].send(now, packet);
        }
        while let Some((_, packet)) = self.client.poll_transmit(now) {
            self.radio[1].send(now, packet);
        }
        while let Some((port, packet)) = self.gateway.poll_transmit(now) {
            let is_forged = packet.payload().bytes().is_some_and(|bytes| bytes.starts_with(&[FORGED; 8]));
            if is_forged && self.is_judging {
                continue;
            }
            let to = packet.addresses().map(|(_, to)| to);
            for segment in packet.segments() {
                match (port, to) {
                    (WAN, Some(to)) if to == address(0, 1) => self.wired[1].send(now, segment),
                    (RADIO, Some(to)) if to == address(1, 1) => self.radio[0].send(now, segment),
                    _ => self.strays += 1,
                }
            }
        }
    }

    fn applications(&mut self) {
        if let Some(id) = self.server.accept() {
            self.server_id = Some(id);
        }
        if let Some(connection) = self.server_id.and_then(|id| self.server.connection_mut(id)) {
            while self.written < BYTES && connection.is_writable() {
                let len = (BYTES - self.written).min(8_000);
                let bytes: Vec<u8> = (0..len).map(|n| pattern(self.written + n)).collect();
                let written = connection.write(&bytes.into()) as u64;
                self.written += written;
                if written == 0 {
                    break;
                }
            }
        }
        let Some(connection) = self.client.connection_mut(self.client_id) else { return };
        while let Some(payload) = connection.read(self.now, 64_000) {
            for &byte in payload.bytes().unwrap() {
                assert_eq!(byte, pattern(self.read), "at {}", self.read);
                self.read += 1;
            }
        }
    }
}

fn pattern(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// In every mode, the attack may delay the victim by at most a tenth and 240 ms (three round trips).
#[track_caller]
pub fn withstands(blow: impl Fn(&mut World)) {
    for mode in [FlowMode::Transparent, FlowMode::Split, FlowMode::Auto] {
        let alone = World::new(config(mode)).run(|_| {});
        let mut world = World::new(config(mode));
        let attacked = world.run(&blow);
        assert!(attacked <= 1.1 * alone + 0.24, "{mode:?}: {attacked:.2} s attacked, {alone:.2} s alone");
    }
}

/// Returns a flow between two attackers. `n` selects its port.
pub fn conspirators(n: u16) -> FlowKey {
    FlowKey { src: SocketAddr::new(address(1, 66), 1_024 + n), dst: SocketAddr::new(address(0, 66), 443) }
}

/// Opens a flow between two attackers. Both data streams begin at 1.
pub fn open(world: &mut World, key: FlowKey, options: TcpOptionsRepr) {
    let syn = TcpRepr { options, ..header(0, 0, Flags::SYN) };
    world.inject(RADIO, segment(key, syn, &[]));
    let syn_ack = TcpRepr { options, ..header(0, 1, Flags::SYN | Flags::ACK) };
    world.inject(WAN, segment(key.reversed(), syn_ack, &[]));
    world.inject(RADIO, segment(key, header(1, 1, Flags::ACK), &[]));
}
