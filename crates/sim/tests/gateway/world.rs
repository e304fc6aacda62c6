//! A network of two clients, a server and a node in the gateway's place. A [`Scenario`](paceline_sim::Scenario) has
//! only gateways. Here any node may stand there, tests act on it, and hosts do what no scenario says.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use paceline_gateway::{RADIO, WAN};
use paceline_path::random::Probability;
use paceline_path::{Delay, Link, LinkConfig, Loss, QueueLimit, RateProcess};
use paceline_sim::checker::{Checker, GatewayChecker, Side};
use paceline_sim::host::{HOST, Plan, TcpHost, TcpSetup, TransferEnd};
use paceline_sim::workload::Workload;
use paceline_sim::{Hop, LinkId, Network, NodeId, Progress, RouteBy, SwitchId, seed_of};
use paceline_tcp::{Config, InitialNumbers, ReceiveBuffer, ReceiveWindowName};
use paceline_wire::{Duration, FlowKey, Instant, Node, Packet, PortId, Rate, Seq};

/// Window of Windows XP in bytes: "17 KB" in the thesis, 12 segments of 1,460 bytes.
pub const XP_WINDOW: u32 = 17_520;

/// The wired link and the radio links.
#[derive(Clone, Debug)]
pub struct Path {
    pub wired_down: LinkConfig,
    pub wired_up: LinkConfig,
    pub down: LinkConfig,
    pub up: LinkConfig,
    /// Packets to clients pass this rate process before TCP, as in a slow handset.
    pub processing: RateProcess,
    pub ipv6: bool,
}

impl Path {
    pub fn new(mbps: f64, wired_rtt_ms: u64, radio_rtt_ms: u64) -> Self {
        let link = |rtt_ms| LinkConfig {
            delay: Delay::Constant(Duration::from_millis(rtt_ms) / 2),
            ..LinkConfig::default()
        };
        let up = link(radio_rtt_ms);
        Path {
            wired_down: link(wired_rtt_ms),
            wired_up: link(wired_rtt_ms),
            down: LinkConfig {
                rate: RateProcess::Constant(Rate::from_mbps(mbps)),
                queue: QueueLimit::Bytes(1_000_000),
                ..up.clone()
            },
            up,
            processing: RateProcess::Unlimited,
            ipv6: false,
        }
    }

    /// The path of the thesis: 7.2 Mbit/s, 100 ms, all of it on the radio side.
    pub fn thesis() -> Self {
        Path::new(7.2, 0, 100)
    }

    /// The same path, with independent losses towards the clients.
    #[must_use]
    pub fn lossy(mut self, fraction: f64) -> Self {
        self.down.loss = lossy(fraction);
        self
    }
}

/// Independent loss with this probability.
pub fn lossy(fraction: f64) -> Loss {
    if fraction == 0.0 { Loss::None } else { Loss::Independent(Probability::from_fraction(fraction)) }
}

/// The time `ms` milliseconds after the start of the run.
pub fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Address of host `n` among the servers (net 0) or clients (net 1).
pub fn address(ipv6: bool, net: u8, n: u8) -> IpAddr {
    if ipv6 {
        Ipv6Addr::new(0x2001, 0xdb8, 0, u16::from(net), u16::from(n), 0, 0, 1).into()
    } else {
        Ipv4Addr::new(10, 0, net, n).into()
    }
}

/// A client as in the thesis: Windows XP with SACK, but without window scaling and timestamps.
pub fn xp_client() -> TcpSetup {
    let client = modern_client(XP_WINDOW);
    TcpSetup { config: Config { window_scaling: false, timestamps: false, ..client.config }, ..client }
}

/// A present-day client that advertises all of its receive buffer.
pub fn modern_client(buffer: u32) -> TcpSetup {
    end(Config { receive_buffer: ReceiveBuffer::Fixed(buffer), ..fixed_window() })
}

fn fixed_window() -> Config {
    Config { receive_window: ReceiveWindowName::Fixed, ..Config::default() }
}

/// One end of a flow. The world gives it its addresses and its seed. Sequence numbers wrap after 20 MB, timestamps after
/// 5 s, which most runs pass.
fn end(config: Config) -> TcpSetup {
    let nobody = FlowKey::new(([0; 4], 0).into(), ([0; 4], 0).into());
    let origin = InitialNumbers { isn: Seq(0u32.wrapping_sub(20_000_000)), tsval: 0u32.wrapping_sub(5_000) };
    TcpSetup { origin: Some(origin), ..TcpSetup::new(nobody, config, 0) }
}

/// A flow that its client opens.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    pub client: TcpSetup,
    pub server: TcpSetup,
    pub client_number: usize,
    pub start: Instant,
    /// When the server opens the same connection, if it does.
    pub server_start: Option<Instant>,
}

impl FlowSpec {
    /// An endless download from the start of the run.
    pub fn download(client: TcpSetup) -> Self {
        let server = TcpSetup { workloads: vec![Workload::Bulk], ..end(fixed_window()) };
        FlowSpec { client, server, client_number: 0, start: Instant::ZERO, server_start: None }
    }

    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.server.workloads = vec![Workload::Bytes(bytes)];
        self
    }

    /// What the client sends.
    #[must_use]
    pub fn sending(mut self, workload: Workload) -> Self {
        self.client.workloads = vec![workload];
        self
    }

    #[must_use]
    pub fn starting(mut self, ms: u64) -> Self {
        self.start = at_ms(ms);
        self
    }
}

/// The two hosts of a flow, and the client's port.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub client: NodeId,
    pub server: NodeId,
    port: u16,
}

/// Runs one flow for `seconds`. Fails if a checker found anything.
#[track_caller]
pub fn run<G: Node>(gateway: G, path: &Path, spec: &FlowSpec, seconds: u64) -> (World<G>, Flow) {
    let mut world = World::new(gateway, path, 1);
    let flow = world.add_flow(spec);
    world.run_until(at_ms(seconds * 1_000));
    world.assert_clean();
    (world, flow)
}

/// The world. Each of two clients has its own radio link. `G` is in the gateway's place.
pub struct World<G> {
    pub network: Network<Actor<G>>,
    path: Path,
    seed: u64,
    gateway: NodeId,
    servers: SwitchId,
    clients: SwitchId,
    /// Where packets leave the gateway to the clients.
    radio: SwitchId,
    wired_down: LinkId,
    radio_links: [[LinkId; 2]; 2],
    ends: Checker,
    pub checker: GatewayChecker,
    flows: Vec<Flow>,
}

impl<G: Node> World<G> {
    pub fn new(gateway: G, path: &Path, seed: u64) -> Self {
        let mut network = Network::default();
        let (ends, checker) = (Checker::default(), GatewayChecker::default());
        let gateway = network.add_node(Actor::Gateway(gateway));
        let servers = network.add_switch(RouteBy::SourcePort);
        let clients = network.add_switch(RouteBy::DestinationPort);
        let radio = network.add_switch(RouteBy::DestinationPort);
        let mut add = |name: &str, config: &LinkConfig, to| {
            let link = Link::new(config.clone(), seed_of(seed, name), Instant::ZERO).unwrap();
            network.add_link(link, to)
        };
        let wired_down = add("wired_down", &path.wired_down, Hop::Node(gateway, WAN));
        let wired_up = add("wired_up", &path.wired_up, Hop::Switch(servers));
        let processing = LinkConfig { rate: path.processing.clone(), ..LinkConfig::default() };
        let radio_links = ["first", "second"].map(|client| {
            let to = match path.processing {
                RateProcess::Unlimited => Hop::Switch(clients),
                _ => Hop::Link(add(client, &processing, Hop::Switch(clients))),
            };
            [
                add(&format!("{client}_down"), &path.down, to),
                add(&format!("{client}_up"), &path.up, Hop::Node(gateway, RADIO)),
            ]
        });
        for link in [wired_down, wired_up] {
            network.join_segments(link);
        }
        network.connect(gateway, WAN, Hop::Link(wired_up));
        network.connect(gateway, RADIO, Hop::Switch(radio));
        network.tap(wired_down, Box::new(ends.out_of_host()));
        network.tap(wired_down, Box::new(checker.enter(Side::Wan)));
        network.tap(wired_up, Box::new(ends.into_host()));
        network.tap(wired_up, Box::new(checker.leave(Side::Wan)));
        for [down, up] in radio_links {
            network.tap(up, Box::new(ends.out_of_host()));
            network.tap(up, Box::new(checker.enter(Side::Radio)));
            network.tap(down, Box::new(ends.into_host()));
            network.tap(down, Box::new(checker.leave(Side::Radio)));
        }
        World {
            network,
            path: path.clone(),
            seed,
            gateway,
            servers,
            clients,
            radio,
            wired_down,
            radio_links,
            ends,
            checker,
            flows: Vec::new(),
        }
    }

    pub fn add_flow(&mut self, spec: &FlowSpec) -> Flow {
        let port = 40_000 + self.flows.len() as u16;
        let end = |net, n, port| SocketAddr::new(address(self.path.ipv6, net, n), port);
        let up = FlowKey::new(end(1, 1 + spec.client_number as u8, port), end(0, 1, 80));
        let setup = |setup: &TcpSetup, key, name: &str| TcpSetup {
            key,
            seed: seed_of(self.seed, &format!("{name} {port}")),
            ..setup.clone()
        };
        let client = setup(&spec.client, up, "client");
        let server = setup(&spec.server, up.reversed(), "server");
        let opens = |at| Plan::new(1, at, false, Duration::ZERO);
        let client = TcpHost::client(client, opens(spec.start));
        let server = match spec.server_start {
            Some(at) => TcpHost::client(server, opens(at)),
            None => TcpHost::server(server),
        };
        let network = &mut self.network;
        let [client, server] = [client, server].map(|host| network.add_node(Actor::Host(Box::new(host))));
        let [radio_down, radio_up] = self.radio_links[spec.client_number];
        network.connect(server, HOST, Hop::Link(self.wired_down));
        network.connect(client, HOST, Hop::Link(radio_up));
        network.route(self.servers, port, Hop::Node(server, HOST));
        network.route(self.radio, port, Hop::Link(radio_down));
        network.route(self.clients, port, Hop::Node(client, HOST));
        let flow = Flow { client, server, port };
        self.flows.push(flow);
        flow
    }

    /// Lets the client vanish: it gets no packet of the flow any more.
    pub fn forget(&mut self, flow: Flow) {
        let nowhere = self.network.add_switch(RouteBy::DestinationPort);
        self.network.route(self.clients, flow.port, Hop::Switch(nowhere));
    }

    #[track_caller]
    pub fn run_until(&mut self, end: Instant) {
        assert_ne!(self.network.run_until(end), Progress::Stuck);
    }

    /// Runs in steps until `done` or `end`. True if done.
    pub fn run_while(&mut self, end: Instant, mut done: impl FnMut(&Self) -> bool) -> bool {
        while self.network.now() < end && !done(self) {
            self.run_until((self.network.now() + Duration::from_millis(50)).min(end));
        }
        done(self)
    }

    /// Runs until `to`. Returns the goodput in Mbit/s of each flow's download since `from`.
    pub fn goodputs_between(&mut self, from: Instant, to: Instant) -> Vec<f64> {
        self.run_until(from);
        let read =
            |world: &Self| -> Vec<u64> { world.flows.iter().map(|flow| world.read(flow.client)).collect() };
        let before = read(self);
        self.run_until(to);
        let bytes = read(self).into_iter().zip(before).map(|(after, before)| after - before);
        bytes.map(|bytes| Rate::from_bytes_in(bytes, to.saturating_since(from)).as_mbps()).collect()
    }

    pub fn gateway(&self) -> &G {
        match self.network.node(self.gateway) {
            Actor::Gateway(gateway) => gateway,
            Actor::Host(_) => unreachable!("hosts come later"),
        }
    }

    /// True if both ends have closed and everything is acknowledged.
    pub fn is_over(&self, flow: Flow) -> bool {
        [flow.client, flow.server].iter().all(|host| self.end(*host).is_some_and(TransferEnd::is_over))
    }

    /// Bytes that the application at one end of a flow has read.
    pub fn read(&self, host: NodeId) -> u64 {
        self.end(host).map_or(0, TransferEnd::read)
    }

    /// Time until the application at one end had read the last byte and the FIN.
    pub fn completion(&self, flow: Flow, host: NodeId) -> Option<Duration> {
        let opened = self.end(flow.client)?.opened;
        self.end(host)?.finished.map(|at| at.saturating_since(opened))
    }

    fn end(&self, host: NodeId) -> Option<&TransferEnd> {
        match self.network.node(host) {
            Actor::Host(host) => host.ends().first(),
            Actor::Gateway(_) => None,
        }
    }

    /// What the checkers have found, and wrong bytes.
    pub fn findings(&self) -> Vec<String> {
        let hosts = self.flows.iter().flat_map(|flow| [flow.client, flow.server]);
        let wrong: u64 = hosts.filter_map(|host| self.end(host)).map(TransferEnd::wrong_bytes).sum();
        let wrong = (wrong > 0).then(|| format!("{wrong} wrong bytes"));
        self.checker.findings().into_iter().chain(self.ends.findings()).chain(wrong).collect()
    }

    #[track_caller]
    pub fn assert_clean(&self) {
        assert_eq!([self.findings(), self.checker.reorderings()].concat(), Vec::<String>::new());
    }
}

/// A node of the world.
pub enum Actor<G> {
    Gateway(G),
    Host(Box<TcpHost>),
}

impl<G: Node> Node for Actor<G> {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        match self {
            Actor::Gateway(node) => node.handle_packet(arrival, port, packet),
            Actor::Host(node) => node.handle_packet(arrival, port, packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Actor::Gateway(node) => node.handle_timeout(now),
            Actor::Host(node) => node.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        match self {
            Actor::Gateway(node) => node.poll_transmit(now),
            Actor::Host(node) => node.poll_transmit(now),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Actor::Gateway(node) => node.poll_timeout(),
            Actor::Host(node) => node.poll_timeout(),
        }
    }
}

/// Forwards everything at once, as a path without a gateway.
#[derive(Debug, Default)]
pub struct Direct(VecDeque<(PortId, Packet)>);

impl Node for Direct {
    fn handle_packet(&mut self, _arrival: Instant, port: PortId, packet: Packet) {
        self.0.push_back((PortId(1 - port.0), packet));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        self.0.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
