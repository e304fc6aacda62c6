//! Remembers what earlier flows showed of clients and servers, in bounded memory and for a limited time.
//!
//! A client is known by its subscriber's prefix, a server by its network's prefix. The least recently used entry goes
//! first.

use core::net::IpAddr;

use paceline_wire::{Duration, Instant, Rate};

use crate::ids::{Arena, MemoryId};
use crate::keyed::{Key, Map, rekeyed};
use crate::ring::{Linked, Links, Ring};

/// Our choice: 16,384 clients and as many servers take some 4 MB. That is more than are active behind one radio cell.
const PLACES: usize = 16_384;
/// Our choice: the state of a radio link or its user ten minutes ago tells little about the present. The next flow
/// measures anew.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Our choice: how long late ACKs are remembered, because uploads end. One flow in a minute measures anew whether ACKs
/// still wait.
const LATE_ACKS_LAST: Duration = Duration::from_secs(60);
/// Our choice: loss shares cover the newest 4 MB or so, a few transfers' worth.
const BYTES_MAX: u64 = 4_000_000;
/// The longest prefixes routed in the Internet are /24 and /48. Addresses in one have the path in common.
const SERVER_BITS_V4: u32 = 24;
const SERVER_BITS_V6: u32 = 48;

/// What a flow showed in a second of its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowObservation {
    /// Payload that reached the client for the first time.
    pub(crate) delivered: u64,
    /// Payload found lost while no queue stood before the link: loss that does not follow load.
    pub(crate) lost: u64,
    /// The shortest round trip to the client.
    pub(crate) rtt: Option<Duration>,
    /// Round trip to the server; zero while unknown.
    pub(crate) server_rtt: Duration,
    /// The client's window.
    pub(crate) window: u64,
    /// Rate of the client's link; zero while unknown.
    pub(crate) rate: Rate,
    /// ACKs waited on the uplink all the time.
    pub(crate) late_acks: bool,
    /// The data that the gateway retransmitted had not been lost.
    pub(crate) needless_repairs: bool,
    /// It was a split flow, which shows only round trips.
    pub(crate) split: bool,
}

/// What the flows of a client showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClientRecord {
    /// The shortest round trip between gateway and client.
    pub rtt: Option<Duration>,
    /// Payload that reached it.
    pub delivered: u64,
    /// Payload that was lost.
    pub lost: u64,
    /// The largest window that it showed.
    pub window: u64,
    /// The highest rate of its link.
    pub rate: Rate,
    /// When repairs proved needless.
    pub needless_repairs: Option<Instant>,
    /// When ACKs last waited on the uplink.
    pub late_acks: Option<Instant>,
}

/// What is known of the ends of a new flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownPath {
    /// What is known of the client.
    pub client: Option<ClientRecord>,
    /// Round trip between gateway and server.
    pub server_rtt: Option<Duration>,
    /// When this was looked up.
    pub now: Instant,
}

impl KnownPath {
    /// The round trip between client and server, without queues.
    pub fn rtt(&self) -> Option<Duration> {
        Some(self.client?.rtt? + self.server_rtt?)
    }

    /// True if retransmissions to the client proved needless recently.
    pub fn has_needless_repairs(&self) -> bool {
        let at = self.client.and_then(|client| client.needless_repairs);
        at.is_some_and(|at| self.now.saturating_since(at) < FORGOTTEN)
    }

    /// True if ACKs of the client waited on the uplink within the last minute.
    pub fn has_late_acks(&self) -> bool {
        let at = self.client.and_then(|client| client.late_acks);
        at.is_some_and(|at| self.now.saturating_since(at) < LATE_ACKS_LAST)
    }
}

impl ClientRecord {
    fn note(&mut self, now: Instant, seen: &FlowObservation) {
        self.rtt = self.rtt.into_iter().chain(seen.rtt).min();
        if seen.split {
            return;
        }
        (self.delivered, self.lost) = (self.delivered + seen.delivered, self.lost + seen.lost);
        if self.delivered > BYTES_MAX {
            (self.delivered, self.lost) = (self.delivered / 2, self.lost / 2);
        }
        self.window = self.window.max(seen.window);
        self.rate = self.rate.max(seen.rate);
        if seen.needless_repairs {
            self.needless_repairs = Some(now);
        }
        if seen.late_acks {
            self.late_acks = Some(now);
        }
    }
}

/// All that is remembered.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct PathHistory {
    clients: AddressLru<ClientRecord>,
    servers: AddressLru<Duration>,
}

impl PathHistory {
    /// Records what a flow between `client` and `server` showed.
    pub(crate) fn note(&mut self, now: Instant, client: IpAddr, server: IpAddr, seen: &FlowObservation) {
        self.clients.get_or_insert(now, client, !seen.split).note(now, seen);
        if seen.server_rtt > Duration::ZERO {
            let shortest = self.servers.get_or_insert(now, server_prefix(server), true);
            let is_new = *shortest == Duration::ZERO;
            *shortest = if is_new { seen.server_rtt } else { seen.server_rtt.min(*shortest) };
        }
    }

    /// Hashes with another key.
    pub(crate) fn set_key(&mut self, key: Key) {
        rekeyed(&mut self.clients.by_address, key);
        rekeyed(&mut self.servers.by_address, key);
    }

    /// Returns the memory that another process wrote if it is consistent, otherwise an empty one.
    pub(crate) fn checked(self) -> PathHistory {
        if self.clients.is_sound() && self.servers.is_sound() { self } else { PathHistory::default() }
    }

    pub(super) fn look_up(&self, now: Instant, client: IpAddr, server: IpAddr) -> KnownPath {
        KnownPath {
            client: self.clients.get(now, client).copied(),
            server_rtt: self.servers.get(now, server_prefix(server)).copied(),
            now,
        }
    }
}

/// Returns the network by which a server is known.
pub(crate) fn server_prefix(server: IpAddr) -> IpAddr {
    match server {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() & (u32::MAX << (32 - SERVER_BITS_V4))).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << (128 - SERVER_BITS_V6))).into()),
    }
}

/// Values by address. The least recently noted one goes first.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct AddressLru<T> {
    all: Arena<MemoryId, LruEntry<T>>,
    by_address: Map<IpAddr, MemoryId>,
    /// The least recently noted one first.
    order: Ring<MemoryId>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct LruEntry<T> {
    address: IpAddr,
    value: T,
    /// Last renewal. After [`FORGOTTEN`] the value begins anew.
    noted: Instant,
    links: Links<MemoryId>,
}

impl<T> Linked for LruEntry<T> {
    type Id = MemoryId;

    fn links(&mut self) -> &mut Links<MemoryId> {
        &mut self.links
    }
}

impl<T> Default for AddressLru<T> {
    fn default() -> Self {
        AddressLru { all: Arena::new(), by_address: Map::default(), order: Ring::default() }
    }
}

impl<T> AddressLru<T> {
    fn is_sound(&self) -> bool {
        let links = |id| self.all.get(id).map(|place| place.links);
        let has_place = |(address, id): (&IpAddr, &MemoryId)| {
            self.all.get(*id).is_some_and(|place| place.address == *address)
        };
        self.by_address.len() == self.all.len()
            && self.by_address.iter().all(has_place)
            && self.order.is_consistent(self.all.iter().map(|(id, _)| id), links)
    }
}

impl<T: Default> AddressLru<T> {
    fn get(&self, now: Instant, address: IpAddr) -> Option<&T> {
        let place = &self.all[*self.by_address.get(&address)?];
        (now.saturating_since(place.noted) < FORGOTTEN).then_some(&place.value)
    }

    /// `renews`: the time until the value is forgotten begins anew.
    fn get_or_insert(&mut self, now: Instant, address: IpAddr, renews: bool) -> &mut T {
        let id = match self.by_address.get(&address) {
            Some(&id) => {
                self.order.remove(&mut self.all, id);
                id
            }
            None => self.insert(now, address),
        };
        self.order.push_back(&mut self.all, id);
        let place = &mut self.all[id];
        if now.saturating_since(place.noted) >= FORGOTTEN {
            place.value = T::default();
            place.noted = now;
        } else if renews {
            place.noted = now;
        }
        &mut place.value
    }

    fn insert(&mut self, now: Instant, address: IpAddr) -> MemoryId {
        if self.all.len() >= PLACES
            && let Some(oldest) = self.order.front()
        {
            self.order.remove(&mut self.all, oldest);
            let gone = self.all.remove(oldest);
            self.by_address.remove(&gone.address);
        }
        let place = LruEntry { address, value: T::default(), noted: now, links: Links::default() };
        let id = self.all.insert(place);
        self.by_address.insert(address, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_time::ms;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_rtt_of_a_new_flow_is_that_of_its_client_and_of_its_servers_network() {
        let mut memory = PathHistory::default();
        let seen = FlowObservation { rtt: Some(ms(60)), server_rtt: ms(20), ..FlowObservation::default() };
        memory.note(at(1), ip("10.0.0.1"), ip("192.0.2.1"), &seen);
        memory.note(at(2), ip("10.0.0.1"), ip("192.0.2.1"), &FlowObservation { rtt: Some(ms(90)), ..seen });
        let rtt = |client, server, s| memory.look_up(at(s), ip(client), ip(server)).rtt();
        assert_eq!(rtt("10.0.0.1", "192.0.2.200", 3), Some(ms(80)));
        assert_eq!(rtt("10.0.0.1", "198.51.100.1", 3), None);
        assert_eq!(rtt("10.0.0.2", "192.0.2.1", 3), None);
        assert_eq!(rtt("10.0.0.1", "192.0.2.1", 603), None);
    }

    #[test]
    fn late_acks_are_forgotten_after_a_minute_and_split_flows_do_not_renew_what_is_known() {
        let mut memory = PathHistory::default();
        let (client, server) = (ip("2001:db8::"), ip("2001:db8:1::1"));
        memory.note(
            at(0),
            client,
            server,
            &FlowObservation { late_acks: true, ..FlowObservation::default() },
        );
        assert!(memory.look_up(at(59), client, server).has_late_acks());
        assert!(!memory.look_up(at(61), client, server).has_late_acks());
        memory.note(
            at(300),
            client,
            server,
            &FlowObservation { split: true, rtt: Some(ms(50)), ..FlowObservation::default() },
        );
        assert!(memory.look_up(at(601), client, server).client.is_none());
    }

    #[test]
    fn memory_is_bounded_and_what_was_noted_last_stays() {
        let mut places = AddressLru::<u32>::default();
        let address = |n: u32| IpAddr::V4(n.into());
        for n in 0..2 * PLACES as u32 {
            *places.get_or_insert(at(0), address(n), true) = n;
            places.get_or_insert(at(0), address(0), true);
        }
        assert_eq!((places.all.len(), places.by_address.len()), (PLACES, PLACES));
        assert_eq!(places.get(at(1), address(0)), Some(&0));
        assert_eq!(places.get(at(1), address(2 * PLACES as u32 - 1)), Some(&(2 * PLACES as u32 - 1)));
        assert_eq!(places.get(at(1), address(1)), None);
    }

    #[test]
    fn shares_are_those_of_the_newest_data() {
        let mut record = ClientRecord::default();
        for _ in 0..100 {
            record.note(
                at(0),
                &FlowObservation { delivered: 1_000_000, lost: 100_000, ..FlowObservation::default() },
            );
        }
        for _ in 0..40 {
            record.note(at(0), &FlowObservation { delivered: 1_000_000, ..FlowObservation::default() });
        }
        assert!(record.delivered <= BYTES_MAX && record.lost < 1_000, "{record:?}");
    }
}
