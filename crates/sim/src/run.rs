//! One run of a scenario.

mod group;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use paceline_gateway::auto::PathHistory;
use paceline_gateway::{Event, Gateway};
use paceline_path::random::Random;
use paceline_tcp::Status;
use paceline_wire::{Duration, FlowKey, Instant, Node, Packet, PortId};
use rayon::prelude::*;

use crate::checker::{Checker, GatewayChecker};
use crate::host::{DatagramSink, DatagramSource, PingClient, PingServer, Plan, SimNode, TcpHost, TcpSetup};
use crate::measure::Percentiles;
use crate::network::{Progress, Tap};
use crate::result::{Direction, FlowResult, GatewayResult, LinkResult, RunResult};
use crate::scenario::{Flow, Load, Scenario, ScenarioError, TcpFlow, Transport};
use crate::seed::seed_of;
use crate::topology::{NamedLink, PathDelay, Topology, key};
use crate::workload::Workload;
use group::Group;

/// Interval at which flows are looked at.
const STEP: Duration = Duration::from_millis(100);

/// Runs a scenario.
///
/// # Errors
/// Fails if the scenario cannot be simulated.
pub fn run(scenario: &Scenario) -> Result<RunResult, ScenarioError> {
    run_tapped(scenario, Vec::new())
}

/// Runs a scenario while taps watch some of its links. Taps name links as results do (`radio_down`).
///
/// # Errors
/// Fails if the scenario cannot be simulated.
pub fn run_tapped(scenario: &Scenario, taps: Vec<(&str, Box<dyn Tap>)>) -> Result<RunResult, ScenarioError> {
    run_watched(scenario, taps, &mut ())
}

/// Like [`run_tapped`], with a watch that looks on every 100 ms of the scenario's time and may end the run.
///
/// # Errors
/// Fails if the scenario cannot be simulated, and with [`ScenarioError::GivenUp`] if `watch` ends the run.
pub fn run_watched(
    scenario: &Scenario,
    taps: Vec<(&str, Box<dyn Tap>)>,
    watch: &mut dyn RunObserver,
) -> Result<RunResult, ScenarioError> {
    let mut run =
        Run { topology: Topology::build(scenario)?, scenario, groups: Vec::new(), findings: Vec::new() };
    for (name, tap) in taps {
        run.topology.tap(name, tap)?;
    }
    // A watch that acts may change the gateway's mode, and lets it get packets that pass no link.
    if scenario.checked && !watch.injects() {
        run.topology.check_gateway(scenario);
    }
    run.add_flows()?;
    run.run_until_end(watch)?;
    let at_end = run.at_end();
    if scenario.heals {
        run.topology.remove_faults(scenario)?;
    }
    run.run_until_done(watch)?;
    if let Some(SimNode::Gateway(node)) =
        run.topology.gateway.as_ref().map(|gateway| run.topology.network.node(gateway.id))
    {
        watch.memory(node.memory());
    }
    Ok(run.result(at_end))
}

/// Looks on while a scenario runs.
pub trait RunObserver {
    /// Sees the state of a sender whose transfer goes on. `transfer` is its number among all transfers of the scenario.
    fn sender(&mut self, _now: Instant, _transfer: usize, _status: &Status, _read_bytes: u64) {}

    /// Sees the state of the receiver of the same transfer. It is called before [`sender`](Self::sender).
    fn receiver(&mut self, _now: Instant, _transfer: usize, _status: &Status) {}

    /// Sees the gateway's last [`Event::Acked`] of a transfer.
    fn gateway(&mut self, _now: Instant, _transfer: usize, _event: &Event) {}

    /// Sees the gateway's memory at the end.
    fn memory(&mut self, _memory: &PathHistory) {}

    /// True if the watch wants to see senders and receivers. To look at all of them takes time.
    fn observes_ends(&self) -> bool {
        true
    }

    /// True if the watch acts on the gateway.
    fn injects(&self) -> bool {
        false
    }

    /// Acts on the gateway, for example replaces it by another one. Returns packets of an attacker, each with the port
    /// at which it arrives. They carry bytes. The scenario's hosts send only lengths, so the two can be told apart.
    fn inject(&mut self, _now: Instant, _gateway: &mut Gateway) -> Vec<(PortId, Packet)> {
        Vec::new()
    }

    /// Called after each step. `false` ends the run.
    fn goes_on(&mut self, _now: Instant) -> bool {
        true
    }
}

/// A watch that does nothing.
impl RunObserver for () {
    fn observes_ends(&self) -> bool {
        false
    }
}

/// Runs many scenarios on all cores, each by itself. The results are in order. They do not depend on the number of
/// cores.
///
/// # Errors
/// Fails if a scenario cannot be simulated.
pub fn run_all(scenarios: &[Scenario]) -> Result<Vec<RunResult>, ScenarioError> {
    scenarios.par_iter().map(run).collect()
}

struct Run<'a> {
    scenario: &'a Scenario,
    topology: Topology,
    groups: Vec<Group>,
    findings: Vec<String>,
}

/// Measurements over the scenario's duration, without the time until the last flow ended.
struct AtEnd {
    links: BTreeMap<String, LinkResult>,
    path_delay_ms: Percentiles,
    departures: u64,
    /// Results at this time, for the groups whose flows end then.
    flows: Vec<Vec<FlowResult>>,
}

impl Run<'_> {
    fn end(&self) -> Instant {
        self.scenario.begins + self.scenario.duration
    }

    fn add_flows(&mut self) -> Result<(), ScenarioError> {
        let mut connections = 0;
        for (number, flow) in self.scenario.flows.iter().enumerate() {
            // Sequential transfers share a pair of hosts. Every other transfer has its own pair.
            let (pairs, each) = if flow.sequential { (1, flow.count) } else { (flow.count, 1) };
            let mut sizes = Random::named(self.scenario.seed, &format!("size of {}", flow.name));
            for pair in 0..pairs {
                let down = key(flow.ipv6, flow.client, number, connections, each)?;
                connections += each as usize;
                let start = self.scenario.begins + flow.start + flow.interval * u64::from(pair);
                let (server, client) = match &flow.transport {
                    Transport::Tcp(tcp) => {
                        let plan = Plan::new(each, start, flow.sequential, flow.interval);
                        let seed = seed_of(self.scenario.seed, &format!("flow {number} {pair}"));
                        tcp_hosts(flow, tcp, down, plan, &mut sizes, seed)
                    }
                    Transport::Udp { rate, ip_bytes } => {
                        let interval = rate.time_for(u64::from(*ip_bytes));
                        datagram_hosts(flow.direction, down, *ip_bytes, interval, start, self.end())
                    }
                    Transport::Ping => {
                        let client = PingClient::new(down.reversed(), flow.interval, start, self.end());
                        (SimNode::PingServer(PingServer::new(down)), SimNode::PingClient(client))
                    }
                };
                let hosts = self.topology.add_pair(down, each, server, client);
                self.groups.push(Group::new(flow, pair, start, hosts).numbered(connections - each as usize));
            }
        }
        Ok(())
    }

    fn run_until_end(&mut self, watch: &mut dyn RunObserver) -> Result<(), ScenarioError> {
        let mut now = self.scenario.begins;
        while now < self.end() && !(self.scenario.ends_early && self.is_done()) {
            now = (now + STEP).min(self.end());
            self.step(now, watch)?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.groups.iter().all(|group| group.is_done(&self.topology.network))
    }

    /// Closes the flows without an end. Lets the other flows go on until `patience` ends.
    fn run_until_done(&mut self, watch: &mut dyn RunObserver) -> Result<(), ScenarioError> {
        let Topology { network, .. } = &mut self.topology;
        let end = network.now();
        for group in self.groups.iter().filter(|group| group.is_endless()) {
            if let SimNode::Tcp(host) = network.node_mut(group.sender()) {
                host.stop(end);
            }
        }
        let give_up = self.end() + self.scenario.patience;
        let mut now = end;
        while now < give_up && !self.is_done() {
            now += STEP;
            self.step(now, watch)?;
        }
        Ok(())
    }

    fn step(&mut self, now: Instant, watch: &mut dyn RunObserver) -> Result<(), ScenarioError> {
        if self.topology.network.run_until(now) == Progress::Stuck {
            return Err(ScenarioError::Stuck);
        }
        self.inject(now, watch);
        let network = &self.topology.network;
        let enough = |up: bool| {
            let direction = if up { "_up" } else { "_down" };
            let links = self.topology.links.iter().filter(|link| link.name.ends_with(direction));
            let capacity = links.filter_map(|link| network.link(link.id).capacity_bytes(now - STEP, now));
            capacity.min().unwrap_or(0) / 10
        };
        let enough = [enough(false), enough(true)];
        for group in &mut self.groups {
            group.look(network, now, enough, &mut self.findings, watch);
        }
        if let Some(log) = self.topology.gateway.as_ref().and_then(|gateway| gateway.log.lock().ok()) {
            log.acked.iter().for_each(|(transfer, event)| watch.gateway(now, *transfer, event));
        }
        if watch.goes_on(now) { Ok(()) } else { Err(ScenarioError::GivenUp) }
    }

    fn inject(&mut self, now: Instant, watch: &mut dyn RunObserver) {
        let Topology { network, gateway, .. } = &mut self.topology;
        let Some(id) = gateway.as_ref().map(|gateway| gateway.id) else { return };
        // `node_mut` lets the network call the node, even if nothing was done to it. So only a watch that acts may
        // reach it.
        if !watch.injects() {
            return;
        }
        let SimNode::Gateway(node) = network.node_mut(id) else { return };
        for (port, packet) in watch.inject(now, node) {
            network.node_mut(id).handle_packet(now, port, packet);
        }
    }

    fn at_end(&self) -> AtEnd {
        let Topology { network, links, path_delay, .. } = &self.topology;
        let link = |link: &NamedLink| {
            LinkResult::of(network.link(link.id), network.began()..network.now(), &link.meter.queue_delay())
        };
        AtEnd {
            links: links.iter().map(|named| (named.name.clone(), link(named))).collect(),
            path_delay_ms: match path_delay {
                PathDelay::Probe(probe) => probe.delays().percentiles(),
                PathDelay::LastLink(meter) => meter.queue_delay().percentiles(),
            },
            departures: self.departures(),
            flows: self.groups.iter().map(|group| group.results(network)).collect(),
        }
    }

    /// Packets transmitted by links that are not instant.
    fn departures(&self) -> u64 {
        let links = self.topology.links.iter().map(|named| self.topology.network.link(named.id));
        links.filter(|link| !link.is_instant()).map(|link| link.counters().transmitted.packets).sum()
    }

    fn result(&self, at_end: AtEnd) -> RunResult {
        let network = &self.topology.network;
        // Healed links count from zero again.
        let departures = self.departures() + if self.scenario.heals { at_end.departures } else { 0 };
        let gateway = self.topology.gateway.as_ref().and_then(|gateway| {
            let SimNode::Gateway(node) = network.node(gateway.id) else { return None };
            let sojourn_ms = gateway.log.lock().map(|log| log.sojourn.percentiles()).unwrap_or_default();
            Some(GatewayResult { sojourn_ms, counters: *node.counters() })
        });
        let flows = self.groups.iter().zip(at_end.flows);
        let flows =
            flows.flat_map(|(group, then)| if group.is_endless() { then } else { group.results(network) });
        let Topology { checker, gateway_checker, .. } = &self.topology;
        let checked = checker.iter().flat_map(Checker::findings);
        let checked = checked.chain(gateway_checker.iter().flat_map(GatewayChecker::findings));
        RunResult {
            seed: self.scenario.seed,
            duration_s: network.now().saturating_since(network.began()).as_secs_f64(),
            flows: flows.collect(),
            links: at_end.links,
            gateway,
            ad_hoc: self.topology.ad_hoc.and_then(|id| match network.node(id) {
                SimNode::AdHoc(node) => Some(node.counters()),
                _ => None,
            }),
            path_delay_ms: at_end.path_delay_ms,
            events: departures + network.counts().events,
            findings: checked.chain(self.findings.iter().cloned()).collect(),
        }
    }
}

fn datagram_hosts(
    direction: Direction,
    down: FlowKey,
    ip_bytes: u32,
    interval: Duration,
    start: Instant,
    end: Instant,
) -> (SimNode, SimNode) {
    let key = if direction == Direction::Down { down } else { down.reversed() };
    let source = SimNode::DatagramSource(DatagramSource::new(key, ip_bytes, interval, start, end));
    let sink = SimNode::DatagramSink(DatagramSink::default());
    if direction == Direction::Down { (source, sink) } else { (sink, source) }
}

fn tcp_hosts(
    flow: &Flow,
    tcp: &TcpFlow,
    down: FlowKey,
    plan: Plan,
    sizes: &mut Random,
    seed: u64,
) -> (SimNode, SimNode) {
    let workload = |_| match tcp.load {
        Load::Bulk => Workload::Bulk,
        Load::Size(range) => Workload::Bytes(range.draw(sizes)),
        Load::OnOff { on, off } => Workload::OnOff { on, off },
    };
    let workloads: Vec<Workload> = (0..plan.count).map(workload).collect();
    let (from_server, from_client) = match flow.direction {
        Direction::Down => (workloads, Vec::new()),
        Direction::Up => (Vec::new(), workloads),
    };
    let setup = |key, config, workloads, name| TcpSetup {
        workloads,
        reader: tcp.reader,
        ..TcpSetup::new(key, config, seed_of(seed, name))
    };
    let server = TcpHost::server(setup(down, tcp.server, from_server, "server"));
    let client = TcpHost::client(setup(down.reversed(), tcp.client, from_client, "client"), plan);
    (SimNode::Tcp(Box::new(server)), SimNode::Tcp(Box::new(client)))
}
