//! Servers, wired links, gateway, radio links and clients, driven by one clock. At equal times links come first, then
//! timers, each in the order in which they were added. So a seed fixes a run.

use std::net::IpAddr;

use paceline_path::{Delivered, Link, LinkConfig, RateProcess};
use paceline_wire::{Duration, Instant, Node, Packet, PortId};

use super::checker::{Checker, Side};
use super::host::Host;
use super::stream::mix;

/// The port towards the servers.
pub const WAN: PortId = PortId(0);
/// The port towards the clients.
pub const RADIO: PortId = PortId(1);

/// Forwards everything at once, as a path without an accelerator.
#[derive(Debug, Default)]
pub struct Direct(std::collections::VecDeque<(PortId, Packet)>);

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

/// A link in each direction.
#[derive(Debug)]
pub struct Pair {
    /// The link towards the client.
    pub down: Link,
    /// The link towards the server.
    pub up: Link,
}

/// A host with its address and the pair of links before it.
#[derive(Debug)]
pub struct Site {
    pub host: Host,
    pub address: IpAddr,
    pub pair: usize,
    processing: Option<Link>,
}

/// The world.
pub struct Sim<G> {
    pub now: Instant,
    pub gateway: G,
    pub wired: Vec<Pair>,
    pub radio: Vec<Pair>,
    pub servers: Vec<Site>,
    pub clients: Vec<Site>,
    pub checker: Checker,
    seed: u64,
    steps_now: u32,
}

impl<G: Node> Sim<G> {
    pub fn new(gateway: G, seed: u64) -> Self {
        Sim {
            now: Instant::ZERO,
            gateway,
            wired: Vec::new(),
            radio: Vec::new(),
            servers: Vec::new(),
            clients: Vec::new(),
            checker: Checker::default(),
            seed,
            steps_now: 0,
        }
    }

    pub fn add_wired(&mut self, down: LinkConfig, up: LinkConfig) -> usize {
        let seed = mix(self.seed ^ (0x100 + self.wired.len() as u64));
        self.wired.push(pair(down, up, seed, self.now));
        self.wired.len() - 1
    }

    pub fn add_radio(&mut self, down: LinkConfig, up: LinkConfig) -> usize {
        let seed = mix(self.seed ^ (0x200 + self.radio.len() as u64));
        self.radio.push(pair(down, up, seed, self.now));
        self.radio.len() - 1
    }

    pub fn add_server(&mut self, address: IpAddr, pair: usize) -> usize {
        self.servers.push(Site { host: Host::default(), address, pair, processing: None });
        self.servers.len() - 1
    }

    pub fn add_client(&mut self, address: IpAddr, pair: usize) -> usize {
        self.clients.push(Site { host: Host::default(), address, pair, processing: None });
        self.clients.len() - 1
    }

    /// Packets to a client pass this rate process before its TCP, as in a slow handset.
    pub fn set_processing(&mut self, client: usize, rate: RateProcess) {
        let config = LinkConfig { rate, ..LinkConfig::default() };
        self.clients[client].processing = Some(link(config, 0, self.now));
    }

    /// Runs until no event is left before `end`.
    pub fn run_until(&mut self, end: Instant) {
        self.pump();
        while let Some(at) = self.next_event().filter(|at| *at <= end) {
            self.steps_now = if at > self.now { 0 } else { self.steps_now + 1 };
            assert!(self.steps_now < 1_000_000, "a node asks for a timeout at {at:?} again and again");
            self.now = self.now.max(at);
            self.deliver();
            self.fire();
            self.pump();
        }
        self.now = self.now.max(end);
    }

    /// Runs in steps until `done` or `end`. True if done.
    pub fn run_while(&mut self, end: Instant, mut done: impl FnMut(&Self) -> bool) -> bool {
        while self.now < end {
            if done(self) {
                return true;
            }
            self.run_until((self.now + Duration::from_millis(50)).min(end));
        }
        done(self)
    }

    fn next_event(&self) -> Option<Instant> {
        let pairs = self.wired.iter().chain(&self.radio);
        let links = pairs.flat_map(|pair| [pair.down.next_event(), pair.up.next_event()]);
        let hosts = self.servers.iter().chain(&self.clients).map(|site| site.host.poll_timeout());
        let processing = self.clients.iter().filter_map(|site| site.processing.as_ref()?.next_event());
        links.chain(hosts).chain(processing.map(Some)).chain([self.gateway.poll_timeout()]).flatten().min()
    }

    fn deliver(&mut self) {
        let now = self.now;
        let mut arrivals = Vec::new();
        for pair in &mut self.wired {
            pair.down.advance(now, &mut |d| arrivals.push((To::GatewayWan, d)));
            pair.up.advance(now, &mut |d| arrivals.push((To::Server, d)));
        }
        for pair in &mut self.radio {
            pair.down.advance(now, &mut |d| arrivals.push((To::Client, d)));
            pair.up.advance(now, &mut |d| arrivals.push((To::GatewayRadio, d)));
        }
        for (to, delivered) in arrivals {
            match to {
                To::GatewayWan => {
                    self.checker.enter(Side::Wan, &delivered.packet);
                    self.gateway.handle_packet(delivered.at, WAN, delivered.packet);
                }
                To::GatewayRadio => {
                    self.checker.enter(Side::Radio, &delivered.packet);
                    self.gateway.handle_packet(delivered.at, RADIO, delivered.packet);
                }
                To::Client => self.deliver_to_client(delivered),
                To::Server => deliver_to(&mut self.servers, delivered.at, delivered.packet),
            }
        }
    }

    fn deliver_to_client(&mut self, delivered: Delivered) {
        let address = delivered.packet.addresses().map(|(_, to)| to);
        let Some(site) = self.clients.iter_mut().find(|site| Some(site.address) == address) else { return };
        match &mut site.processing {
            Some(link) => link.send(delivered.at, delivered.packet),
            None => site.host.handle_packet(delivered.at, PortId(0), delivered.packet),
        }
    }

    fn fire(&mut self) {
        let now = self.now;
        for Site { host, processing, .. } in &mut self.clients {
            if let Some(link) = processing {
                link.advance(now, &mut |d| host.handle_packet(d.at, PortId(0), d.packet));
            }
        }
        for site in self.servers.iter_mut().chain(&mut self.clients) {
            if site.host.poll_timeout().is_some_and(|at| at <= now) {
                site.host.handle_timeout(now);
            }
        }
        if self.gateway.poll_timeout().is_some_and(|at| at <= now) {
            self.gateway.handle_timeout(now);
        }
    }

    fn pump(&mut self) {
        let now = self.now;
        for site in &mut self.servers {
            while let Some((_, packet)) = site.host.poll_transmit(now) {
                self.wired[site.pair].down.send(now, packet);
            }
        }
        for site in &mut self.clients {
            while let Some((_, packet)) = site.host.poll_transmit(now) {
                for segment in packet.segments() {
                    self.radio[site.pair].up.send(now, segment);
                }
            }
        }
        while let Some((port, packet)) = self.gateway.poll_transmit(now) {
            if port == WAN {
                self.checker.leave(Side::Wan, &packet);
                self.send_up(packet);
            } else {
                for segment in packet.segments() {
                    self.checker.leave(Side::Radio, &segment);
                    self.send_down(segment);
                }
            }
        }
    }

    fn send_up(&mut self, mut packet: Packet) {
        packet.complete_checksum();
        let Some((_, address)) = packet.addresses() else { return };
        if let Some(site) = self.servers.iter().find(|site| site.address == address) {
            self.wired[site.pair].up.send(self.now, packet);
        }
    }

    fn send_down(&mut self, mut packet: Packet) {
        packet.complete_checksum();
        let Some((_, address)) = packet.addresses() else { return };
        let Some(site) = self.clients.iter().find(|site| site.address == address) else { return };
        self.radio[site.pair].down.send(self.now, packet);
    }
}

fn pair(down: LinkConfig, up: LinkConfig, seed: u64, start: Instant) -> Pair {
    Pair { down: link(down, seed, start), up: link(up, mix(seed), start) }
}

fn link(config: LinkConfig, seed: u64, start: Instant) -> Link {
    Link::new(config, seed, start).expect("a link as configured")
}

#[derive(Clone, Copy)]
enum To {
    GatewayWan,
    GatewayRadio,
    Client,
    Server,
}

fn deliver_to(sites: &mut [Site], at: Instant, packet: Packet) {
    let Some((_, address)) = packet.addresses() else { return };
    if let Some(site) = sites.iter_mut().find(|site| site.address == address) {
        site.host.handle_packet(at, PortId(0), packet);
    }
}
