//! A scenario as a network: servers, links, a gateway, links, clients.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use paceline_adhoc::AdHoc;
use paceline_gateway::config::{FlowAction, FlowMatch, FlowMode, FlowRule, ShareConfig};
use paceline_gateway::{Event, Gateway, GatewayConfig, Observer, RADIO, WAN};
use paceline_path::{Link, LinkConfig};
use paceline_wire::{FlowKey, Instant, PortId};

use crate::checker::{Checker, GatewayChecker, Side};
use crate::faults::without_faults;
use crate::host::{HOST, SimNode};
use crate::measure::{LinkMeter, PathProbe, Quantiles};
use crate::network::{Hop, LinkId, Network, NodeId, RouteBy, SwitchId, Tap};
use crate::scenario::{AdHocAt, Flow, GatewayAt, Scenario, ScenarioError, Transport};
use crate::seed::seed_of;

/// A scenario's path, ready for hosts.
pub(crate) struct Topology {
    pub(crate) network: Network<SimNode>,
    pub(crate) links: Vec<NamedLink>,
    pub(crate) gateway: Option<GatewayNode>,
    pub(crate) ad_hoc: Option<NodeId>,
    pub(crate) path_delay: PathDelay,
    pub(crate) checker: Option<Checker>,
    pub(crate) gateway_checker: Option<GatewayChecker>,
    /// First hop of packets from servers. `from_clients` is the first hop of packets from clients.
    from_servers: Hop,
    from_clients: Hop,
    servers: SwitchId,
    clients: SwitchId,
}

/// One direction of a link of the path.
pub(crate) struct NamedLink {
    pub(crate) name: String,
    pub(crate) id: LinkId,
    pub(crate) meter: LinkMeter,
}

/// The gateway, and the log of its events.
pub(crate) struct GatewayNode {
    pub(crate) id: NodeId,
    pub(crate) log: Arc<Mutex<GatewayLog>>,
}

/// A gateway's events about its flows.
#[derive(Debug)]
pub(crate) struct GatewayLog {
    /// Time that new data spends in the gateway.
    pub(crate) sojourn: Quantiles,
    /// The last [`Event::Acked`] of each transfer, in the order of transfers.
    pub(crate) acked: BTreeMap<usize, Event>,
}

/// A node between two links of the path, and its ports towards servers and clients.
#[derive(Clone, Copy)]
struct Between {
    links_before: usize,
    node: NodeId,
    ports: (PortId, PortId),
}

/// How the queueing delay of the path is measured.
pub(crate) enum PathDelay {
    /// The gateway, or the ad-hoc network, and the link behind it; or all links behind the first one.
    Probe(PathProbe),
    /// Without a gateway or an ad-hoc network: the queue of the last link.
    LastLink(LinkMeter),
}

impl Topology {
    pub(crate) fn build(scenario: &Scenario) -> Result<Topology, ScenarioError> {
        let mut network = Network::beginning_at(scenario.begins);
        let servers = network.add_switch(RouteBy::SourcePort);
        let clients = network.add_switch(RouteBy::DestinationPort);
        let gateway =
            scenario.gateway.as_ref().map(|at| add_gateway(&mut network, scenario, at)).transpose()?;
        let ad_hoc = scenario.ad_hoc.as_ref().map(|at| add_ad_hoc(&mut network, scenario, at)).transpose()?;
        let at = scenario.gateway.as_ref().map(|gateway| gateway.links_before);
        // At the same place, the gateway is nearer to the servers.
        let between: Vec<Between> = gateway
            .iter()
            .zip(at)
            .map(|(gateway, links_before)| Between { links_before, node: gateway.id, ports: (WAN, RADIO) })
            .chain(ad_hoc)
            .collect();
        let mut links = Vec::new();
        // Downlinks are added from the last to the first, so that each next hop is known. Uplinks are added in the
        // other order.
        let mut to = Hop::Switch(clients);
        for (number, hop) in scenario.path.iter().enumerate().rev() {
            let seed = link_seed(scenario, number, 0);
            let link = add_link(&mut network, seed, format!("{}_down", hop.name), &hop.down, to)?;
            to = Hop::Link(link.id);
            links.push(link);
            let here = between.iter().rev().filter(|it| it.links_before == number);
            for &Between { node, ports: (up, down), .. } in here {
                network.connect(node, down, to);
                to = Hop::Node(node, up);
            }
        }
        let from_servers = to;
        links.reverse();
        let mut to = Hop::Switch(servers);
        for (number, hop) in scenario.path.iter().enumerate() {
            let here = between.iter().filter(|it| it.links_before == number);
            for &Between { node, ports: (up, down), .. } in here {
                network.connect(node, up, to);
                to = Hop::Node(node, down);
            }
            let seed = link_seed(scenario, number, 1);
            let link = add_link(&mut network, seed, format!("{}_up", hop.name), &hop.up, to)?;
            to = Hop::Link(link.id);
            links.push(link);
        }
        let path_delay =
            path_delay(&mut network, &links, scenario.path.len(), between.first().map(|it| it.links_before))?;
        let checker = scenario.checked.then(|| add_checker(&mut network, &links, scenario));
        Ok(Topology {
            network,
            links,
            gateway,
            ad_hoc: ad_hoc.map(|it| it.node),
            path_delay,
            checker,
            gateway_checker: None,
            from_servers,
            from_clients: to,
            servers,
            clients,
        })
    }

    /// Replaces all links by links without faults.
    pub(crate) fn remove_faults(&mut self, scenario: &Scenario) -> Result<(), ScenarioError> {
        let down = scenario.path.iter().map(|link| &link.down);
        let up = scenario.path.iter().map(|link| &link.up);
        for (link, config) in self.links.iter().zip(down.chain(up)) {
            // The start is the same, so steps of rate and delay continue.
            let healed = Link::new(without_faults(config), 0, scenario.begins)
                .map_err(|error| ScenarioError::Link(link.name.clone(), error))?;
            *self.network.link_mut(link.id) = healed;
        }
        Ok(())
    }

    /// Lets `tap` watch the link direction called `name`.
    pub(crate) fn tap(&mut self, name: &str, tap: Box<dyn Tap>) -> Result<(), ScenarioError> {
        let link = self.links.iter().find(|link| link.name == name);
        let link = link.ok_or_else(|| ScenarioError::NoSuchLink(name.into()))?;
        self.network.tap(link.id, tap);
        Ok(())
    }

    /// Watches the links beside the gateway. Nothing is watched if the mode is `auto`, which decides for each flow, or
    /// if an ad-hoc network may be on one side.
    pub(crate) fn check_gateway(&mut self, scenario: &Scenario) {
        let Some(gateway) = scenario.gateway.as_ref().filter(|_| scenario.ad_hoc.is_none()) else { return };
        let checker = GatewayChecker::default();
        match gateway.config.mode {
            FlowMode::Transparent => {}
            FlowMode::Split => checker.allow_splits(),
            FlowMode::Auto => return,
        }
        let passing = scenario.flows.iter().enumerate().filter(|(_, flow)| flow.pass);
        passing.for_each(|(number, _)| checker.expect_no_split(server_port(number)));
        let (at, up) = (gateway.links_before, scenario.path.len() + gateway.links_before);
        self.network.tap(self.links[at - 1].id, Box::new(checker.enter(Side::Wan)));
        self.network.tap(self.links[at].id, Box::new(checker.leave(Side::Radio)));
        self.network.tap(self.links[up].id, Box::new(checker.enter(Side::Radio)));
        self.network.tap(self.links[up - 1].id, Box::new(checker.leave(Side::Wan)));
        self.gateway_checker = Some(checker);
    }

    /// Adds the two hosts of a flow. `key` is the key of packets from server to client in the first connection.
    ///
    /// Each further connection has the next port of the client.
    pub(crate) fn add_pair(
        &mut self,
        key: FlowKey,
        connections: u32,
        server: SimNode,
        client: SimNode,
    ) -> (NodeId, NodeId) {
        let (server, client) = (self.network.add_node(server), self.network.add_node(client));
        self.network.connect(server, HOST, self.from_servers);
        self.network.connect(client, HOST, self.from_clients);
        for port in (key.dst.port()..).take(connections as usize) {
            self.network.route(self.servers, port, Hop::Node(server, HOST));
            self.network.route(self.clients, port, Hop::Node(client, HOST));
        }
        (server, client)
    }
}

/// Returns the key of packets from server to client in connection `connection`. It is the first of `count` connections
/// of flow `flow`.
pub(crate) fn key(
    ipv6: bool,
    client: u8,
    flow: usize,
    connection: usize,
    count: u32,
) -> Result<FlowKey, ScenarioError> {
    if connection + count as usize > CONNECTIONS_MAX {
        return Err(ScenarioError::TooManyConnections);
    }
    let client_port = CLIENT_PORTS + connection as u16;
    let address = |side: u8, host: u8| -> IpAddr {
        if ipv6 {
            Ipv6Addr::new(0xfd00, u16::from(side), 0, u16::from(host), 0, 0, 0, 1).into()
        } else {
            Ipv4Addr::new(10, side, host, 1).into()
        }
    };
    let src = SocketAddr::new(address(1, 0), server_port(flow));
    Ok(FlowKey::new(src, SocketAddr::new(address(2, client), client_port)))
}

/// Returns the number of a packet's transfer among all transfers of its scenario, in the order of flows. Each transfer
/// has its own port of the client.
pub fn transfer_of(key: &FlowKey) -> Option<usize> {
    let client_port = key.src.port().max(key.dst.port());
    client_port.checked_sub(CLIENT_PORTS).map(usize::from)
}

fn server_port(flow: usize) -> u16 {
    SERVER_PORTS + (flow as u16 % SERVER_PORTS_MAX)
}

const SERVER_PORTS: u16 = 5_001;
const SERVER_PORTS_MAX: u16 = 5_000;
const CLIENT_PORTS: u16 = 15_000;
const CONNECTIONS_MAX: usize = 50_000;

/// Seed of one direction of a link of the path. `direction` 0 is down, 1 is up.
fn link_seed(scenario: &Scenario, number: usize, direction: usize) -> u64 {
    let name = || format!("{}_{}", scenario.path[number].name, ["down", "up"][direction]);
    let given = scenario.link_seeds.get(number).map(|seeds| seeds[direction]);
    given.unwrap_or_else(|| seed_of(scenario.seed, &name()))
}

fn add_link(
    network: &mut Network<SimNode>,
    seed: u64,
    name: String,
    config: &LinkConfig,
    to: Hop,
) -> Result<NamedLink, ScenarioError> {
    let link = Link::new(config.clone(), seed, network.now())
        .map_err(|error| ScenarioError::Link(name.clone(), error))?;
    let id = network.add_link(link, to);
    let meter = LinkMeter::default();
    network.tap(id, Box::new(meter.clone()));
    Ok(NamedLink { name, id, meter })
}

fn path_delay(
    network: &mut Network<SimNode>,
    links: &[NamedLink],
    hops: usize,
    gateway_at: Option<usize>,
) -> Result<PathDelay, ScenarioError> {
    let last = hops.checked_sub(1).and_then(|last| links.get(last)).ok_or(ScenarioError::NoPath)?;
    // If packets wait at links between the first and the last one, the delay includes these links and their
    // propagation.
    let waits = |link: &NamedLink| !network.link(link.id).is_instant();
    let hops_wait = links[..hops].iter().skip(1).rev().skip(1).any(waits);
    let Some(at) = gateway_at.or(hops_wait.then_some(1)) else {
        return Ok(PathDelay::LastLink(last.meter.clone()));
    };
    let probe = PathProbe::default();
    let radio = if hops_wait { Some(last) } else { links[..hops].get(at) };
    let Some(radio) = radio else { return Err(ScenarioError::GatewayOutsidePath) };
    let wired = at.checked_sub(1).map(|before| links[before].id).ok_or(ScenarioError::GatewayOutsidePath)?;
    network.tap(wired, Box::new(probe.wired_side()));
    network.tap(radio.id, Box::new(probe.radio_side()));
    Ok(PathDelay::Probe(probe))
}

/// Watches the first and the last link of each direction. In `links`, downlinks come first, then uplinks; both from the
/// servers on.
fn add_checker(network: &mut Network<SimNode>, links: &[NamedLink], scenario: &Scenario) -> Checker {
    let checker = Checker::default();
    checker.ignore_bytes();
    let hops = scenario.path.len();
    let opportunistic = |flow: &Flow| match &flow.transport {
        Transport::Tcp(tcp) => {
            [tcp.server, tcp.client].iter().any(|end| end.opportunistic || end.schedule.exceeds_window())
        }
        Transport::Udp { .. } | Transport::Ping => false,
    };
    if scenario.flows.iter().any(opportunistic) {
        checker.allow_beyond_window();
    }
    for (out, into) in [(0, hops - 1), (2 * hops - 1, hops)] {
        network.tap(links[out].id, Box::new(checker.out_of_host()));
        network.tap(links[into].id, Box::new(checker.into_host()));
    }
    checker
}

fn add_gateway(
    network: &mut Network<SimNode>,
    scenario: &Scenario,
    at: &GatewayAt,
) -> Result<GatewayNode, ScenarioError> {
    if at.links_before == 0 || at.links_before >= scenario.path.len() {
        return Err(ScenarioError::GatewayOutsidePath);
    }
    let config = with_rules(scenario, &at.config);
    config.check().map_err(ScenarioError::Gateway)?;
    let log = Arc::new(Mutex::new(GatewayLog { sojourn: Quantiles::new(), acked: BTreeMap::new() }));
    let mut gateway = Gateway::with_observer(config, Box::new(Listener(log.clone())));
    gateway.set_memory(scenario.memory.clone());
    Ok(GatewayNode { id: network.add_node(SimNode::Gateway(Box::new(gateway))), log })
}

fn add_ad_hoc(
    network: &mut Network<SimNode>,
    scenario: &Scenario,
    at: &AdHocAt,
) -> Result<Between, ScenarioError> {
    if at.links_before == 0 || at.links_before >= scenario.path.len() {
        return Err(ScenarioError::AdHocOutsidePath);
    }
    let ad_hoc = AdHoc::new(&at.config, seed_of(scenario.seed, "ad-hoc")).map_err(ScenarioError::AdHoc)?;
    let (server, client) = at.config.between;
    let node = network.add_node(SimNode::AdHoc(Box::new(ad_hoc)));
    Ok(Between { links_before: at.links_before, node, ports: (PortId(server), PortId(client)) })
}

/// Puts a rule for each flow that passes unchanged or has a share of its own before those of the configuration.
fn with_rules(scenario: &Scenario, config: &GatewayConfig) -> GatewayConfig {
    let mut config = config.clone();
    let plain = ShareConfig::default();
    let own = scenario.flows.iter().enumerate().filter(|(_, flow)| flow.share != plain || flow.pass);
    let rules = own.map(|(number, flow)| {
        let port = server_port(number);
        FlowRule {
            matches: FlowMatch { server_ports: Some(port..=port), ..FlowMatch::default() },
            action: if flow.pass { FlowAction::Pass } else { FlowAction::Accelerate },
            share: flow.share.clone(),
            ..FlowRule::default()
        }
    });
    config.rules.flows = rules.chain(config.rules.flows).collect();
    config
}

/// Logs the gateway's events.
struct Listener(Arc<Mutex<GatewayLog>>);

impl Observer for Listener {
    fn on_event(&mut self, _now: Instant, flow: &FlowKey, event: &Event) {
        let Ok(mut log) = self.0.lock() else { return };
        match event {
            Event::Sent { sojourn, retransmission: false, .. } => log.sojourn.record(*sojourn),
            Event::Acked { .. } => {
                if let Some(transfer) = transfer_of(flow) {
                    log.acked.insert(transfer, *event);
                }
            }
            _ => {}
        }
    }
}
