//! Two hosts and two links, run to completion: a small simulator for tests of this crate.
// Each test uses only a part of it.
#![allow(dead_code, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::{Ipv4Addr, SocketAddr};

use paceline_path::{Delay, Link, LinkConfig, Loss, QueueLimit, RateProcess};
use paceline_tcp::{
    Config, CongestionName, ConnectionId, DetectionName, Endpoint, HystartName, ReceiveBuffer, ReductionName,
    SendBufferName, Status,
};
use paceline_wire::{Duration, FlowKey, Instant, Node, Packet, PortId, Rate};
use proptest::prelude::*;
use proptest::{bool::weighted, sample::select};

pub const PORT: PortId = PortId(0);

pub fn server_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 80))
}

pub fn client_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, 2), 50_000))
}

/// The key of a connection without a host.
pub fn key() -> FlowKey {
    let [a, b] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 80)));
    FlowKey::new(a, b)
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Random algorithms and switches of a sender.
pub fn drawn_config() -> impl Strategy<Value = Config> {
    let algorithms = (
        select(CongestionName::ALL),
        select(HystartName::ALL),
        select(ReductionName::ALL),
        select(DetectionName::ALL),
        select(SendBufferName::ALL),
    );
    let switches = (any::<[bool; 5]>(), weighted(0.8), weighted(0.8));
    (algorithms, switches).prop_map(|(algorithms, (any, timestamps, sack))| {
        let (congestion, hystart, reduction, detection, send_buffer) = algorithms;
        Config {
            congestion,
            hystart,
            reduction,
            detection,
            send_buffer,
            opportunistic: any[0],
            hack1: any[1],
            nagle: any[2],
            delayed_ack: any[3],
            sack_compression: any[4],
            timestamps,
            sack,
            ..Config::default()
        }
    })
}

/// Observes packets, for checks.
pub trait Tap {
    fn on_send(&mut self, _now: Instant, _from_server: bool, _packet: &Packet) {}
}

impl Tap for () {}

/// A client that downloads from a server.
pub struct Duplex {
    pub server: Endpoint,
    pub client: Endpoint,
    pub down: Link,
    pub up: Link,
    pub now: Instant,
    pub server_id: Option<ConnectionId>,
    pub client_id: ConnectionId,
    /// Bytes that the server has still to write. It closes afterwards.
    pub to_write: u64,
    pub close_when_written: bool,
    /// The client reads.
    pub reading: bool,
    pub received: u64,
    pub first_byte: Option<Instant>,
    pub events: u64,
    written: u64,
    last_edge: u64,
    /// Real bytes are sent and compared.
    pub content: bool,
    pub checks: bool,
}

impl Duplex {
    pub fn new(server: Config, client: Config, down: LinkConfig, up: LinkConfig, seed: u64) -> Duplex {
        let start = Instant::ZERO + ms(1_000);
        let mut server_host = Endpoint::new(seed);
        server_host.listen(server_address(), server);
        let mut client_host = Endpoint::new(seed + 1);
        let client_id = client_host.connect(start, client_address(), server_address(), &client);
        Duplex {
            server: server_host,
            client: client_host,
            down: Link::new(down, seed + 2, start).unwrap(),
            up: Link::new(up, seed + 3, start).unwrap(),
            now: start,
            server_id: None,
            client_id,
            to_write: u64::MAX,
            close_when_written: true,
            reading: true,
            received: 0,
            first_byte: None,
            events: 0,
            written: 0,
            last_edge: 0,
            content: false,
            checks: true,
        }
    }

    pub fn server_status(&self) -> Option<Status> {
        Some(self.server.connection(self.server_id?)?.status(self.now))
    }

    pub fn client_status(&self) -> Status {
        self.client.connection(self.client_id).unwrap().status(self.now)
    }

    /// Runs until `end` or until nothing is left to do. False in the second case.
    pub fn run(&mut self, end: Instant, tap: &mut impl Tap) -> bool {
        loop {
            self.flush(tap);
            let next = [
                self.down.next_event(),
                self.up.next_event(),
                self.server.poll_timeout(),
                self.client.poll_timeout(),
            ]
            .into_iter()
            .flatten()
            .min();
            let Some(next) = next else { return false };
            if next > end {
                self.now = end;
                return true;
            }
            self.now = self.now.max(next);
            self.step();
            self.events += 1;
            assert!(self.events < 200_000_000, "it never ends");
        }
    }

    fn step(&mut self) {
        let now = self.now;
        let client = &mut self.client;
        self.down.advance(now, &mut |d| client.handle_packet(d.at, PORT, d.packet));
        let server = &mut self.server;
        self.up.advance(now, &mut |d| server.handle_packet(d.at, PORT, d.packet));
        self.client.handle_timeout(now);
        self.server.handle_timeout(now);
    }

    fn flush(&mut self, tap: &mut impl Tap) {
        self.applications();
        while let Some((_, packet)) = self.server.poll_transmit(self.now) {
            tap.on_send(self.now, true, &packet);
            self.down.send(self.now, packet);
        }
        while let Some((_, packet)) = self.client.poll_transmit(self.now) {
            tap.on_send(self.now, false, &packet);
            self.up.send(self.now, packet);
        }
        if self.checks {
            self.check();
        }
    }

    fn applications(&mut self) {
        if let Some(id) = self.server.accept() {
            self.server_id = Some(id);
        }
        if self.reading && self.client.connection(self.client_id).is_some_and(|c| c.readable() > 0) {
            let connection = self.client.connection_mut(self.client_id).unwrap();
            if self.content {
                while let Some(payload) = connection.read(self.now, 10_000) {
                    let bytes = payload.bytes().expect("bytes travel");
                    for (n, &byte) in bytes.iter().enumerate() {
                        assert_eq!(
                            byte,
                            pattern(self.received + n as u64),
                            "at {}",
                            self.received + n as u64
                        );
                    }
                    self.received += bytes.len() as u64;
                }
            } else {
                self.received += connection.read_all(self.now);
            }
            self.first_byte.get_or_insert(self.now);
            if connection.is_read_finished() {
                connection.close();
            }
        } else if self
            .client
            .connection(self.client_id)
            .is_some_and(|c| c.is_read_finished() && c.state() == paceline_tcp::State::CloseWait)
        {
            self.client.connection_mut(self.client_id).unwrap().close();
        }
        if let Some(id) = self.server_id {
            if self.to_write > 0 && self.server.connection(id).is_some_and(|c| c.is_writable()) {
                let connection = self.server.connection_mut(id).unwrap();
                let written = if self.content {
                    let len = self.to_write.min(7_777);
                    let bytes: Vec<u8> = (0..len).map(|n| pattern(self.written + n)).collect();
                    connection.write(&bytes.into()) as u64
                } else {
                    connection.write_length(self.to_write.min(1 << 28) as u32) as u64
                };
                self.written += written;
                self.to_write -= written;
            }
            // Also if there was nothing to write.
            if self.to_write == 0
                && self.close_when_written
                && let Some(connection) = self.server.connection_mut(id)
            {
                connection.close();
            }
        }
    }

    /// Invariants that hold at all times.
    fn check(&mut self) {
        let client = self.client_status();
        assert!(
            client.receiver.rcv_edge >= self.last_edge || client.receiver.rcv_nxt < 2,
            "the right edge moved back"
        );
        self.last_edge = client.receiver.rcv_edge;
        assert!(self.received <= self.written);
        if let Some(server) = self.server_status() {
            let pipe = server.pulse.unacked + server.pulse.retrans - server.pulse.sacked - server.pulse.lost;
            assert_eq!(server.pulse.in_flight, pipe);
        }
    }
}

fn pattern(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The path of OR, Table 3, with `rtt` of propagation. The link charges 1,515 bytes for a packet of 1,500.
pub fn mobile_path(mbps: f64, rtt: Duration, loss_ppb: u64) -> (LinkConfig, LinkConfig) {
    let down = LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps * 1_500.0 / 1_515.0)),
        queue: QueueLimit::Packets(3_000),
        delay: Delay::Constant(rtt / 2),
        loss: match loss_ppb {
            0 => Loss::None,
            ppb => Loss::Independent(paceline_path::random::Probability::from_ppb(ppb)),
        },
        ..LinkConfig::default()
    };
    let up = LinkConfig { delay: Delay::Constant(rtt / 2), ..LinkConfig::default() };
    (down, up)
}

/// A client with the receive window of OR at 20 Mbit/s and 100 ms.
pub fn client_config(window: u32) -> Config {
    Config { receive_buffer: ReceiveBuffer::Fixed(window), ..Config::default() }
}
