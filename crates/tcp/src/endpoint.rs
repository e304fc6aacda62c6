//! A host: the connections behind one port.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::SocketAddr;

use hashbrown::HashMap;
use paceline_wire::{Duration, Flags, FlowKey, Instant, Node, Packet, Payload, PortId, Seq, TcpRepr};

use crate::config::Config;
use crate::connection::{Connection, mix};
use crate::segment::Incoming;

/// Identifies a connection of an [`Endpoint`]. Numbers are never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u32);

/// A host with one port. It opens and accepts connections.
///
/// Ended connections stay until [`remove`](Self::remove) is called. Segments of unknown connections are answered with a
/// reset.
#[derive(Debug, Default)]
pub struct Endpoint {
    slots: Vec<Option<Slot>>,
    by_key: HashMap<FlowKey, ConnectionId>,
    last: Option<(FlowKey, ConnectionId)>,
    listeners: Vec<(SocketAddr, Config)>,
    accepted: VecDeque<ConnectionId>,
    /// Connections that may have something to send.
    ready: VecDeque<ConnectionId>,
    /// Wake-up times, possibly too early. At most one is valid for each connection.
    timers: BTreeSet<(Instant, ConnectionId)>,
    resets: VecDeque<Packet>,
    seed: u64,
    opened: u64,
}

#[derive(Debug)]
struct Slot {
    connection: Connection,
    is_ready: bool,
    wake_up: Option<Instant>,
}

/// The only port of the host.
pub const PORT: PortId = PortId(0);

/// Our choice: the most resets that wait. More would only serve an attacker that floods the host.
const RESETS_MAX: usize = 64;
/// Our choice: the most connections, including ended ones that were not removed.
const CONNECTIONS_MAX: usize = 1 << 20;

impl Endpoint {
    /// A host without connections. `seed` determines initial sequence numbers.
    pub fn new(seed: u64) -> Self {
        Endpoint { seed, ..Endpoint::default() }
    }

    /// Accepts connections to this address and port. An unspecified address (`0.0.0.0`, `::`) stands for all addresses.
    pub fn listen(&mut self, address: SocketAddr, config: Config) {
        self.listeners.push((address, config));
    }

    /// Opens a connection.
    pub fn connect(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        config: &Config,
    ) -> ConnectionId {
        let key = FlowKey::new(local, remote);
        let seed = self.next_seed();
        self.insert(Connection::connect(config, key, seed, now))
    }

    /// Returns the next connection that a peer opened, once each. It may still be in its handshake.
    pub fn accept(&mut self) -> Option<ConnectionId> {
        self.accepted.pop_front()
    }

    /// The connection with this number.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id.0 as usize)?.as_ref().map(|slot| &slot.connection)
    }

    /// The connection with this number, for application calls. It is polled afterwards.
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.mark_ready(id);
        self.slots.get_mut(id.0 as usize)?.as_mut().map(|slot| &mut slot.connection)
    }

    /// All connections that were not removed.
    pub fn ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let present = |(n, slot): (usize, &Option<Slot>)| slot.as_ref().map(|_| ConnectionId(n as u32));
        self.slots.iter().enumerate().filter_map(present)
    }

    /// Removes a connection in any state.
    pub fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        let slot = self.slots.get_mut(id.0 as usize)?.take()?;
        if let Some(at) = slot.wake_up {
            self.timers.remove(&(at, id));
        }
        self.by_key.remove(&slot.connection.key().reversed());
        self.last = None;
        Some(slot.connection)
    }

    fn next_seed(&mut self) -> u64 {
        self.opened += 1;
        mix(self.seed ^ self.opened.rotate_left(32))
    }

    fn insert(&mut self, connection: Connection) -> ConnectionId {
        let id = ConnectionId(self.slots.len() as u32);
        self.by_key.insert(connection.key().reversed(), id);
        self.slots.push(Some(Slot { connection, is_ready: false, wake_up: None }));
        self.mark_ready(id);
        id
    }

    fn mark_ready(&mut self, id: ConnectionId) {
        if let Some(Some(slot)) = self.slots.get_mut(id.0 as usize)
            && !core::mem::replace(&mut slot.is_ready, true)
        {
            self.ready.push_back(id);
        }
    }

    /// Finds the connection of a packet. It is nearly always that of the last packet.
    fn find(&mut self, key: FlowKey) -> Option<ConnectionId> {
        if let Some((last, id)) = self.last
            && last == key
        {
            return Some(id);
        }
        let id = *self.by_key.get(&key)?;
        self.last = Some((key, id));
        Some(id)
    }

    fn on_unknown(&mut self, now: Instant, key: FlowKey, packet: &Packet) {
        let Some(incoming) = Incoming::parse(packet) else { return };
        if self.by_key.len() < CONNECTIONS_MAX
            && let Some(config) = self.listener(key.dst)
        {
            let seed = self.next_seed();
            if let Some(connection) = Connection::accept(&config, packet, seed, now) {
                let id = self.insert(connection);
                self.accepted.push_back(id);
                return;
            }
        }
        self.refuse(key, &incoming);
    }

    fn listener(&self, address: SocketAddr) -> Option<Config> {
        let serves = |listener: &SocketAddr| {
            listener.port() == address.port()
                && (listener.ip().is_unspecified() || listener.ip() == address.ip())
        };
        self.listeners.iter().find(|(listener, _)| serves(listener)).map(|(_, config)| *config)
    }

    /// RFC 9293, Section 3.10.7.1.
    fn refuse(&mut self, key: FlowKey, incoming: &Incoming) {
        if incoming.has(Flags::RST) || self.resets.len() >= RESETS_MAX {
            return;
        }
        let repr = match incoming.has(Flags::ACK) {
            true => TcpRepr { seq: incoming.ack, flags: Flags::RST, ..TcpRepr::default() },
            false => TcpRepr {
                seq: Seq(0),
                ack: incoming.seq.add(incoming.seq_len()),
                flags: Flags::RST | Flags::ACK,
                ..TcpRepr::default()
            },
        };
        self.resets.push_back(Packet::build_tcp(key.reversed(), &repr, Payload::Length(0)));
    }

    /// Updates the wake-up time of a connection. An earlier wake-up is kept: it does no harm, and timers mostly move
    /// later.
    fn refresh_timer(&mut self, id: ConnectionId) {
        let Some(Some(slot)) = self.slots.get_mut(id.0 as usize) else { return };
        let wanted = slot.connection.poll_timeout();
        let keep = match (slot.wake_up, wanted) {
            (Some(set), Some(wanted)) => set <= wanted && wanted.saturating_since(set) < LAZINESS,
            (None, None) => true,
            _ => false,
        };
        if keep {
            return;
        }
        if let Some(set) = slot.wake_up.take() {
            self.timers.remove(&(set, id));
        }
        slot.wake_up = wanted;
        if let Some(at) = wanted {
            self.timers.insert((at, id));
        }
    }
}

/// Our choice: a wake-up may come this much too early. So a timer that moves with every ACK is not sorted in again each
/// time.
const LAZINESS: Duration = Duration::from_secs(1);

impl Node for Endpoint {
    fn handle_packet(&mut self, arrival: Instant, _port: PortId, packet: Packet) {
        let Some(key) = packet.flow_key() else { return };
        match self.find(key) {
            Some(id) => {
                if let Some(connection) = self.connection_mut(id) {
                    connection.handle_packet(arrival, &packet);
                }
            }
            None => self.on_unknown(arrival, key, &packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            if let Some(Some(slot)) = self.slots.get_mut(id.0 as usize) {
                slot.wake_up = None;
                slot.connection.handle_timeout(now);
            }
            self.mark_ready(id);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        if let Some(reset) = self.resets.pop_front() {
            return Some((PORT, reset));
        }
        while let Some(&id) = self.ready.front() {
            if let Some(Some(slot)) = self.slots.get_mut(id.0 as usize) {
                if let Some(packet) = slot.connection.poll_transmit(now) {
                    return Some((PORT, packet));
                }
                slot.is_ready = false;
            }
            self.ready.pop_front();
            self.refresh_timer(id);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.ready.is_empty() || !self.resets.is_empty() {
            // Something changed since the last poll.
            return Some(Instant::ZERO);
        }
        self.timers.first().map(|&(at, _)| at)
    }
}
