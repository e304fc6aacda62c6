//! A host with any number of TCP connections.

use std::collections::{HashMap, VecDeque};

use paceline_wire::{FlowKey, Instant, Node, Packet, PortId};

use super::connection::{Connection, EndpointConfig, Workload};

/// A host on one port.
#[derive(Debug, Default)]
pub struct Host {
    pub connections: Vec<Connection>,
    index: HashMap<FlowKey, usize>,
    /// Connections to open, with their times.
    opens: Vec<(Instant, usize)>,
    out: VecDeque<Packet>,
}

impl Host {
    /// Adds an end of a connection. With `open_at: None` it waits for the peer.
    pub fn add(
        &mut self,
        key: FlowKey,
        config: EndpointConfig,
        workload: Workload,
        open_at: Option<Instant>,
    ) -> usize {
        let id = self.connections.len();
        self.connections.push(Connection::new(key, config, workload));
        self.index.insert(key, id);
        self.opens.extend(open_at.map(|at| (at, id)));
        id
    }

    /// Lets the application act on a connection.
    pub fn act(&mut self, id: usize, act: impl FnOnce(&mut Connection)) {
        act(&mut self.connections[id]);
        self.connections[id].take_packets(&mut self.out);
    }
}

impl Node for Host {
    fn handle_packet(&mut self, arrival: Instant, _port: PortId, packet: Packet) {
        let Some(key) = packet.flow_key() else { return };
        let Some(&id) = self.index.get(&key.reversed()) else { return };
        self.act(id, |connection| connection.on_packet(arrival, &packet));
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(i) = self.opens.iter().position(|(at, _)| *at <= now) {
            let (_, id) = self.opens.swap_remove(i);
            self.act(id, |connection| connection.open(now));
        }
        for id in 0..self.connections.len() {
            if self.connections[id].next_timeout().is_some_and(|at| at <= now) {
                self.act(id, |connection| connection.on_timeout(now));
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        self.out.pop_front().map(|packet| (PortId(0), packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let timers = self.connections.iter().filter_map(Connection::next_timeout);
        timers.chain(self.opens.iter().map(|(at, _)| *at)).min()
    }
}
