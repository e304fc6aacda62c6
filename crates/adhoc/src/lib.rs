//! A mobile ad-hoc network: stations that move, share one medium and forward each other's packets.
//!
//! [`AdHoc`] is one [`Node`] with a port for each station. Hosts are attached at two of the stations. A packet that
//! enters at one of the two leaves at the other one, if the stations between can carry it. A run follows from the
//! configuration and the seed alone.
//!
//! | what | file |
//! |---|---|
//! | configuration | `config.rs` |
//! | random waypoint, scripted movement | `mobility.rs` |
//! | which station hears which, collisions, capture | `medium.rs` |
//! | carrier sense, back-off, RTS and CTS, ACK, retry limits | `mac/`; all stations together `channel.rs` |
//! | whether there is a route at all | `connectivity.rs` |
//! | packets that wait for the medium | `interface_queue.rs` |
//! | requests, source routes, errors, cache, send buffer | `routing/` |
//!
//! Each file says what it leaves out of 802.11 and DSR. docs/evidence/ad-hoc.md collects this.

mod channel;
mod config;
mod connectivity;
mod interface_queue;
mod mac;
mod medium;
mod mobility;
mod routing;
mod station;
mod store;
mod timers;

use std::collections::VecDeque;

use paceline_path::random::Random;
use paceline_wire::{Instant, Node, Packet, PortId};

pub use channel::AirCounters;
pub use config::{AdHocConfig, AdHocError, Movement, Place, Radio, Routing};
pub use connectivity::Connectivity;
pub use mac::Timing;
pub use routing::RouteCounters;
pub use station::StationId;

use channel::{Channel, Event};
use interface_queue::InterfaceQueue;
use mac::Job;
use routing::{Out, Router};
use store::Store;
use timers::Timers;

/// An ad-hoc network.
#[derive(Debug)]
pub struct AdHoc {
    between: (StationId, StationId),
    channel: Channel,
    queues: Vec<InterfaceQueue>,
    routers: Vec<Router>,
    /// Timers of the routers.
    timers: Timers,
    store: Store,
    outgoing: VecDeque<(PortId, Packet)>,
    events: Vec<Event>,
    out: VecDeque<Out>,
    queue_drops: u64,
}

/// Counters of an ad-hoc network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdHocCounters {
    /// Counts of frames on the air.
    pub air: AirCounters,
    /// Counts of routing events, over all stations.
    pub routes: RouteCounters,
    /// Datagrams that found no room in a station.
    pub queue_drops: u64,
}

impl AdHoc {
    /// A network without any event so far.
    ///
    /// # Errors
    /// Returns what is wrong with the configuration.
    pub fn new(config: &AdHocConfig, seed: u64) -> Result<Self, AdHocError> {
        config.check()?;
        let stations = config.stations();
        let router = |station: usize| {
            let random = Random::named(seed, &format!("jitter of station {station}"));
            Router::new(station as StationId, stations, config.routing, random)
        };
        Ok(AdHoc {
            between: config.between,
            channel: Channel::new(config, seed),
            queues: vec![InterfaceQueue::new(config.queue_packets.max(1)); stations],
            routers: (0..stations).map(router).collect(),
            timers: Timers::new(stations),
            store: Store::default(),
            outgoing: VecDeque::new(),
            events: Vec::new(),
            out: VecDeque::new(),
            queue_drops: 0,
        })
    }

    /// The counts so far.
    pub fn counters(&self) -> AdHocCounters {
        let mut routes = RouteCounters::default();
        for router in &self.routers {
            let RouteCounters { requests, replies, broken_links, salvaged, dropped } = router.counters();
            routes.requests += requests;
            routes.replies += replies;
            routes.broken_links += broken_links;
            routes.salvaged += salvaged;
            routes.dropped += dropped;
        }
        AdHocCounters { air: self.channel.counters(), routes, queue_drops: self.queue_drops }
    }

    /// Handles everything that is due until `now`, in order.
    fn run(&mut self, now: Instant) {
        loop {
            let (air, routing) = (self.channel.next(), self.timers.next());
            let Some(at) = air.into_iter().chain(routing).min().filter(|at| *at <= now) else { return };
            if air == Some(at) {
                let mut events = std::mem::take(&mut self.events);
                self.channel.step(at, &mut events);
                events.drain(..).for_each(|event| self.event(at, event));
                self.events = events;
            } else if let Some(station) = self.timers.take(at) {
                self.routers[station].timer(at, &mut self.out);
                self.follow(at, station as StationId);
            }
        }
    }

    fn event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Arrived { at, datagram, .. } => {
                let AdHoc { routers, store, out, .. } = self;
                routers[usize::from(at)].receive(now, store.get(datagram), out);
                self.follow(now, at);
            }
            Event::Done(station, job) => {
                self.store.free(job.datagram);
                self.feed(now, station);
            }
            Event::GaveUp(station, job) => self.gave_up(now, station, job),
        }
    }

    /// Gives up a datagram whose neighbour is gone, and all datagrams that wait for the same neighbour.
    fn gave_up(&mut self, now: Instant, station: StationId, job: Job) {
        let AdHoc { routers, store, out, queues, .. } = self;
        let router = &mut routers[usize::from(station)];
        router.failed(now, store.take(job.datagram), job.to, true, out);
        let queue = &mut queues[usize::from(station)];
        while let Some((datagram, to)) = queue.pop_for(job.to) {
            router.failed(now, store.take(datagram), to, false, out);
        }
        self.follow(now, station);
    }

    /// Does what a station's router orders.
    fn follow(&mut self, now: Instant, station: StationId) {
        while let Some(out) = self.out.pop_front() {
            match out {
                Out::Deliver(packet) => self.outgoing.push_back((PortId(station), packet)),
                Out::Send(datagram, to) => {
                    let is_routing = datagram.is_routing();
                    let id = self.store.keep(datagram);
                    if let Some(dropped) = self.queues[usize::from(station)].push((id, to), is_routing) {
                        self.queue_drops += 1;
                        self.store.free(dropped);
                    }
                }
            }
        }
        self.timers.set(usize::from(station), self.routers[usize::from(station)].next());
        self.feed(now, station);
    }

    /// Gives a waiting datagram to the medium access of a station, if that is free.
    fn feed(&mut self, now: Instant, station: StationId) {
        if !self.channel.is_free(station) {
            return;
        }
        if let Some((datagram, to)) = self.queues[usize::from(station)].pop() {
            let bytes = self.store.get(datagram).bytes();
            self.channel.offer(now, station, Job { datagram, to, bytes });
        }
    }
}

impl Node for AdHoc {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        self.run(arrival);
        let (a, b) = self.between;
        let (here, to) = if port.0 == a { (a, b) } else { (b, a) };
        self.routers[usize::from(here)].originate(arrival, packet, to, &mut self.out);
        self.follow(arrival, here);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run(now);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        self.outgoing.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.channel.next().into_iter().chain(self.timers.next()).min()
    }
}

#[cfg(test)]
mod tests;
