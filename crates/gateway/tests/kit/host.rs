//! A host with any number of TCP connections, and a source and a sink of datagrams.

use std::collections::{HashMap, VecDeque};

use paceline_wire::{Duration, FlowKey, Instant, Node, Packet, Payload, PortId, Rate};

use super::connection::{Connection, EndpointConfig, Workload};

/// Datagrams at a constant rate.
#[derive(Clone, Debug)]
pub struct Datagrams {
    pub key: FlowKey,
    pub rate: Rate,
    pub ip_len: u32,
    pub from: Instant,
    pub to: Instant,
}

/// A host on one port.
#[derive(Debug, Default)]
pub struct Host {
    pub connections: Vec<Connection>,
    index: HashMap<FlowKey, usize>,
    /// Connections to open, with their times.
    opens: Vec<(Instant, usize)>,
    datagrams: Option<(Datagrams, Instant)>,
    pub datagram_bytes_received: u64,
    /// TCP packets without a connection.
    pub strays: u64,
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

    pub fn send_datagrams(&mut self, datagrams: Datagrams) {
        self.datagrams = Some((datagrams.clone(), datagrams.from));
    }

    /// Lets the application act on a connection.
    pub fn act(&mut self, id: usize, act: impl FnOnce(&mut Connection)) {
        act(&mut self.connections[id]);
        self.connections[id].take_packets(&mut self.out);
    }

    fn send_due_datagrams(&mut self, now: Instant) {
        let Some((source, next)) = &mut self.datagrams else { return };
        while *next <= now && *next < source.to {
            self.out.push_back(Packet::build_udp(source.key, Payload::Length(source.ip_len - 28)));
            *next += source.rate.time_for(u64::from(source.ip_len)).max(Duration::from_nanos(1));
        }
    }
}

impl Node for Host {
    fn handle_packet(&mut self, arrival: Instant, _port: PortId, packet: Packet) {
        let Some(key) = packet.flow_key() else {
            self.datagram_bytes_received += packet.ip_len() as u64;
            return;
        };
        let Some(&id) = self.index.get(&key.reversed()) else {
            self.strays += 1;
            return;
        };
        self.act(id, |connection| connection.on_packet(arrival, &packet));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.send_due_datagrams(now);
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
        let datagrams = self.datagrams.iter().filter(|(s, next)| *next < s.to).map(|(_, next)| *next);
        timers.chain(self.opens.iter().map(|(at, _)| *at)).chain(datagrams).min()
    }
}
