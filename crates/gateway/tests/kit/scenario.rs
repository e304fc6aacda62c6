//! Paths and flows of the scenarios, and results of flows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use paceline_path::random::Probability;
use paceline_path::{Delay, LinkConfig, Loss, QueueLimit, RateProcess};
use paceline_wire::{Duration, FlowKey, Instant, Node, Rate};

use super::connection::{BIN, Connection, EndpointConfig, Workload};
use super::sim::Sim;

/// Window of Windows XP in bytes: "17 KB" in the thesis, 12 segments of 1,460 bytes.
pub const XP_WINDOW: u64 = 17_520;

/// One path: wired link, gateway, radio link.
#[derive(Clone, Debug)]
pub struct Path {
    pub rate: RateProcess,
    pub uplink_rate: RateProcess,
    pub queue: QueueLimit,
    pub uplink_queue: QueueLimit,
    pub wired_rtt: Duration,
    pub radio_rtt: Duration,
    pub loss: Loss,
    pub ipv6: bool,
}

impl Path {
    pub fn new(mbps: f64, wired_rtt_ms: u64, radio_rtt_ms: u64) -> Self {
        Path {
            rate: RateProcess::Constant(Rate::from_mbps(mbps)),
            uplink_rate: RateProcess::Unlimited,
            queue: QueueLimit::Bytes(1_000_000),
            uplink_queue: QueueLimit::Unlimited,
            wired_rtt: Duration::from_millis(wired_rtt_ms),
            radio_rtt: Duration::from_millis(radio_rtt_ms),
            loss: Loss::None,
            ipv6: false,
        }
    }

    /// The path of the thesis: 7.2 Mbit/s, 100 ms, all of it on the radio side.
    pub fn thesis() -> Self {
        Path::new(7.2, 0, 100)
    }

    pub fn radio_down(&self) -> LinkConfig {
        LinkConfig {
            rate: self.rate.clone(),
            queue: self.queue,
            delay: Delay::Constant(self.radio_rtt / 2),
            loss: self.loss.clone(),
            ..LinkConfig::default()
        }
    }

    pub fn radio_up(&self) -> LinkConfig {
        LinkConfig {
            rate: self.uplink_rate.clone(),
            queue: self.uplink_queue,
            delay: Delay::Constant(self.radio_rtt / 2),
            ..LinkConfig::default()
        }
    }

    pub fn wired(&self) -> LinkConfig {
        LinkConfig { delay: Delay::Constant(self.wired_rtt / 2), ..LinkConfig::default() }
    }
}

/// A client as in the thesis: Windows XP with a window of `window` bytes, with SACK, but without window scaling and
/// timestamps.
pub fn xp_client(window: u64) -> EndpointConfig {
    let mut client = EndpointConfig::default().with_buffer(window);
    (client.tcp.window_scaling, client.tcp.timestamps) = (false, false);
    client
}

/// A present-day client with window scaling, SACK and timestamps.
pub fn modern_client(buffer: u64) -> EndpointConfig {
    EndpointConfig::default().with_buffer(buffer)
}

/// The standard world: one server host, one client host, and one path.
pub fn world<G: Node>(gateway: G, path: &Path, seed: u64) -> Sim<G> {
    let mut sim = Sim::new(gateway, seed);
    let wired = sim.add_wired(path.wired(), path.wired());
    let radio = sim.add_radio(path.radio_down(), path.radio_up());
    sim.add_server(address(path.ipv6, 0, 1), wired);
    sim.add_client(address(path.ipv6, 1, 1), radio);
    sim
}

/// Address of host `n` among the servers (net 0) or clients (net 1).
pub fn address(ipv6: bool, net: u8, n: u8) -> IpAddr {
    if ipv6 {
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, u16::from(net), u16::from(n), 0, 0, 1))
    } else {
        IpAddr::V4(Ipv4Addr::new(10, 0, net, n))
    }
}

/// A flow that its client opens.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    pub client: EndpointConfig,
    pub server: EndpointConfig,
    pub client_sends: Workload,
    pub server_sends: Workload,
    pub start: Instant,
    /// Indices of the client and of the server.
    pub hosts: (usize, usize),
    pub server_port: u16,
}

impl FlowSpec {
    /// An endless download from the start of the run.
    pub fn download(client: EndpointConfig) -> Self {
        FlowSpec {
            client,
            server: EndpointConfig::default(),
            client_sends: Workload::Silent,
            server_sends: Workload::Endless,
            start: Instant::ZERO,
            hosts: (0, 0),
            server_port: 80,
        }
    }

    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.server_sends = Workload::Bytes(bytes);
        self
    }

    #[must_use]
    pub fn starting(mut self, ms: u64) -> Self {
        self.start = at_ms(ms);
        self
    }
}

/// A flow of a run: the connections at its client and at its server, each with the index of its host.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub client: (usize, usize),
    pub server: (usize, usize),
}

/// Results of a flow's download or upload. `received` counts at the end that does not send.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub received_bytes: u64,
    pub completion: Option<Duration>,
    pub retransmitted_segments: u64,
}

impl<G: Node> Sim<G> {
    pub fn add_flow(&mut self, spec: &FlowSpec) -> Flow {
        let (client, server) = spec.hosts;
        let n = self.clients[client].host.connections.len() as u16;
        let key = FlowKey::new(
            SocketAddr::new(self.clients[client].address, 40_000 + n),
            SocketAddr::new(self.servers[server].address, spec.server_port),
        );
        let at_client =
            self.clients[client].host.add(key, spec.client.clone(), spec.client_sends, Some(spec.start));
        let at_server =
            self.servers[server].host.add(key.reversed(), spec.server.clone(), spec.server_sends, None);
        Flow { client: (client, at_client), server: (server, at_server) }
    }

    /// Returns the results of a flow's download.
    pub fn download(&self, flow: Flow) -> Report {
        self.report(flow, true)
    }

    /// Returns the results of a flow's upload.
    pub fn upload(&self, flow: Flow) -> Report {
        self.report(flow, false)
    }

    /// The connection at the client.
    pub fn client(&self, flow: Flow) -> &Connection {
        &self.clients[flow.client.0].host.connections[flow.client.1]
    }

    /// The connection at the server.
    pub fn server(&self, flow: Flow) -> &Connection {
        &self.servers[flow.server.0].host.connections[flow.server.1]
    }

    /// Bytes in order per 10 ms at the client.
    pub fn bins(&self, flow: Flow) -> &[u32] {
        &self.client(flow).received.bins
    }

    /// Returns the goodput at the client between two times.
    pub fn goodput_between(&self, flow: Flow, from: Instant, to: Instant) -> f64 {
        let bin = |at: Instant| (at.as_nanos() / BIN.as_nanos()) as usize;
        let bytes: u64 =
            self.bins(flow).iter().skip(bin(from)).take(bin(to) - bin(from)).map(|b| u64::from(*b)).sum();
        Rate::from_bytes_in(bytes, to.saturating_since(from)).as_mbps()
    }

    fn report(&self, flow: Flow, down: bool) -> Report {
        let (client, server) = (self.client(flow), self.server(flow));
        let (from, to) = if down { (server, client) } else { (client, server) };
        let Some(sender) = from.status(self.now) else { return Report::default() };
        assert_eq!(client.received.wrong_bytes + server.received.wrong_bytes, 0, "corrupt payload");
        assert_eq!(client.bad_checksums + server.bad_checksums, 0, "wrong checksums");
        let (start, received) = (client.opened_at.unwrap_or(self.now), &to.received);
        Report {
            received_bytes: received.bytes,
            completion: received.finished_at.map(|at| at.saturating_since(start)),
            retransmitted_segments: sender.sent.total_retrans,
        }
    }
}

/// Independent loss with probability `p`.
pub fn lossy(p: f64) -> Loss {
    if p == 0.0 { Loss::None } else { Loss::Independent(Probability::from_fraction(p)) }
}

/// The time `ms` milliseconds after the start of the run.
pub fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}
