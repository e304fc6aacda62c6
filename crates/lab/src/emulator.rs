//! The live link emulator: links of `paceline-path` between pairs of ports, with measurements at them.

mod direction;
mod flows;
mod path_delay;
mod report;
mod series;

use std::collections::VecDeque;

use paceline_path::{ConfigError, LinkConfig, RateProcess};
use paceline_wire::{Flags, Instant, Node, Packet, PortId};

use direction::{Direction, Exit};
pub use flows::FlowDelivery;
use flows::Flows;
pub use path_delay::PathDelay;
use path_delay::Probe;
pub use report::{DirectionReport, EmulatorReport};
pub use series::Series;

/// A link in both directions.
#[derive(Clone, Debug)]
pub struct DuplexConfig {
    /// The name in reports.
    pub name: String,
    /// The port at the servers' end, and the one at the clients' end.
    pub ports: [PortId; 2],
    /// The direction towards the clients.
    pub downlink: LinkConfig<RateProcess>,
    /// The direction towards the servers.
    pub uplink: LinkConfig<RateProcess>,
    /// Seeds of the random choices: downlink, uplink.
    pub seeds: [u64; 2],
    /// Split super-packets before the link, as the model requires. If a link treats all packets alike, they may pass
    /// whole. This costs less, and the gateway sees what a receiver's offload would show it.
    pub split: bool,
    /// Packets that are not IP (ARP), and IPv6 neighbour discovery, only have the propagation delay: no queue and no
    /// loss.
    pub spare_neighbour_discovery: bool,
}

/// Links to emulate, and what to measure.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// The links.
    pub links: Vec<DuplexConfig>,
    /// Indices in `links` of the links before and behind the gateway, if the delay of the path between them is
    /// measured.
    pub path: Option<(usize, usize)>,
    /// Index of the link at whose ends the delivery to flows is counted, usually the last.
    pub delivery: usize,
}

/// A [`Node`] that emulates a set of links.
///
/// All measurements begin at the start and have bounded memory.
#[derive(Debug)]
pub struct Emulator {
    directions: Vec<Direction>,
    out: VecDeque<(PortId, Packet)>,
    measurements: Measurements,
    no_such_port: u64,
}

#[derive(Debug)]
struct Measurements {
    start: Instant,
    flows: Flows,
    /// Indices of the directions in which deliveries count.
    delivery: [usize; 2],
    probe: Option<PathProbe>,
}

#[derive(Debug)]
struct PathProbe {
    /// Index of the direction from which payload comes, then of the one into which it goes.
    wired: usize,
    radio: usize,
    probe: Probe,
}

impl Emulator {
    /// Creates links whose schedules begin at `start`.
    pub fn new(config: EmulatorConfig, start: Instant) -> Result<Self, ConfigError> {
        let mut directions = Vec::new();
        for link in config.links {
            let [server_end, client_end] = link.ports;
            let (name, seeds) = (link.name, link.seeds);
            let shape = direction::Shape { split: link.split, spare: link.spare_neighbour_discovery };
            for (way, ports, side, seed) in [
                ("down", [server_end, client_end], link.downlink, seeds[0]),
                ("up", [client_end, server_end], link.uplink, seeds[1]),
            ] {
                directions.push(Direction::new(format!("{name}_{way}"), ports, side, seed, shape, start)?);
            }
        }
        let probe = config.path.map(|(wired, radio)| PathProbe {
            wired: down_of(wired),
            radio: down_of(radio),
            probe: Probe::new(start),
        });
        let delivery = [down_of(config.delivery), up_of(config.delivery)];
        let measurements = Measurements { start, flows: Flows::new(start), delivery, probe };
        Ok(Emulator { directions, out: VecDeque::new(), measurements, no_such_port: 0 })
    }

    /// Restarts the schedules of all links and all measurements at `start`, which must not be later than the next
    /// packet. Packets in the links stay.
    pub fn restart_at(&mut self, start: Instant) {
        for direction in &mut self.directions {
            direction.restart_at(start);
        }
        self.measurements.start = start;
        self.measurements.flows = Flows::new(start);
        if let Some(path) = &mut self.measurements.probe {
            path.probe = Probe::new(start);
        }
    }

    /// Returns the measurements from the start until `now`.
    pub fn report(&self, now: Instant) -> EmulatorReport {
        EmulatorReport {
            duration: now.saturating_since(self.measurements.start),
            directions: self.directions.iter().map(|direction| direction.report(now)).collect(),
            path_delay: self.measurements.probe.as_ref().map(|path| path.probe.report()),
            flows: self.measurements.flows.report(),
            flows_not_tracked: self.measurements.flows.not_tracked(),
        }
    }
}

impl Measurements {
    /// Notes that a packet came out of the link of direction `index`.
    fn note(&mut self, index: usize, exit: Exit, packet: &Packet) {
        let Some(tcp) = packet.tcp() else { return };
        let len = packet.payload().len();
        let is_first = tcp.flags().contains(Flags::SYN);
        if len == 0 && !is_first {
            return;
        }
        let of_probe = self.probe.as_ref().is_some_and(|path| index == path.wired || index == path.radio);
        if !of_probe && !self.delivery.contains(&index) {
            return;
        }
        let Some(flow) = packet.flow_key().and_then(|key| self.flows.number(key)) else { return };
        if self.delivery.contains(&index) && len > 0 {
            self.flows.delivered(flow, exit.at, len);
        }
        let Some(path) = self.probe.as_mut() else { return };
        if is_first {
            path.probe.began(flow, index == path.radio, tcp.seq());
        }
        if len == 0 {
            return;
        }
        if index == path.wired {
            path.probe.left_wired_link(flow, tcp.seq(), len, packet.gso_size(), exit.at);
        } else if index == path.radio {
            path.probe.left_radio_link(flow, tcp.seq(), exit.sent, exit.queue_delay);
        }
    }
}

impl Node for Emulator {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        match self.directions.iter_mut().find(|direction| direction.from() == port) {
            Some(direction) => direction.send(arrival, packet),
            None => self.no_such_port += 1,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let Emulator { directions, out, measurements, .. } = self;
        for (index, direction) in directions.iter_mut().enumerate() {
            if direction.next_event().is_none_or(|due| due > now) {
                continue;
            }
            let to = direction.to();
            direction.advance(now, &mut |exit, packet| {
                if let Some(exit) = exit {
                    measurements.note(index, exit, &packet);
                }
                out.push_back((to, packet));
            });
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.directions.iter().filter_map(Direction::next_event).min()
    }
}

/// Index of a link's downlink, in the order of [`Emulator::new`].
fn down_of(link: usize) -> usize {
    2 * link
}

fn up_of(link: usize) -> usize {
    2 * link + 1
}

#[cfg(test)]
mod tests;
