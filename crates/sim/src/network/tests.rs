use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_path::random::Probability;
use paceline_path::{Delay, Jitter, LinkConfig, Loss, QueueLimit, RateProcess, Reorder};
use paceline_wire::{Duration, FlowKey, Payload, Rate, TcpRepr};

use super::*;
use crate::seed_of;

struct AnyNode(Box<dyn Node>);

impl Node for AnyNode {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        self.0.handle_packet(arrival, port, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.0.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
}

/// Sends datagrams at a constant interval, and logs arrivals.
#[derive(Default)]
struct Station {
    key: Option<FlowKey>,
    next: Option<Instant>,
    left: u32,
    /// True if the station answers each packet.
    echoes: bool,
    out: VecDeque<Packet>,
    log: Vec<(Instant, usize)>,
}

const INTERVAL: Duration = Duration::from_micros(300);

fn address(host: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), u16::from(host)))
}

fn source(from: u8, to: u8, packets: u32) -> AnyNode {
    let key = Some(FlowKey::new(address(from), address(to)));
    AnyNode(Box::new(Station { key, next: Some(Instant::ZERO), left: packets, ..Station::default() }))
}

impl Node for Station {
    fn handle_packet(&mut self, arrival: Instant, _port: PortId, packet: Packet) {
        self.log.push((arrival, packet.ip_len()));
        if let (true, Some(key)) = (self.echoes, self.key) {
            self.out.push_back(Packet::build_udp(key, Payload::Length(packet.ip_len() as u32 / 2)));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let (Some(key), Some(at)) = (self.key, self.next.filter(|at| *at <= now)) {
            self.out.push_back(Packet::build_udp(key, Payload::Length(1_000 + self.left % 7)));
            self.left -= 1;
            self.next = (self.left > 0).then_some(at + INTERVAL);
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        Some((PortId(0), self.out.pop_front()?))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}

/// Packets that went over a link.
#[derive(Default)]
struct Log {
    sent: Vec<Instant>,
    delivered: Vec<(Instant, usize)>,
}

impl Tap for Rc<RefCell<Log>> {
    fn sent(&mut self, now: Instant, _packet: &Packet) {
        self.borrow_mut().sent.push(now);
    }

    fn delivered(&mut self, delivered: &Delivered) {
        self.borrow_mut().delivered.push((delivered.at, delivered.packet.ip_len()));
    }
}

fn radio(mbps: f64) -> LinkConfig {
    LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Packets(40),
        delay: Delay::Constant(Duration::from_millis(30)),
        jitter: Some(Jitter { up_to: Duration::from_millis(5), keep_order: false }),
        loss: Loss::Independent(Probability::from_ppm(20_000)),
        reorder: Some(Reorder { probability: Probability::from_ppm(10_000), by: Duration::from_millis(4) }),
        duplicate: Probability::from_ppm(10_000),
        ..LinkConfig::default()
    }
}

fn link(config: LinkConfig, seed: u64) -> Link {
    Link::new(config, seed, Instant::ZERO).unwrap()
}

/// Two sources, a gateway without acceleration here, one radio link, a switch and two sinks.
fn dumbbell(seed: u64, step: Duration) -> (Vec<(Instant, usize)>, Counts) {
    let mut network: Network<AnyNode> = Network::default();
    let gateway = network.add_node(AnyNode(Box::new(Gateway::new(GatewayConfig::default()))));
    let switch = network.add_switch(RouteBy::DestinationPort);
    let log = Rc::new(RefCell::new(Log::default()));
    let down = network.add_link(link(radio(20.0), seed_of(seed, "radio_down")), Hop::Switch(switch));
    network.tap(down, Box::new(log.clone()));
    network.connect(gateway, RADIO, Hop::Link(down));
    for number in 0..2u8 {
        let server = network.add_node(source(1 + number, 11 + number, 1_000));
        let config =
            LinkConfig { delay: Delay::Constant(Duration::from_millis(10)), ..LinkConfig::default() };
        let wired = network.add_link(link(config, 0), Hop::Node(gateway, WAN));
        network.connect(server, PortId(0), Hop::Link(wired));
        let client = network.add_node(AnyNode(Box::new(Station::default())));
        network.route(switch, 11 + u16::from(number), Hop::Node(client, PortId(0)));
    }
    let mut end = Instant::ZERO;
    while network.run_until(end) == Progress::Running {
        end += step;
    }
    let log = log.borrow();
    assert_eq!(log.sent.len(), 2_000);
    assert_eq!(network.counts().lost_way, 0);
    (log.delivered.clone(), network.counts())
}

#[test]
fn a_seed_gives_one_run_however_it_is_driven() {
    let (delivered, counts) = dumbbell(1, Duration::from_secs(100));
    assert!(delivered.len() > 600 && delivered.is_sorted_by_key(|d| d.0));
    assert_eq!((delivered.clone(), counts), dumbbell(1, Duration::from_secs(100)));
    assert_eq!((delivered.clone(), counts), dumbbell(1, Duration::from_micros(777)));
    assert_ne!(delivered, dumbbell(2, Duration::from_secs(100)).0);
}

/// Times of arrival and lengths of packets.
type Arrivals = Vec<(Instant, usize)>;

/// A source whose packets are answered, on paths of different delays. Returns the arrivals at both ends, and the
/// counts.
fn echo(seed: u64, whole: bool) -> (Arrivals, Arrivals, Counts) {
    let mut network: Network<Station> = Network::default();
    let key = FlowKey::new(address(1), address(2));
    let first = Some(Instant::ZERO);
    let server = network.add_node(Station { key: Some(key), next: first, left: 2_000, ..Station::default() });
    let client = network.add_node(Station { key: Some(key.reversed()), echoes: true, ..Station::default() });
    let down = network.add_link(link(radio(20.0), seed), Hop::Node(client, PortId(0)));
    let last = network.add_link(link(radio(30.0), seed + 1), Hop::Link(down));
    let delay = Delay::Constant(Duration::from_millis(seed % 4 * 7));
    let up =
        network.add_link(link(LinkConfig { delay, ..radio(9.0) }, seed + 2), Hop::Node(server, PortId(0)));
    network.connect(server, PortId(0), Hop::Link(last));
    network.connect(client, PortId(0), Hop::Link(up));
    if whole {
        network.divide();
        network.islands = Islands::whole(&network.nodes, &mut network.links);
    }
    assert_eq!(network.run_until(Instant::ZERO + Duration::from_secs(10)), Progress::Idle);
    (network.node(server).log.clone(), network.node(client).log.clone(), network.counts())
}

#[test]
fn islands_that_go_on_by_turns_are_as_if_they_were_one() {
    for seed in 0..20 {
        let (server, client, counts) = echo(seed, false);
        assert!(server.len() > 300 && client.len() > 600, "seed {seed}");
        assert!(client.is_sorted_by_key(|packet| packet.0), "seed {seed}");
        assert_eq!((server, client, counts), echo(seed, true), "seed {seed}");
    }
}

#[test]
fn links_in_a_chain_add_up() {
    let mut network: Network<AnyNode> = Network::default();
    let client = network.add_node(AnyNode(Box::new(Station::default())));
    let mut to = Hop::Node(client, PortId(0));
    let log = Rc::new(RefCell::new(Log::default()));
    for hop in 0..3 {
        let config = LinkConfig {
            // 1,028 bytes take 1, 2 and 4 ms. The fastest link is the last.
            rate: RateProcess::Constant(Rate::from_bytes_per_sec(1_028_000 >> hop)),
            delay: Delay::Constant(Duration::from_millis(10)),
            ..LinkConfig::default()
        };
        let id = network.add_link(link(config, 0), to);
        network.tap(id, Box::new(log.clone()));
        to = Hop::Link(id);
    }
    let mut station = Station { key: Some(FlowKey::new(address(1), address(2))), ..Station::default() };
    let packet = Packet::build_udp(FlowKey::new(address(1), address(2)), Payload::Length(1_000));
    station.out.push_back(packet);
    let server = network.add_node(AnyNode(Box::new(station)));
    network.connect(server, PortId(0), to);
    assert_eq!(network.run_until(Instant::ZERO + Duration::from_secs(1)), Progress::Idle);
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    assert_eq!(log.borrow().delivered, [(at(14), 1_028), (at(26), 1_028), (at(37), 1_028)]);
    assert_eq!(network.now(), at(1_000));
}

#[test]
fn super_packets_are_split_and_strays_counted() {
    let mut network: Network<AnyNode> = Network::default();
    let log = Rc::new(RefCell::new(Log::default()));
    let switch = network.add_switch(RouteBy::DestinationPort);
    let id = network.add_link(link(LinkConfig::default(), 0), Hop::Switch(switch));
    network.tap(id, Box::new(log.clone()));
    let mut station = Station::default();
    let key = FlowKey::new(address(1), address(2));
    let mut packet = Packet::build_tcp(key, &TcpRepr::default(), Payload::Length(3_000));
    packet.set_gso_size(Some(1_448));
    station.out.push_back(packet);
    let server = network.add_node(AnyNode(Box::new(station)));
    network.connect(server, PortId(0), Hop::Link(id));
    network.run_until(Instant::ZERO);
    let lengths: Vec<usize> = log.borrow().delivered.iter().map(|d| d.1).collect();
    assert_eq!(lengths, [1_488, 1_488, 144]);
    assert_eq!(network.counts().lost_way, 3);
}

/// Always due.
struct Impatient;

impl Node for Impatient {
    fn handle_packet(&mut self, _arrival: Instant, _port: PortId, _packet: Packet) {}
    fn handle_timeout(&mut self, _now: Instant) {}
    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        None
    }
    fn poll_timeout(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }
}

#[test]
fn a_node_that_is_always_due_is_found_out() {
    let mut network: Network<AnyNode> = Network::default();
    network.add_node(AnyNode(Box::new(Impatient)));
    assert_eq!(network.run_until(Instant::ZERO), Progress::Stuck);
}
