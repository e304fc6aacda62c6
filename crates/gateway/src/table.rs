//! All flows and subscribers, the order of turns, and the timers.

use alloc::boxed::Box;
use core::net::IpAddr;

use alloc::vec::Vec;

use paceline_wire::{Duration, FlowKey, Instant};

use crate::auto::server_prefix;
use crate::config::{GatewayConfig, ShareConfig};
use crate::flow::Flow;
use crate::half_open::{Group, HalfOpen, Ticket};
use crate::ids::{Arena, EntryId, Id, SplitFlowId, SubscriberId};
use crate::keyed::{Key, Map, rekeyed};
use crate::link_report::LinkReport;
use crate::pool::MemoryUse;
use crate::priority_round_robin::PriorityRoundRobin;
use crate::ring::{Linked, Links};
use crate::scheduler_entry::SchedulerEntry;
use crate::share::Share;
use crate::status::{FlowStatus, Page, SubscriberStatus};
use crate::subscriber::{LimitShare, Subscriber};
use crate::timers::{Timers, disarm};

mod non_tcp;
mod sound;
mod split;
mod turns;

/// A flow and its place in circles and timers.
#[derive(serde::Serialize, serde::Deserialize)]
struct Entry {
    #[serde(rename = "member")]
    scheduled: SchedulerEntry,
    /// Its share of its subscriber's link.
    share: Share,
    /// The class of the circle in which it stands. `links` is its place there.
    class: Option<usize>,
    /// True if that circle is one of those that need no room.
    #[serde(default)]
    free: bool,
    links: Links<EntryId>,
    /// True if it stands there with a lost segment to retransmit.
    repairing: bool,
    /// True if it has ended and is counted so by its subscriber.
    #[serde(default)]
    has_ended: bool,
    /// Its memory use, as its subscriber's `memory_use` counts it.
    #[serde(rename = "holdings")]
    memory_use: MemoryUse,
    /// Time at which the schedule looks again: f_k of Eq. (6), or when its share changes.
    departs_at: Option<Instant>,
    /// Its timer in the heap.
    armed: Option<Instant>,
    /// Serial number and groups, while it is counted as half open.
    #[serde(skip)]
    half_open: Option<(u32, [Group; 3])>,
}

impl Linked for Entry {
    type Id = EntryId;

    fn links(&mut self) -> &mut Links<EntryId> {
        &mut self.links
    }
}

/// All flows.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Table {
    entries: Arena<EntryId, Entry>,
    #[serde(skip)]
    by_key: Map<FlowKey, EntryId>,
    subscribers: Arena<SubscriberId, Subscriber>,
    #[serde(skip)]
    by_prefix: Map<IpAddr, SubscriberId>,
    /// Subscribers with something to send.
    active: PriorityRoundRobin<SubscriberId>,
    /// The rate that all subscribers share.
    capacity: Share,
    timers: Timers<EntryId>,
    /// Timers of subscribers that have, or had, packets other than TCP.
    #[serde(rename = "other_timers")]
    non_tcp_timers: Timers<SubscriberId>,
    /// Subscribers whose waiting packets other than TCP may be able to leave.
    stirred: Vec<SubscriberId>,
    max_flows: usize,
    idle_timeout_s: u64,
    #[serde(skip)]
    half_open: HalfOpen,
    /// Serial number of the newest half-open flow.
    #[serde(skip)]
    serial: u32,
    /// True if packets wait for the gateway itself.
    #[serde(skip)]
    pub(crate) crowded: bool,
}

impl Table {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        Table {
            entries: Arena::new(),
            by_key: Map::default(),
            subscribers: Arena::new(),
            by_prefix: Map::default(),
            active: PriorityRoundRobin::default(),
            capacity: Share::new(&ShareConfig {
                ceiling_mbps: config.sharing.capacity_mbps,
                ..ShareConfig::default()
            }),
            timers: Timers::default(),
            non_tcp_timers: Timers::default(),
            stirred: Vec::new(),
            max_flows: config.limits.max_flows,
            idle_timeout_s: config.limits.idle_timeout_s,
            half_open: HalfOpen::default(),
            serial: 0,
            crowded: false,
        }
    }

    /// Continues a table of another process. Only what belongs to flows and subscribers is kept; the rest follows
    /// `config`. `goes_on` says whether the split flow with this place and number could be read.
    pub(crate) fn continued(
        mut self,
        config: &GatewayConfig,
        goes_on: impl Fn(EntryId, SplitFlowId) -> bool,
    ) -> Table {
        let new = Table::new(config);
        (self.max_flows, self.idle_timeout_s) = (new.max_flows, new.idle_timeout_s);
        self.capacity = new.capacity.continued(&self.capacity);
        let prefixes = self.subscribers.iter().map(|(id, subscriber)| (subscriber.prefix, id));
        self.by_prefix = prefixes.collect();
        let has_ended = |(place, entry): (EntryId, &Entry)| match &entry.scheduled {
            SchedulerEntry::Split(own) if !goes_on(place, own.flow) => Some(place),
            _ => None,
        };
        let ended: Vec<EntryId> = self.entries.iter().filter_map(has_ended).collect();
        for id in ended {
            // The other flows find their circles with their next events.
            self.remove(Instant::ZERO, id);
        }
        let flows = self.entries.iter().filter_map(|(id, entry)| match &entry.scheduled {
            SchedulerEntry::Flow(flow) => Some((flow.key, id)),
            SchedulerEntry::Split(_) => None,
        });
        self.by_key = flows.collect();
        // Half-open transparent flows are counted again by their addresses. Nobody asks for half-open split flows.
        let half_open = self.entries.iter().filter_map(|(id, entry)| match &entry.scheduled {
            SchedulerEntry::Flow(flow) if flow.is_half_open() => Some((id, flow.key.dst.ip())),
            _ => None,
        });
        for (id, server) in half_open.collect::<Vec<_>>() {
            self.begin_half_open(id, server);
        }
        self
    }

    /// Hashes with another key.
    pub(crate) fn set_key(&mut self, key: Key) {
        rekeyed(&mut self.by_key, key);
        rekeyed(&mut self.by_prefix, key);
        self.half_open.set_key(key);
    }

    /// Counts the memory of transparent flows and packets other than TCP. Another program may have counted differently.
    pub(crate) fn recount(&mut self) -> u64 {
        let mut kept = 0;
        for subscriber in self.subscribers.values_mut() {
            let Some((before, now)) = subscriber.non_tcp.as_mut().map(|non_tcp| non_tcp.recount()) else {
                continue;
            };
            subscriber.memory_use.replace(before, now);
            kept += now.kept;
        }
        for entry in self.entries.values_mut() {
            if let SchedulerEntry::Flow(flow) = &mut entry.scheduled {
                flow.recount(&mut kept);
            }
        }
        kept
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of subscribers, those without TCP flows included.
    pub(crate) fn subscribers(&self) -> usize {
        self.subscribers.len()
    }

    /// Returns the transparent flows in some places of the table.
    pub(crate) fn flow_statuses(
        &self,
        config: &GatewayConfig,
        from: usize,
        places: usize,
    ) -> Page<FlowStatus> {
        page(&self.entries, from, places, |entry| match &entry.scheduled {
            SchedulerEntry::Flow(flow) => Some(flow.status(config)),
            SchedulerEntry::Split(_) => None,
        })
    }

    /// Returns the subscribers in some places.
    pub(crate) fn subscriber_statuses(&self, from: usize, places: usize) -> Page<SubscriberStatus> {
        page(&self.subscribers, from, places, |subscriber| Some(subscriber.status()))
    }

    pub(crate) fn find(&self, key: &FlowKey) -> Option<EntryId> {
        self.by_key.get(key).copied()
    }

    /// Returns the transparent flow in this place, if there is one. Every place found by key has one.
    pub(crate) fn flow(&self, id: EntryId) -> Option<&Flow> {
        match &self.entries.get(id)?.scheduled {
            SchedulerEntry::Flow(flow) => Some(flow),
            SchedulerEntry::Split(_) => None,
        }
    }

    /// As [`flow`](Self::flow), with the memory that its subscriber holds.
    pub(crate) fn flow_mut(&mut self, id: EntryId) -> Option<(&mut Flow, MemoryUse)> {
        match &mut self.entries.get_mut(id)?.scheduled {
            SchedulerEntry::Flow(flow) => {
                let subscriber = self.subscribers.get(flow.subscriber())?;
                Some((flow, subscriber.memory_use))
            }
            SchedulerEntry::Split(_) => None,
        }
    }

    /// Returns what an entry with `own` bytes in flight may have outstanding. `u64::MAX` if nothing bounds its
    /// subscriber.
    pub(crate) fn share_of_limit(&self, id: EntryId, own: u64, srtt: Duration) -> LimitShare {
        self.subscribers[self.entries[id].scheduled.subscriber()].share_of_limit(own, srtt)
    }

    /// Returns the bytes that an entry may send in one turn. No limit if no other flow of its subscriber wants to send.
    pub(crate) fn turn_bytes(&self, id: EntryId) -> u64 {
        let entry = &self.entries[id];
        let subscriber = &self.subscribers[entry.scheduled.subscriber()];
        let others = subscriber.senders() - u32::from(entry.class.is_some());
        if others == 0 { u64::MAX } else { subscriber.downlink.quantum() }
    }

    /// Returns the size below which a super-packet to the entry's subscriber is not cut.
    pub(crate) fn quantum(&self, id: EntryId) -> u64 {
        self.subscribers[self.entries[id].scheduled.subscriber()].downlink.quantum()
    }

    /// Returns the memory that all flows of a flow's subscriber hold, as of their last packets and timeouts.
    pub(crate) fn memory_use_of_subscriber(&self, id: EntryId) -> MemoryUse {
        self.subscribers[self.entries[id].scheduled.subscriber()].memory_use
    }

    /// Adds the flow that `make` returns for its subscriber, with its share. None if the table is full.
    pub(crate) fn insert(
        &mut self,
        config: &GatewayConfig,
        key: FlowKey,
        share: Share,
        make: impl FnOnce(SubscriberId) -> Flow,
    ) -> Option<EntryId> {
        if self.entries.len() >= self.max_flows || self.by_key.contains_key(&key) {
            return None;
        }
        let subscriber = self.subscriber_of(config, key.src.ip());
        let id = self.enter(subscriber, share, SchedulerEntry::Flow(Box::new(make(subscriber))));
        self.by_key.insert(key, id);
        if self.entries[id].scheduled.is_half_open() {
            self.begin_half_open(id, key.dst.ip());
        }
        Some(id)
    }

    fn enter(&mut self, subscriber: SubscriberId, share: Share, scheduled: SchedulerEntry) -> EntryId {
        self.subscribers[subscriber].flows += 1;
        let entry = Entry {
            scheduled,
            share,
            class: None,
            free: false,
            links: Links::default(),
            repairing: false,
            has_ended: false,
            memory_use: MemoryUse::default(),
            departs_at: None,
            armed: None,
            half_open: None,
        };
        self.entries.insert(entry)
    }

    fn begin_half_open(&mut self, id: EntryId, server: IpAddr) {
        self.serial = self.serial.wrapping_add(1);
        let (serial, entries) = (self.serial, &mut self.entries);
        let entry = &mut entries[id];
        let subscriber = Group::Subscriber(entry.scheduled.subscriber());
        let groups = [Group::All, subscriber, Group::Network(server_prefix(server))];
        entry.half_open = Some((serial, groups));
        self.half_open.add(groups, Ticket { place: id, serial }, |ticket| has_ticket(entries, ticket));
    }

    fn end_half_open(&mut self, id: EntryId) {
        if let Some((_, groups)) = self.entries[id].half_open.take() {
            self.half_open.leave(groups);
        }
    }

    /// Returns the half-open flow that must go before another one of this subscriber and server. If the subscriber or
    /// the server's network has too many, it is their oldest. Otherwise, with `needs_room`, it is the oldest of all.
    pub(crate) fn next_to_go(
        &mut self,
        subscriber: IpAddr,
        server: IpAddr,
        needs_room: bool,
    ) -> Option<EntryId> {
        let own = self.by_prefix.get(&subscriber).map(|&index| Group::Subscriber(index));
        let network = Group::Network(server_prefix(server));
        let (half_open, places) = (&self.half_open, self.max_flows);
        let full = own.into_iter().chain([network]).find(|&group| half_open.is_full(group, places));
        let group = full.or(needs_room.then_some(Group::All))?;
        self.half_open.oldest(group, |ticket| has_ticket(&self.entries, ticket))
    }

    /// Returns the oldest half-open flow if there are more than `most`.
    pub(crate) fn oldest_beyond(&mut self, most: usize) -> Option<EntryId> {
        if self.half_open.len() <= most {
            return None;
        }
        self.half_open.oldest(Group::All, |ticket| has_ticket(&self.entries, ticket))
    }

    /// Returns the oldest half-open flow of a subscriber.
    pub(crate) fn oldest_of(&mut self, subscriber: IpAddr) -> Option<EntryId> {
        let group = Group::Subscriber(*self.by_prefix.get(&subscriber)?);
        self.half_open.oldest(group, |ticket| has_ticket(&self.entries, ticket))
    }

    /// Returns the subscriber of a client. Adds it if it is new.
    fn subscriber_of(&mut self, config: &GatewayConfig, client: IpAddr) -> SubscriberId {
        let prefix = config.sharing.subscriber(client);
        let subscribers = &mut self.subscribers;
        *self.by_prefix.entry(prefix).or_insert_with(|| subscribers.insert(Subscriber::new(prefix, config)))
    }

    /// Removes a subscriber.
    fn forget(&mut self, index: SubscriberId) {
        self.deactivate(index);
        let subscriber = self.subscribers.remove(index);
        self.by_prefix.remove(&subscriber.prefix);
    }

    /// Removes a flow, and its subscriber if nothing else needs that.
    pub(crate) fn remove(&mut self, now: Instant, id: EntryId) -> SchedulerEntry {
        self.leave(id);
        self.end_half_open(id);
        let entry = self.entries.remove(id);
        if let SchedulerEntry::Flow(flow) = &entry.scheduled {
            self.by_key.remove(&flow.key);
        }
        let index = entry.scheduled.subscriber();
        let subscriber = &mut self.subscribers[index];
        subscriber.memory_use.replace(entry.memory_use, MemoryUse::default());
        subscriber.downlink.on_left_network(entry.scheduled.in_flight());
        subscriber.forget_non_tcp();
        subscriber.flows -= 1;
        subscriber.ended -= u32::from(entry.has_ended);
        if subscriber.is_over() {
            self.forget(index);
        } else if subscriber.senders() == 0 {
            self.deactivate(index);
        } else {
            // The removed flow may have had the timer that would bring the others back.
            self.activate(index, now);
        }
        entry.scheduled
    }

    /// Runs after every packet or timeout of a flow: informs its subscriber, lets it join the turns, sets its timer.
    pub(crate) fn after_event(
        &mut self,
        id: EntryId,
        now: Instant,
        in_flight_before: u64,
        report: &LinkReport,
        repairs: bool,
    ) {
        let entry = &mut self.entries[id];
        let index = entry.scheduled.subscriber();
        let subscriber = &mut self.subscribers[index];
        let in_flight = entry.scheduled.in_flight();
        subscriber.on_report(now, in_flight_before, in_flight, report, self.crowded);
        if let Some(upload) = &report.upload {
            entry.scheduled.set_own_upload(subscriber.uplink.on_upload(now, upload));
        }
        subscriber.memory_use.replace(entry.memory_use, entry.scheduled.memory_use());
        entry.memory_use = entry.scheduled.memory_use();
        if entry.scheduled.has_ended() && !core::mem::replace(&mut entry.has_ended, true) {
            subscriber.ended += 1;
        }
        let is_open = entry.half_open.is_some() && !entry.scheduled.is_half_open();
        entry.scheduled.set_path(subscriber.path());
        entry.departs_at = None;
        if entry.class.is_some() || entry.scheduled.wants_to_send() {
            self.join(id, now);
        }
        if is_open {
            self.end_half_open(id);
        }
        self.activate(index, now);
        self.list_for_turn(index);
        self.arm(id, repairs);
    }

    /// Number of flows of a subscriber.
    pub(crate) fn flows_of(&self, prefix: IpAddr) -> usize {
        self.by_prefix.get(&prefix).map_or(0, |&index| self.subscribers[index].flows as usize)
    }

    /// Notes `bytes` of TCP payload that a client sent, in any flow.
    pub(crate) fn note_uploaded(&mut self, config: &GatewayConfig, client: IpAddr, bytes: u64) {
        if let Some(&index) = self.by_prefix.get(&config.sharing.subscriber(client)) {
            self.subscribers[index].uplink.note(bytes);
        }
    }

    /// Runs after a packet of `bytes` left.
    pub(crate) fn after_sent(
        &mut self,
        id: EntryId,
        now: Instant,
        in_flight_before: u64,
        bytes: u64,
        repairs: bool,
    ) {
        let entry = &mut self.entries[id];
        let index = entry.scheduled.subscriber();
        let more_in_flight = entry.scheduled.in_flight().saturating_sub(in_flight_before);
        entry.share.on_sent(now, bytes);
        let subscriber = &mut self.subscribers[index];
        subscriber.downlink.on_sent(more_in_flight);
        subscriber.on_tcp_sent(now, bytes);
        subscriber.share.on_sent(now, bytes);
        self.capacity.on_sent(now, bytes);
        if entry.class.is_some() {
            self.join(id, now);
        }
        if self.subscribers[index].class.is_some() {
            self.activate(index, now);
        }
        self.list_for_turn(index);
        self.arm(id, repairs);
    }

    /// Returns a flow whose timer is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<EntryId> {
        let entries = &mut self.entries;
        self.timers.tidy(entries.len(), |id| entries.get(id)?.armed);
        self.timers
            .pop_due(now, |id, at| entries.get_mut(id).is_some_and(|entry| disarm(&mut entry.armed, at)))
    }

    /// Returns the time of the next timer.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        [self.timers.next(), self.non_tcp_timers.next()].into_iter().flatten().min()
    }

    /// Sets the timer of an entry.
    pub(crate) fn arm(&mut self, id: EntryId, repairs: bool) {
        let entry = &mut self.entries[id];
        let deadline = entry.scheduled.deadline(repairs, self.idle_timeout_s);
        if let Some(next) = [deadline, entry.departs_at].into_iter().flatten().min() {
            self.timers.set(&mut entry.armed, id, next);
        }
    }
}

/// True if the flow with this ticket is still half open.
fn has_ticket(entries: &Arena<EntryId, Entry>, ticket: Ticket) -> bool {
    let entry = entries.get(ticket.place);
    entry.is_some_and(|entry| entry.half_open.is_some_and(|(serial, _)| serial == ticket.serial))
}

pub(crate) fn page<I: Id, T, U>(
    values: &Arena<I, T>,
    from: usize,
    places: usize,
    copy: impl Fn(&T) -> Option<U>,
) -> Page<U> {
    // A slab has no more places than its capacity.
    let end = from.saturating_add(places).min(values.capacity());
    let items = (from..end).filter_map(|place| copy(values.get(I::new(place))?)).collect();
    Page { items, next: (end < values.capacity()).then_some(end) }
}
