//! The flows and subscribers, who sends next, and whose timer is next.

use core::net::IpAddr;

use alloc::vec::Vec;

use hashbrown::HashMap;
use paceline_wire::{FlowKey, Instant};
use slab::Slab;

use crate::auto::Decision;
use crate::config::{GatewayConfig, ScheduleMode, ShareConfig};
use crate::flow::{Flow, LinkReport};
use crate::pool::Holdings;
use crate::ring::{Linked, Links};
use crate::rings::Rings;
use crate::schedule::Departure;
use crate::share::Share;
use crate::status::{FlowStatus, Page, SubscriberStatus};
use crate::subscriber::{Subscriber, prefix};
use crate::timers::{Timers, disarm};

mod other;

/// A flow and its place in circles and timers.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Entry {
    flow: Flow,
    /// What it may have of its subscriber's link.
    share: Share,
    /// The circle of its subscriber's in which it stands, and where.
    class: Option<usize>,
    links: Links,
    /// It stands there with something lost to repeat.
    repairing: bool,
    /// Its part of the shared memory, as its subscriber's holdings count it.
    holdings: Holdings,
    /// f_k of Eq. (6), and when its share changes: the schedule looks again at this time.
    departs_at: Option<Instant>,
    /// The timer that is set in the heap.
    armed: Option<Instant>,
}

impl Linked for Entry {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// All flows.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Table {
    entries: Slab<Entry>,
    #[cfg_attr(feature = "serde", serde(skip))]
    by_key: HashMap<FlowKey, u32>,
    subscribers: Slab<Subscriber>,
    #[cfg_attr(feature = "serde", serde(skip))]
    by_prefix: HashMap<IpAddr, u32>,
    /// Subscribers with something to send.
    active: Rings,
    /// What they have together.
    capacity: Share,
    timers: Timers,
    /// Subscribers that have, or had, packets other than TCP.
    other_timers: Timers,
    /// Those whose packets other than TCP may leave.
    stirred: Vec<u32>,
    max_flows: usize,
    idle_timeout_s: u64,
}

impl Table {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        Table {
            entries: Slab::new(),
            by_key: HashMap::new(),
            subscribers: Slab::new(),
            by_prefix: HashMap::new(),
            active: Rings::default(),
            capacity: Share::new(&ShareConfig {
                ceiling_mbps: config.sharing.capacity_mbps,
                ..ShareConfig::default()
            }),
            timers: Timers::default(),
            other_timers: Timers::default(),
            stirred: Vec::new(),
            max_flows: config.limits.max_flows,
            idle_timeout_s: config.limits.idle_timeout_s,
        }
    }

    /// Goes on here as it was in another process; what is not the flows' or subscribers' own is as `config` says.
    #[cfg(feature = "serde")]
    pub(crate) fn continued(mut self, config: &GatewayConfig) -> Table {
        let new = Table::new(config);
        (self.max_flows, self.idle_timeout_s) = (new.max_flows, new.idle_timeout_s);
        self.capacity = new.capacity.continued(&self.capacity);
        self.by_key = self.entries.iter().map(|(id, entry)| (entry.flow.key, id as u32)).collect();
        let prefixes = self.subscribers.iter().map(|(id, subscriber)| (subscriber.prefix, id as u32));
        self.by_prefix = prefixes.collect();
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Subscribers that have flows.
    pub(crate) fn subscribers(&self) -> usize {
        self.subscribers.len()
    }

    /// The flows in some places of the table.
    pub(crate) fn flow_statuses(
        &self,
        config: &GatewayConfig,
        from: usize,
        places: usize,
    ) -> Page<FlowStatus> {
        page(&self.entries, from, places, |entry| entry.flow.status(config))
    }

    /// The subscribers in some places.
    pub(crate) fn subscriber_statuses(&self, from: usize, places: usize) -> Page<SubscriberStatus> {
        page(&self.subscribers, from, places, Subscriber::status)
    }

    pub(crate) fn find(&self, key: &FlowKey) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    pub(crate) fn flow(&self, id: u32) -> &Flow {
        &self.entries[id as usize].flow
    }

    pub(crate) fn flow_mut(&mut self, id: u32) -> &mut Flow {
        &mut self.entries[id as usize].flow
    }

    /// What all flows of a flow's subscriber hold of the shared memory, as of their last packets and timeouts.
    pub(crate) fn holdings_of_subscriber(&self, id: u32) -> Holdings {
        self.subscribers[self.entries[id as usize].flow.subscriber as usize].holdings
    }

    /// Adds the flow that `make` returns for its subscriber, with its share; none if the table is full. Its link may have varied of late.
    pub(crate) fn insert(
        &mut self,
        config: &GatewayConfig,
        key: FlowKey,
        share: Share,
        link_varies: bool,
        make: impl FnOnce(u32) -> Flow,
    ) -> Option<u32> {
        if self.entries.len() >= self.max_flows || self.by_key.contains_key(&key) {
            return None;
        }
        let subscriber = self.subscriber_of(config, key.src.ip());
        if link_varies {
            self.subscribers[subscriber as usize].link_varied();
        }
        self.subscribers[subscriber as usize].flows += 1;
        let entry = Entry {
            flow: make(subscriber),
            share,
            class: None,
            links: Links::default(),
            repairing: false,
            holdings: Holdings::default(),
            departs_at: None,
            armed: None,
        };
        let id = self.entries.insert(entry) as u32;
        self.by_key.insert(key, id);
        Some(id)
    }

    /// The subscriber of a client, perhaps a new one.
    fn subscriber_of(&mut self, config: &GatewayConfig, client: IpAddr) -> u32 {
        let prefix = prefix(&config.sharing, client);
        let subscribers = &mut self.subscribers;
        *self
            .by_prefix
            .entry(prefix)
            .or_insert_with(|| subscribers.insert(Subscriber::new(prefix, config)) as u32)
    }

    /// A subscriber goes.
    fn forget(&mut self, index: u32) {
        self.deactivate(index);
        let subscriber = self.subscribers.remove(index as usize);
        self.by_prefix.remove(&subscriber.prefix);
    }

    /// Takes a flow out, and its subscriber with the last one.
    pub(crate) fn remove(&mut self, now: Instant, id: u32) -> Flow {
        self.leave(id);
        let entry = self.entries.remove(id as usize);
        self.by_key.remove(&entry.flow.key);
        let index = entry.flow.subscriber;
        let subscriber = &mut self.subscribers[index as usize];
        subscriber.holdings.replace(entry.holdings, Holdings::default());
        subscriber.outstanding = subscriber.outstanding.saturating_sub(entry.flow.in_flight());
        subscriber.forget_other();
        subscriber.flows -= 1;
        if subscriber.is_over() {
            self.forget(index);
        } else if subscriber.rings.is_empty() {
            self.deactivate(index);
        } else {
            // It may have been the one whose timer would bring the others back.
            self.activate(index, now);
        }
        entry.flow
    }

    /// After a packet or timeout: the subscriber learns what it said, the flow may send, its timer is set. Returns what `auto` decided
    /// about the link.
    pub(crate) fn after_event(
        &mut self,
        id: u32,
        now: Instant,
        in_flight_before: u64,
        report: &LinkReport,
        repairs: bool,
    ) -> Option<Decision> {
        let entry = &mut self.entries[id as usize];
        let index = entry.flow.subscriber;
        let subscriber = &mut self.subscribers[index as usize];
        let decision = subscriber.on_report(now, in_flight_before, entry.flow.in_flight(), report);
        subscriber.holdings.replace(entry.holdings, entry.flow.holdings());
        entry.holdings = entry.flow.holdings();
        entry.flow.set_path(subscriber.path());
        entry.departs_at = None;
        if entry.class.is_some() || entry.flow.wants_to_send() {
            self.join(id, now);
        }
        self.activate(index, now);
        self.stir(index);
        self.arm(id, repairs);
        decision
    }

    /// Flows of a subscriber.
    pub(crate) fn flows_of(&self, prefix: IpAddr) -> usize {
        self.by_prefix.get(&prefix).map_or(0, |&index| self.subscribers[index as usize].flows as usize)
    }

    /// After a packet of `bytes` left.
    pub(crate) fn after_sent(
        &mut self,
        id: u32,
        now: Instant,
        in_flight_before: u64,
        bytes: u64,
        repairs: bool,
    ) {
        let entry = &mut self.entries[id as usize];
        let index = entry.flow.subscriber;
        let more_in_flight = entry.flow.in_flight().saturating_sub(in_flight_before);
        entry.share.on_sent(now, bytes);
        let subscriber = &mut self.subscribers[index as usize];
        subscriber.on_sent(more_in_flight);
        subscriber.on_tcp_sent(now, bytes);
        subscriber.share.on_sent(now, bytes);
        self.capacity.on_sent(now, bytes);
        if entry.class.is_some() {
            self.join(id, now);
        }
        if self.subscribers[index as usize].class.is_some() {
            self.activate(index, now);
        }
        self.stir(index);
        self.arm(id, repairs);
    }

    /// The flow stands in the circle where its share places it now; at the back if it is new there.
    fn join(&mut self, id: u32, now: Instant) {
        let entry = &mut self.entries[id as usize];
        let subscriber = &mut self.subscribers[entry.flow.subscriber as usize];
        let class = entry.share.class(now);
        let repairing = entry.flow.head_is_lost();
        subscriber.repairing += u32::from(repairing);
        subscriber.repairing -= u32::from(entry.repairing);
        entry.repairing = repairing;
        entry.departs_at = entry.share.owed_at(now).into_iter().chain(subscriber.share.owed_at(now)).min();
        let before = entry.class.replace(class);
        if before != Some(class) {
            if let Some(before) = before {
                subscriber.rings.remove(before, &mut self.entries, id);
            }
            subscriber.rings.push_back(class, &mut self.entries, id);
        }
    }

    /// The flow has nothing to send, or must wait.
    fn leave(&mut self, id: u32) {
        let entry = &mut self.entries[id as usize];
        let subscriber = &mut self.subscribers[entry.flow.subscriber as usize];
        subscriber.repairing -= u32::from(entry.repairing);
        entry.repairing = false;
        entry.departs_at = None;
        entry.share.leave_turn();
        if let Some(class) = entry.class.take() {
            subscriber.rings.remove(class, &mut self.entries, id);
        }
    }

    /// A subscriber with something to send stands in the circle where its share places it now.
    fn activate(&mut self, index: u32, now: Instant) {
        let subscriber = &mut self.subscribers[index as usize];
        if subscriber.rings.is_empty() {
            return;
        }
        let class = subscriber.share.class(now);
        if subscriber.class != Some(class) {
            self.deactivate(index);
            self.subscribers[index as usize].class = Some(class);
            self.active.push_back(class, &mut self.subscribers, index);
        }
    }

    fn deactivate(&mut self, index: u32) {
        if let Some(class) = self.subscribers[index as usize].class.take() {
            self.active.remove(class, &mut self.subscribers, index);
        }
        self.stir(index);
    }

    /// The flow whose packet leaves next, and the bytes that packet may have.
    ///
    /// Subscribers take turns, and the flows of each, in the order of [`Share`]. Each is passed over when it cannot send, and
    /// moves to the back after as many packets as its weight (Section 7.2).
    pub(crate) fn next_sender(&mut self, now: Instant, mode: ScheduleMode) -> Option<(u32, u64)> {
        while let Some((class, index)) = self.active.front() {
            if let Some(at) = self.capacity.held_until(now) {
                let (_, id) = self.subscribers[index as usize].rings.front()?;
                self.look_again(id, at);
                return None;
            }
            if let Some(next) = self.next_of_subscriber(index, now, mode) {
                if self.subscribers[index as usize].share.take_turn() {
                    self.active.rotate(class, &mut self.subscribers);
                }
                return Some(next);
            }
            // Until an ACK, a packet or a timer brings it back.
            self.deactivate(index);
        }
        None
    }

    fn next_of_subscriber(&mut self, index: u32, now: Instant, mode: ScheduleMode) -> Option<(u32, u64)> {
        loop {
            let subscriber = &mut self.subscribers[index as usize];
            let (class, id) = subscriber.rings.front()?;
            if let Some(at) = subscriber.share.held_until(now) {
                self.look_again(id, at);
                return None;
            }
            let entry = &mut self.entries[id as usize];
            let waiting = match entry.flow.next_departure(mode, now) {
                Some(Departure::Now) => entry.share.held_until(now),
                Some(Departure::At(at)) => Some(at),
                _ => {
                    self.leave(id);
                    continue;
                }
            };
            if let Some(at) = waiting {
                self.leave(id);
                self.look_again(id, at);
                continue;
            }
            let bytes = entry.flow.next_bytes(subscriber.quantum());
            if entry.flow.head_is_lost() || subscriber.fits(bytes) {
                return Some(self.grant(class, id));
            }
            return self.next_repair(index, now, mode).map(|(class, id)| self.grant(class, id));
        }
    }

    /// What a flow's client waits for needs no room, whoever stands in front of it.
    fn next_repair(&mut self, index: u32, now: Instant, mode: ScheduleMode) -> Option<(usize, u32)> {
        let subscriber = &mut self.subscribers[index as usize];
        if subscriber.repairing == 0 {
            return None;
        }
        subscriber.rings.find(&mut self.entries, |entry| {
            entry.repairing
                && entry.flow.next_departure(mode, now) == Some(Departure::Now)
                && entry.share.held_until(now).is_none()
        })
    }

    /// The flow at the front of `class` takes its turn. Returns it and the bytes that its packet may have.
    fn grant(&mut self, class: usize, id: u32) -> (u32, u64) {
        let entry = &mut self.entries[id as usize];
        let subscriber = &mut self.subscribers[entry.flow.subscriber as usize];
        let bytes = entry.flow.next_bytes(subscriber.quantum());
        let limit = even_share(subscriber.room(), subscriber.rings.len()).max(bytes);
        let shares = [&entry.share, &subscriber.share, &self.capacity];
        let limit = shares.into_iter().map(Share::allowance).fold(limit, u64::min);
        if entry.share.take_turn() {
            subscriber.rings.rotate(class, &mut self.entries);
        }
        (id, limit)
    }

    /// The schedule looks at the flow again at `at`.
    fn look_again(&mut self, id: u32, at: Instant) {
        let entry = &mut self.entries[id as usize];
        entry.departs_at = Some(entry.departs_at.map_or(at, |other| other.min(at)));
        self.timers.set(&mut entry.armed, id, at);
    }

    /// The flow whose timer is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let entries = &mut self.entries;
        self.timers.tidy(entries.len(), |id| entries.get(id as usize)?.armed);
        self.timers.pop_due(now, |id, at| {
            entries.get_mut(id as usize).is_some_and(|entry| disarm(&mut entry.armed, at))
        })
    }

    /// When the next timer is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        [self.timers.next(), self.other_timers.next()].into_iter().flatten().min()
    }

    fn arm(&mut self, id: u32, repairs: bool) {
        let entry = &mut self.entries[id as usize];
        let expiry = entry.flow.expires_at(self.idle_timeout_s);
        let next =
            [entry.flow.deadline(repairs), entry.departs_at].into_iter().flatten().fold(expiry, Ord::min);
        self.timers.set(&mut entry.armed, id, next);
    }
}

pub(crate) fn page<T, U>(slab: &Slab<T>, from: usize, places: usize, copy: impl Fn(&T) -> U) -> Page<U> {
    // A slab has no more places than its capacity.
    let end = from.saturating_add(places).min(slab.capacity());
    let items = (from..end).filter_map(|place| slab.get(place)).map(copy).collect();
    Page { items, next: (end < slab.capacity()).then_some(end) }
}

/// How long a packet may be when `room` bytes are left and `flows` flows want to send. One flow takes super-packets
/// whole. Several take turns of an eighth of an even share, so that short intervals are shared as evenly as long ones.
fn even_share(room: u64, flows: u32) -> u64 {
    if flows <= 1 { room } else { room / (8 * u64::from(flows)) }
}
