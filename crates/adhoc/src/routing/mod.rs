//! Dynamic source routing (RFC 4728) in one station.
//!
//! A station with a packet and no route floods a request, first to its neighbours alone. Each station that forwards the
//! request adds itself. The target answers every copy, and stations that know a route answer from their caches. Packets
//! carry their route. If a neighbour does not answer, the station tells the packet's source and forgets the link. It
//! salvages the packet if it knows another route.
//!
//! Left out of DSR:
//!
//! - Promiscuous mode and its results: automatic shortening of routes, and overheard replies.
//! - Replies and errors within other packets.
//! - Flow states.
//! - Links of one direction. The medium's acknowledgements exclude them.
//! - Delays of answers from caches by the length of the route.

mod cache;
mod datagram;
mod requests;
mod route;
mod send_buffer;

use std::collections::VecDeque;

use paceline_path::random::Random;
use paceline_wire::{Instant, Packet};

pub(super) use datagram::{Datagram, Kind};
pub(super) use route::Route;

use super::StationId;
use super::config::Routing;
use super::mac::EVERYBODY;
use cache::RouteCache;
use requests::RequestTable;
use send_buffer::SendBuffer;

/// Orders of a router.
#[derive(Clone, Debug)]
pub(super) enum Out {
    /// Send to a neighbour or to [`EVERYBODY`].
    Send(Datagram, StationId),
    /// Deliver to the host at this station.
    Deliver(Packet),
}

/// Counts of routing events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCounters {
    /// Requests by the stations that search for a route.
    pub requests: u64,
    /// Answers, from targets and from caches.
    pub replies: u64,
    /// Neighbours that did not answer.
    pub broken_links: u64,
    /// Packets that were salvaged.
    pub salvaged: u64,
    /// Packets without a route in time, or that could not be salvaged.
    pub dropped: u64,
}

/// The routing of one station.
#[derive(Debug)]
pub(super) struct Router {
    me: StationId,
    config: Routing,
    random: Random,
    cache: RouteCache,
    requests: RequestTable,
    buffer: SendBuffer,
    /// Datagrams that leave after a jitter.
    delayed: Vec<(Instant, Datagram, StationId)>,
    counters: RouteCounters,
}

/// Our choice: more than there are stations. Further datagrams are not forwarded.
const DELAYED_MAX: usize = 128;
/// Requests to everybody go as far as a route can.
const HOPS_MAX: u8 = route::STATIONS_MAX as u8;

impl Router {
    pub(super) fn new(me: StationId, stations: usize, config: Routing, random: Random) -> Self {
        Router {
            me,
            config,
            random,
            cache: RouteCache::new(config.cached_routes),
            requests: RequestTable::new(stations),
            buffer: SendBuffer::new(config.buffered_packets, config.buffered_for),
            delayed: Vec::new(),
            counters: RouteCounters::default(),
        }
    }

    pub(super) fn counters(&self) -> RouteCounters {
        self.counters
    }

    /// Takes a packet from the host at this station.
    pub(super) fn originate(&mut self, now: Instant, packet: Packet, to: StationId, out: &mut VecDeque<Out>) {
        match self.cache.find(to) {
            Some(route) => {
                send_along(Datagram { kind: Kind::Data { packet, salvaged: 0 }, route }, self.me, out)
            }
            None => {
                self.counters.dropped += self.buffer.push(now, to, packet);
                if let Some(number) = self.requests.begin(now, to, &self.config) {
                    self.request(to, number, 1, out);
                }
            }
        }
    }

    /// Takes a datagram from a neighbour.
    pub(super) fn receive(&mut self, now: Instant, datagram: &Datagram, out: &mut VecDeque<Out>) {
        if let Kind::Request { target, number, hops_left } = datagram.kind {
            return self.receive_request(now, datagram.route, (target, number, hops_left), out);
        }
        let Some(here) = datagram.route.position(self.me) else { return };
        self.learn(now, datagram.route.from(here), out);
        self.learn(now, datagram.route.until(here + 1).reversed(), out);
        match &datagram.kind {
            Kind::Error { link } => self.cache.forget_link(link.0, link.1),
            Kind::Reply { found } => {
                if let Some(at) = found.position(self.me) {
                    self.learn(now, found.from(at), out);
                }
            }
            _ => {}
        }
        if here + 1 < datagram.route.len() {
            send_along(datagram.clone(), self.me, out);
        } else if let Kind::Data { packet, .. } = &datagram.kind {
            out.push_back(Out::Deliver(packet.clone()));
        }
    }

    /// A neighbour does not answer. `tell` is false if the source was told just now.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        datagram: Datagram,
        to: StationId,
        tell: bool,
        out: &mut VecDeque<Out>,
    ) {
        self.counters.broken_links += u64::from(tell);
        self.cache.forget_link(self.me, to);
        let Datagram { kind: Kind::Data { packet, salvaged }, route } = datagram else { return };
        let (Some(source), Some(target)) = (route.first(), route.last()) else { return };
        if source == self.me && salvaged == 0 {
            return self.originate(now, packet, target, out);
        }
        if let (true, Some(here)) = (tell && source != self.me, route.position(self.me)) {
            let route = route.until(here + 1).reversed();
            send_along(Datagram { kind: Kind::Error { link: (self.me, to) }, route }, self.me, out);
        }
        match self.cache.find(target).filter(|_| salvaged < self.config.salvages) {
            Some(route) => {
                self.counters.salvaged += 1;
                let kind = Kind::Data { packet, salvaged: salvaged + 1 };
                send_along(Datagram { kind, route }, self.me, out);
            }
            None => self.counters.dropped += 1,
        }
    }

    /// Time at which [`timer`](Self::timer) has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        let delayed = self.delayed.iter().map(|(at, ..)| *at);
        delayed.chain(self.requests.next()).min()
    }

    /// Does everything that is due.
    pub(super) fn timer(&mut self, now: Instant, out: &mut VecDeque<Out>) {
        while let Some(at) = self.delayed.iter().position(|(at, ..)| *at <= now) {
            let (_, datagram, to) = self.delayed.remove(at);
            out.push_back(Out::Send(datagram, to));
        }
        while let Some(target) = self.requests.due(now) {
            self.counters.dropped += self.buffer.expire(now);
            if self.buffer.has(target) {
                let number = self.requests.again(now, target, &self.config);
                self.request(target, number, HOPS_MAX, out);
            } else {
                self.requests.end(target);
            }
        }
    }

    fn request(&mut self, target: StationId, number: u32, hops_left: u8, out: &mut VecDeque<Out>) {
        self.counters.requests += 1;
        let kind = Kind::Request { target, number, hops_left };
        out.push_back(Out::Send(Datagram { kind, route: Route::of(&[self.me]) }, EVERYBODY));
    }

    fn receive_request(
        &mut self,
        now: Instant,
        come: Route,
        (target, number, hops_left): (StationId, u32, u8),
        out: &mut VecDeque<Out>,
    ) {
        let Some(origin) = come.first() else { return };
        let Some(route) = come.and(self.me) else { return };
        self.learn(now, route.reversed(), out);
        if target == self.me {
            return self.reply(now, route, route, false, out);
        }
        if !self.requests.is_new(origin, number) {
            return;
        }
        let known = self.cache.find(target).filter(|_| self.config.answer_from_cache);
        if let Some(found) = known.and_then(|rest| route.joined(&rest)) {
            return self.reply(now, found, route, true, out);
        }
        if hops_left > 1 {
            let kind = Kind::Request { target, number, hops_left: hops_left - 1 };
            self.send_later(now, Datagram { kind, route }, EVERYBODY);
        }
    }

    /// Tells the origin of a request which route was found. The request has come along `come`.
    fn reply(&mut self, now: Instant, found: Route, come: Route, later: bool, out: &mut VecDeque<Out>) {
        self.counters.replies += 1;
        let datagram = Datagram { kind: Kind::Reply { found }, route: come.reversed() };
        let Some(to) = datagram.route.stations().get(1).copied() else { return };
        if later {
            self.send_later(now, datagram, to);
        } else {
            out.push_back(Out::Send(datagram, to));
        }
    }

    fn send_later(&mut self, now: Instant, datagram: Datagram, to: StationId) {
        if self.delayed.len() < DELAYED_MAX {
            let at = now + self.random.duration_up_to(self.config.jitter);
            self.delayed.push((at, datagram, to));
        }
    }

    /// Remembers a route from here, and sends the packets that waited for it.
    fn learn(&mut self, now: Instant, route: Route, out: &mut VecDeque<Out>) {
        self.cache.learn(route);
        for at in 1..route.len() {
            let to = route.stations()[at];
            if !self.buffer.has(to) {
                continue;
            }
            self.requests.end(to);
            self.counters.dropped += self.buffer.expire(now);
            while let Some(packet) = self.buffer.pop(to) {
                let kind = Kind::Data { packet, salvaged: 0 };
                send_along(Datagram { kind, route: route.until(at + 1) }, self.me, out);
            }
        }
    }
}

/// Sends to the station after this one.
fn send_along(datagram: Datagram, me: StationId, out: &mut VecDeque<Out>) {
    let here = datagram.route.position(me);
    if let Some(next) = here.and_then(|here| datagram.route.stations().get(here + 1).copied()) {
        out.push_back(Out::Send(datagram, next));
    }
}

#[cfg(test)]
mod tests;
