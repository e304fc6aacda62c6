//! The flows and subscribers, who sends next, and whose timer is next.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use hashbrown::HashMap;
use paceline_wire::{FlowKey, Instant};
use slab::Slab;

use crate::config::{GatewayConfig, ScheduleMode};
use crate::flow::{Flow, LinkReport};
use crate::schedule::Departure;
use crate::status::{FlowStatus, Page, SubscriberStatus};
use crate::subscriber::{Subscriber, prefix};
use crate::timers::{Timers, disarm};

/// A flow and its place in rings and timers.
struct Entry {
    flow: Flow,
    /// It is in its subscriber's ring.
    in_ring: bool,
    /// Packets left in this round (Section 7.2).
    turn: u32,
    /// f_k of Eq. (6): the schedule looks again at this time.
    departs_at: Option<Instant>,
    /// The timer that is set in the heap.
    armed: Option<Instant>,
}

/// All flows.
pub(crate) struct Table {
    entries: Slab<Entry>,
    by_key: HashMap<FlowKey, u32>,
    subscribers: Slab<Subscriber>,
    by_prefix: HashMap<IpAddr, u32>,
    /// Subscribers with something to send, in round-robin order.
    active: VecDeque<u32>,
    timers: Timers,
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
            active: VecDeque::new(),
            timers: Timers::default(),
            max_flows: config.limits.max_flows,
            idle_timeout_s: config.limits.idle_timeout_s,
        }
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

    /// Adds the flow that `make` returns for its subscriber; none if the table is full.
    pub(crate) fn insert(
        &mut self,
        config: &GatewayConfig,
        key: FlowKey,
        make: impl FnOnce(u32) -> Flow,
    ) -> Option<u32> {
        if self.entries.len() >= self.max_flows || self.by_key.contains_key(&key) {
            return None;
        }
        let prefix = prefix(&config.sharing, key.src.ip());
        let subscribers = &mut self.subscribers;
        let subscriber = *self.by_prefix.entry(prefix).or_insert_with(|| {
            subscribers.insert(Subscriber::new(prefix, &config.queue_bound, &config.sharing)) as u32
        });
        self.subscribers[subscriber as usize].flows += 1;
        let flow = make(subscriber);
        let turn = flow.weight;
        let entry = Entry { flow, in_ring: false, turn, departs_at: None, armed: None };
        let id = self.entries.insert(entry) as u32;
        self.by_key.insert(key, id);
        Some(id)
    }

    /// Takes a flow out, and its subscriber with the last one.
    pub(crate) fn remove(&mut self, id: u32) -> Flow {
        let entry = self.entries.remove(id as usize);
        self.by_key.remove(&entry.flow.key);
        let index = entry.flow.subscriber;
        let subscriber = &mut self.subscribers[index as usize];
        subscriber.outstanding = subscriber.outstanding.saturating_sub(entry.flow.in_flight());
        subscriber.flows -= 1;
        if entry.in_ring {
            subscriber.ring.retain(|&other| other != id);
        }
        if subscriber.flows == 0 {
            let subscriber = self.subscribers.remove(index as usize);
            self.by_prefix.remove(&subscriber.prefix);
            if subscriber.active {
                self.active.retain(|&other| other != index);
            }
        }
        entry.flow
    }

    /// After a packet or timeout: the subscriber learns what it said, the flow may send, its timer is set.
    pub(crate) fn after_event(
        &mut self,
        id: u32,
        now: Instant,
        in_flight_before: u64,
        report: &LinkReport,
        repairs: bool,
    ) {
        let entry = &mut self.entries[id as usize];
        let index = entry.flow.subscriber;
        let subscriber = &mut self.subscribers[index as usize];
        subscriber.on_report(now, in_flight_before, entry.flow.in_flight(), report);
        entry.flow.set_path(subscriber.path());
        entry.departs_at = None;
        if !entry.in_ring && entry.flow.wants_to_send() {
            entry.in_ring = true;
            subscriber.ring.push_back(id);
        }
        if !subscriber.active && !subscriber.ring.is_empty() {
            subscriber.active = true;
            self.active.push_back(index);
        }
        self.arm(id, repairs);
    }

    /// After a packet left.
    pub(crate) fn after_sent(&mut self, id: u32, in_flight_before: u64, repairs: bool) {
        let entry = &mut self.entries[id as usize];
        let bytes = entry.flow.in_flight().saturating_sub(in_flight_before);
        self.subscribers[entry.flow.subscriber as usize].on_sent(bytes);
        self.arm(id, repairs);
    }

    /// The flow whose packet leaves next, and the bytes that packet may have.
    ///
    /// Two rings: subscribers, and the flows of each. Each is passed over when it cannot send, and moves to the back
    /// after as many packets as its weight (Section 7.2).
    pub(crate) fn next_sender(&mut self, now: Instant, mode: ScheduleMode) -> Option<(u32, u64)> {
        while let Some(&index) = self.active.front() {
            if let Some(next) = self.next_of_subscriber(index, now, mode) {
                let subscriber = &mut self.subscribers[index as usize];
                subscriber.turn -= 1;
                if subscriber.turn == 0 {
                    subscriber.turn = subscriber.weight;
                    self.active.rotate_left(1);
                }
                return Some(next);
            }
            // Until an ACK, a packet or a timer brings it back.
            self.active.pop_front();
            self.subscribers[index as usize].active = false;
        }
        None
    }

    fn next_of_subscriber(&mut self, index: u32, now: Instant, mode: ScheduleMode) -> Option<(u32, u64)> {
        let subscriber = &mut self.subscribers[index as usize];
        while let Some(&id) = subscriber.ring.front() {
            let entry = &mut self.entries[id as usize];
            match entry.flow.next_departure(mode, now) {
                Some(Departure::Now) => {
                    let bytes = entry.flow.next_bytes(subscriber.quantum());
                    if !entry.flow.head_is_lost() && !subscriber.fits(bytes) {
                        // What a flow's client waits for needs no room, whoever stands in front of it.
                        let repair = subscriber.ring.iter().position(|&id| {
                            let flow = &self.entries[id as usize].flow;
                            flow.head_is_lost() && flow.next_departure(mode, now) == Some(Departure::Now)
                        })?;
                        subscriber.ring.rotate_left(repair);
                        continue;
                    }
                    let limit = share(subscriber.room(), subscriber.ring.len()).max(bytes);
                    entry.turn -= 1;
                    if entry.turn == 0 {
                        entry.turn = entry.flow.weight;
                        subscriber.ring.rotate_left(1);
                    }
                    return Some((id, limit));
                }
                waiting => {
                    subscriber.ring.pop_front();
                    entry.in_ring = false;
                    entry.turn = entry.flow.weight;
                    if let Some(Departure::At(at)) = waiting {
                        entry.departs_at = Some(at);
                        self.timers.set(&mut entry.armed, id, at);
                    }
                }
            }
        }
        None
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
        self.timers.next()
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
fn share(room: u64, flows: usize) -> u64 {
    if flows <= 1 { room } else { room / (8 * flows as u64) }
}
