//! One run of a scenario.

use std::collections::BTreeMap;

use paceline_wire::{Duration, Instant};

use crate::host::{DatagramSink, DatagramSource, SimNode};
use crate::measure::Percentiles;
use crate::network::{NodeId, Progress};
use crate::result::{Direction, FlowResult, GatewayResult, LinkResult, RunResult, mbps};
use crate::scenario::{Flow, Scenario, ScenarioError, Transport};
use crate::topology::{PathDelay, Topology, key};

/// How often flows are looked at.
const STEP: Duration = Duration::from_millis(100);

/// Runs a scenario.
///
/// # Errors
/// What cannot be simulated.
pub fn run(scenario: &Scenario) -> Result<RunResult, ScenarioError> {
    let mut run = Run { topology: Topology::build(scenario)?, scenario, transfers: Vec::new() };
    run.add_flows()?;
    let at_end = run.go()?;
    Ok(run.result(at_end))
}

struct Run<'a> {
    scenario: &'a Scenario,
    topology: Topology,
    transfers: Vec<Transfer>,
}

/// One transfer of datagrams.
struct Transfer {
    flow: usize,
    index: u32,
    start: Instant,
    sink: NodeId,
}

/// What is measured over the scenario's duration, not until the last flow ended.
#[derive(Default)]
struct AtEnd {
    links: BTreeMap<String, LinkResult>,
    path_delay_ms: Percentiles,
    datagram_bytes: Vec<u64>,
}

impl Run<'_> {
    fn end(&self) -> Instant {
        Instant::ZERO + self.scenario.duration
    }

    fn add_flows(&mut self) -> Result<(), ScenarioError> {
        let mut connection = 0;
        for (number, flow) in self.scenario.flows.iter().enumerate() {
            for index in 0..flow.count {
                let start = Instant::ZERO + flow.start + flow.interval * u64::from(index);
                let down = key(flow.ipv6, flow.client, number, connection)?;
                connection += 1;
                let (server, client) = hosts(flow, down, start, self.end());
                let (server, client) = self.topology.add_pair(down, server, client);
                let sink = if flow.direction == Direction::Down { client } else { server };
                self.transfers.push(Transfer { flow: number, index, start, sink });
            }
        }
        Ok(())
    }

    fn go(&mut self) -> Result<AtEnd, ScenarioError> {
        let mut now = Instant::ZERO;
        while now < self.end() {
            now = (now + STEP).min(self.end());
            if self.topology.network.run_until(now) == Progress::Stuck {
                return Err(ScenarioError::Stuck);
            }
        }
        Ok(self.at_end())
    }

    fn at_end(&self) -> AtEnd {
        let Topology { network, links, path_delay, .. } = &self.topology;
        let link = |link: &crate::topology::NamedLink| {
            LinkResult::of(network.link(link.id), self.end(), &link.meter.queue_delay())
        };
        AtEnd {
            links: links.iter().map(|named| (named.name.clone(), link(named))).collect(),
            path_delay_ms: match path_delay {
                PathDelay::Probe(probe) => probe.delays().percentiles(),
                PathDelay::LastLink(meter) => meter.queue_delay().percentiles(),
            },
            datagram_bytes: self.transfers.iter().map(|transfer| self.sunk_bytes(transfer.sink)).collect(),
        }
    }

    fn sunk_bytes(&self, sink: NodeId) -> u64 {
        match self.topology.network.node(sink) {
            SimNode::DatagramSink(sink) => sink.bytes,
            _ => 0,
        }
    }

    fn result(&self, at_end: AtEnd) -> RunResult {
        let network = &self.topology.network;
        let gateway = self.topology.gateway.as_ref().and_then(|gateway| {
            let SimNode::Gateway(node) = network.node(gateway.id) else { return None };
            let sojourn_ms = gateway.sojourn.lock().map(|sojourn| sojourn.percentiles()).unwrap_or_default();
            Some(GatewayResult { sojourn_ms, counters: *node.counters() })
        });
        let flows = self.transfers.iter().zip(&at_end.datagram_bytes);
        RunResult {
            seed: self.scenario.seed,
            duration_s: network.now().as_secs_f64(),
            flows: flows.map(|(transfer, bytes)| self.datagrams(transfer, *bytes)).collect(),
            links: at_end.links,
            gateway,
            path_delay_ms: at_end.path_delay_ms,
            events: network.counts().events,
            findings: Vec::new(),
        }
    }

    fn datagrams(&self, transfer: &Transfer, bytes: u64) -> FlowResult {
        let Transfer { flow, index, start, .. } = *transfer;
        let flow = &self.scenario.flows[flow];
        let span = self.end().saturating_since(start);
        FlowResult {
            name: flow.name.clone(),
            index,
            direction: flow.direction,
            start_s: start.as_secs_f64(),
            bytes,
            goodput_mbps: mbps(bytes, span),
            completion_s: Some(span.as_secs_f64()),
            completed: true,
            ..FlowResult::default()
        }
    }
}

/// Server and client of a transfer.
fn hosts(flow: &Flow, down: paceline_wire::FlowKey, start: Instant, end: Instant) -> (SimNode, SimNode) {
    let Transport::Udp { rate, ip_bytes } = flow.transport;
    let key = if flow.direction == Direction::Down { down } else { down.reversed() };
    let interval = rate.time_for(u64::from(ip_bytes));
    let source = SimNode::DatagramSource(DatagramSource::new(key, ip_bytes, interval, start, end));
    let sink = SimNode::DatagramSink(DatagramSink::default());
    if flow.direction == Direction::Down { (source, sink) } else { (sink, source) }
}

#[cfg(test)]
mod tests {
    use paceline_gateway::GatewayConfig;
    use paceline_path::random::Probability;
    use paceline_path::{Delay, LinkConfig, Loss, QueueLimit, RateProcess};
    use paceline_wire::Rate;

    use super::*;
    use crate::scenario::{GatewayAt, PathLink};

    fn link(name: &str, mbps: f64, delay_ms: u64, loss_ppm: u64) -> PathLink {
        let config = LinkConfig {
            rate: RateProcess::Constant(Rate::from_mbps(mbps)),
            queue: QueueLimit::Packets(50),
            delay: Delay::Constant(Duration::from_millis(delay_ms)),
            loss: Loss::Independent(Probability::from_ppm(loss_ppm)),
            ..LinkConfig::default()
        };
        PathLink { name: name.into(), down: config.clone(), up: config }
    }

    fn datagrams(mbps: f64, direction: Direction) -> Flow {
        let transport = Transport::Udp { rate: Rate::from_mbps(mbps), ip_bytes: 1_000 };
        Flow { direction, transport, ..Flow::default() }
    }

    #[test]
    fn datagrams_fill_what_the_links_leave_them() {
        let scenario = Scenario {
            path: vec![link("wired", 100.0, 5, 0), link("radio", 10.0, 20, 10_000)],
            gateway: Some(GatewayAt { links_before: 1, config: GatewayConfig::default() }),
            flows: vec![
                Flow { count: 2, ..datagrams(8.0, Direction::Down) },
                datagrams(2.0, Direction::Up),
                Flow { client: 1, ipv6: true, ..datagrams(0.5, Direction::Down) },
            ],
            ..Scenario::default()
        };
        let result = run(&scenario).unwrap();
        assert_eq!(run(&scenario).unwrap(), result);
        let down: f64 = result.flows[..2].iter().chain(&result.flows[3..]).map(|f| f.goodput_mbps).sum();
        assert!((9.8..9.95).contains(&down), "{down} Mbit/s of 10, less 1 %");
        assert!((1.94..2.0).contains(&result.flows[2].goodput_mbps));
        let radio = &result.links["radio_down"];
        assert!(radio.utilization.unwrap() > 0.99 && radio.drops_by_cause["queue"] > 0);
        assert!(radio.drops_by_cause["loss"] > 80 && result.links["wired_down"].drops == 0);
        let queue_ms = radio.queue_delay_ms.p50.unwrap();
        assert!((35.0..41.0).contains(&queue_ms), "50 packets of 1,000 bytes at 10 Mbit/s: {queue_ms}");
        assert!(result.gateway.unwrap().counters.passed_not_tcp > 20_000);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(run(&Scenario::default()), Err(ScenarioError::NoPath));
        let path = vec![link("radio", 10.0, 20, 0)];
        let gateway = Some(GatewayAt { links_before: 1, config: GatewayConfig::default() });
        let outside = Scenario { path: path.clone(), gateway, ..Scenario::default() };
        assert_eq!(run(&outside), Err(ScenarioError::GatewayOutsidePath));
        let mut none = path;
        none[0].down.queue = QueueLimit::Packets(0);
        let result = run(&Scenario { path: none, ..Scenario::default() });
        assert!(matches!(result, Err(ScenarioError::Link(name, _)) if name == "radio_down"));
    }
}
