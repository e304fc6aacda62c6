//! One direction of a link: queue, bottleneck, propagation, impairments.

mod managed;

use alloc::vec::Vec;

use paceline_wire::{Duration, Instant, Packet};

use crate::config::LinkConfig;
use crate::counters::{Count, LinkCounters};
use crate::delay::{Delay, Jitter};
use crate::delivered::Delivered;
use crate::error::ConfigError;
use crate::failed::Failed;
use crate::flight::{Flight, InFlight};
use crate::holder::Holder;
use crate::impairment::{Fate, Faults, Impairments};
use crate::link_layer::LinkRetransmission;
use crate::outage::{OutageEffect, Outages};
use crate::parcels::{Parcel, Parcels};
use crate::queue::{DropTail, Waiting};
use crate::queue_limit::QueueLimit;
use crate::random::Random;
use crate::rate::RateProcess;
use crate::reorder::Reorder;
use crate::server::Server;

use managed::Managed;

/// One direction of a link.
///
/// [`send`](Link::send) hands packets to it, [`advance`](Link::advance) takes out what has arrived, and
/// [`next_event`](Link::next_event) tells when to call it. Time never goes backwards between calls. When a packet leaves
/// and arrives depends on the times given to `send`, never on when `advance` is called; calling it early or late only
/// shifts when the caller learns of it.
///
/// A packet meets the policer, waits in the queue until the bottleneck takes it, leaves when its last byte has been sent, and then meets
/// loss (which the link layer may repair by sending it again), outage, duplication, a box that holds back what is out of order,
/// propagation and jitter, in this order. Nothing is allocated per packet once the queues have grown to what the path needs.
#[derive(Clone, Debug)]
pub struct Link {
    start: Instant,
    server: Server,
    framing_bytes: u64,
    parcels: Parcels,
    /// What waits; with queue management only what it has chosen to go next.
    queue: DropTail,
    managed: Option<Managed>,
    link_retransmission: Option<LinkRetransmission>,
    failed: Failed,
    /// When the first packet of the queue will be served, once that is known.
    next: Option<Next>,
    in_service: Option<(Waiting, Service)>,
    /// When the bottleneck last finished.
    free_at: Instant,
    impairments: Impairments,
    drops: Outages,
    delay: Delay,
    jitter: Option<Jitter>,
    reorder: Option<Reorder>,
    /// No outage loses packets, and what the bottleneck sends arrives in that order unless its fate is another one.
    orderly: bool,
    in_flight: InFlight,
    /// Only where what is out of order is held back.
    holder: Option<Holder>,
    passed: Vec<Flight>,
    counters: LinkCounters,
    now: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    At(Service),
    Never,
}

/// A packet that wants to enter.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    bytes: u32,
    arrival: Instant,
    fate: Fate,
    /// Nothing waits or is being sent.
    idle: bool,
    /// It goes no further: there is no room for it, or the policer has it.
    refused: bool,
}

/// When the bottleneck serves a packet.
#[derive(Clone, Copy, Debug)]
struct Service {
    start: Instant,
    finish: Instant,
    sending: Duration,
}

impl Link {
    /// A link whose schedule of rates, delays and outages begins at `start`, not later than the first packet. Its random
    /// choices follow from `seed`; two directions need two seeds.
    pub fn new(config: LinkConfig<RateProcess>, seed: u64, start: Instant) -> Result<Link, ConfigError> {
        config.check()?;
        let (holds, drops) = match config.outage.effect {
            OutageEffect::Hold => (config.outage.clone(), Outages::default()),
            OutageEffect::Drop => (Outages::default(), config.outage.clone()),
        };
        let discipline = config.aqm.build(config.queue, Random::named(seed, "aqm"));
        let managed = discipline.map(|discipline| Managed::new(discipline, start));
        let keeps_order = config.jitter.is_none_or(|jitter| jitter.keep_order);
        Ok(Link {
            start,
            orderly: drops.is_empty() && keeps_order && !config.hold_out_of_order,
            framing_bytes: config.framing_bytes,
            parcels: Parcels::default(),
            queue: DropTail::new(if managed.is_some() { QueueLimit::Unlimited } else { config.queue }),
            managed,
            link_retransmission: config.link_retransmission,
            failed: Failed::default(),
            next: None,
            in_service: None,
            free_at: start,
            impairments: Impairments::new(&config, seed),
            drops,
            delay: config.delay,
            jitter: config.jitter,
            reorder: config.reorder,
            server: Server::new(config.rate, holds),
            in_flight: InFlight::default(),
            holder: config.hold_out_of_order.then(Holder::default),
            passed: Vec::new(),
            counters: LinkCounters::default(),
            now: start,
        })
    }

    /// Lets the schedule of rates, delays and outages begin again at `start`, which must not be earlier than any time
    /// given before nor later than one given afterwards. Packets in the link stay, and one that is being sent keeps its
    /// time.
    pub fn restart_at(&mut self, start: Instant) {
        let start = start.max(self.now);
        self.serve_until(start);
        self.start = start;
        self.next = None;
        self.server.restart();
        self.serve_until(start);
    }

    /// Hands a packet to the link. A super-packet must have been split before.
    pub fn send(&mut self, now: Instant, packet: Packet) {
        let admitted = self.admit(now, &packet);
        if !admitted.refused {
            let parcel = self.parcels.store(packet, admitted.bytes, admitted.arrival);
            self.enqueue(parcel, admitted);
        }
    }

    /// Hands a copy of a packet to the link: with [`arrive_by_ref`](Link::arrive_by_ref) packets, which are large, keep
    /// their places in memory.
    #[inline]
    pub fn send_copy(&mut self, now: Instant, packet: &Packet) {
        let admitted = self.admit(now, packet);
        if !admitted.refused {
            let parcel = self.parcels.store_copy(packet, admitted.bytes, admitted.arrival);
            self.enqueue(parcel, admitted);
        }
    }

    /// Draws the fate of a packet, and looks whether there is room.
    #[inline(always)]
    fn admit(&mut self, now: Instant, packet: &Packet) -> Admitted {
        let arrival = now.max(self.now);
        self.serve_until(arrival);
        let bytes = u32::try_from(packet.ip_len()).unwrap_or(u32::MAX);
        self.counters.sent.add(bytes);
        let fate = self.impairments.decide(self.since_start(arrival), packet);
        let idle = self.in_service.is_none() && self.queue.len() == 0;
        let policed = fate.faults.contains(Faults::POLICED);
        let overflows = !idle && !self.queue.has_room(bytes);
        if policed {
            self.counters.dropped_by_policer.add(bytes);
        } else if overflows {
            self.counters.dropped_by_queue.add(bytes);
        }
        Admitted { bytes, arrival, fate, idle, refused: policed || overflows }
    }

    #[inline(always)]
    fn enqueue(&mut self, parcel: Parcel, Admitted { arrival, fate, idle, .. }: Admitted) {
        if idle && self.server.is_instant() {
            let service = Service { start: arrival, finish: arrival, sending: Duration::ZERO };
            return self.leave(parcel, arrival, fate, service);
        }
        let waiting = Waiting { parcel, arrival, ready: arrival, fate };
        if self.managed.is_some() {
            self.offer(waiting, idle);
        } else {
            self.queue.push(waiting);
        }
        if self.in_service.is_none() {
            self.serve(arrival);
        }
        self.counters.queued_bytes_max = self.counters.queued_bytes_max.max(self.queued_bytes());
    }

    /// Gives `sink` every packet that has arrived until `now`, in order of arrival.
    pub fn advance(&mut self, now: Instant, sink: &mut impl FnMut(Delivered)) {
        self.serve_until(now);
        while let Some(flight) = self.in_flight.take(now) {
            self.counters.delivered.add(flight.parcel.bytes);
            if let Some(delivered) = self.parcels.take(flight) {
                sink(delivered);
            }
        }
    }

    /// Gives `sink` what has arrived until `now`, and leaves the bottleneck alone. For a driver whose two ends go on by
    /// turns: until `now` is [`least_delay`](Link::least_delay) after the last [`serve_until`](Link::serve_until) or `send`,
    /// it is the same as [`advance`](Link::advance), and keeps the memory of the packets.
    #[inline]
    pub fn arrive_by_ref(&mut self, now: Instant, sink: &mut impl FnMut(&Delivered)) {
        while let Some(flight) = self.in_flight.take(now) {
            self.counters.delivered.add(flight.parcel.bytes);
            self.parcels.show(flight, sink);
        }
    }

    /// When `advance` has something to do; at that time it may turn out that the packet is lost or comes later. `None`
    /// when only another packet can change that.
    pub fn next_event(&self) -> Option<Instant> {
        let finish = match (&self.in_service, &self.next) {
            (Some((_, service)), _) | (None, Some(Next::At(service))) => service.finish,
            (None, _) => {
                // A failed packet arrives no sooner than if it left at once. Until then nobody needs to look.
                let ready = self.failed.next_ready();
                let again = ready.map(|ready| ready + self.delay.at(self.since_start(ready)));
                return self.in_flight.next_arrival().into_iter().chain(again).min();
            }
        };
        let leaving = finish + self.delay.at(self.since_start(finish));
        Some(self.in_flight.next_arrival().map_or(leaving, |arrival| arrival.min(leaving)))
    }

    /// Whether every packet leaves the bottleneck when it is handed over: there is no limit, and no outage holds it.
    pub fn is_instant(&self) -> bool {
        self.server.is_instant()
    }

    /// The least time between a packet's departure from the bottleneck and its arrival.
    pub fn least_delay(&self) -> Duration {
        self.delay.least()
    }

    /// Totals so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Bytes that the bottleneck could have carried from `from` to `to`, IP and framing, outages that hold packets taken
    /// out; `None` without a limit. With [`charged_bytes`](Link::charged_bytes) this makes the utilization.
    pub fn capacity_bytes(&self, from: Instant, to: Instant) -> Option<u64> {
        self.server.capacity_bytes(self.since_start(from), self.since_start(to))
    }

    /// Bytes that these packets take at the bottleneck: IP and framing.
    pub fn charged_bytes(&self, packets: Count) -> u64 {
        packets.bytes + packets.packets * self.framing_bytes
    }

    /// Packets that wait or are being sent, or sent again.
    pub fn queued(&self) -> usize {
        let managed = self.managed.as_ref().map_or(0, Managed::len);
        managed + self.queue.len() + self.failed.len() + usize::from(self.in_service.is_some())
    }

    /// IP bytes that wait, as the limit of the queue counts them.
    pub fn queued_bytes(&self) -> u64 {
        self.queue.bytes() + self.managed.as_ref().map_or(0, Managed::bytes)
    }

    /// Packets between the bottleneck and the other end, those held back among them.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len() + self.holder.as_ref().map_or(0, Holder::len)
    }

    /// Lets the bottleneck do what it has done by `now`. [`advance`](Link::advance) and [`send`](Link::send) do it anyway.
    #[inline]
    pub fn serve_until(&mut self, now: Instant) {
        self.now = self.now.max(now);
        // Nearly always a packet is being sent, or there is none.
        let nothing_to_do = match &self.in_service {
            Some((_, service)) => service.finish > now,
            None => self.queue.len() == 0 && self.failed.is_empty(),
        };
        if !nothing_to_do {
            self.serve(now);
        }
    }

    fn serve(&mut self, now: Instant) {
        loop {
            if self.in_service.as_ref().is_some_and(|(_, service)| service.finish > now) {
                return;
            }
            if let Some((Waiting { parcel, arrival, fate, .. }, service)) = self.in_service.take() {
                self.leave(parcel, arrival, fate, service);
            }
            let Some(next) = self.next_service(now) else { return };
            match next {
                Next::At(service) if service.start <= now => {
                    self.next = None;
                    self.in_service = self.queue.pop().map(|waiting| (waiting, service));
                }
                _ => {
                    self.next = Some(next);
                    return;
                }
            }
        }
    }

    /// When the first packet of the queue will be served; `None` without one.
    fn next_service(&mut self, now: Instant) -> Option<Next> {
        if self.next.is_some() {
            return self.next;
        }
        if self.managed.is_some() && self.queue.len() == 0 {
            self.choose();
        }
        if !self.failed.is_empty() {
            self.queue_failed(now);
        }
        let first = self.queue.front()?;
        let ready = first.ready.max(self.free_at).saturating_since(self.start);
        Some(match self.server.serve(ready, u64::from(first.parcel.bytes) + self.framing_bytes) {
            None => Next::Never,
            Some(service) => Next::At(Service {
                start: self.start + service.start,
                finish: self.start + service.finish,
                sending: service.sending,
            }),
        })
    }

    /// What the link layer has to send again goes first, once it is known and the bottleneck is free.
    #[inline(never)]
    fn queue_failed(&mut self, now: Instant) {
        let Some(ready) = self.failed.next_ready().filter(|ready| *ready <= now) else { return };
        let others = self.queue.front().map(|first| first.ready.max(self.free_at));
        if others.is_none_or(|others| ready <= others)
            && let Some(waiting) = self.failed.pop()
        {
            self.queue.push_front(waiting);
        }
    }

    /// The last byte of a packet has left the bottleneck. Nearly always it is on its way then.
    #[inline(always)]
    fn leave(&mut self, parcel: Parcel, arrival: Instant, fate: Fate, service: Service) {
        self.free_at = service.finish;
        self.counters.transmitted.add(parcel.bytes);
        self.counters.sending += service.sending;
        let left = self.since_start(service.finish);
        if !self.orderly || fate.is_odd() {
            return self.leave_oddly(parcel, arrival, fate, service, left);
        }
        let at = service.finish + self.delay.at(left) + fate.jitter;
        let queue_delay = service.finish.saturating_since(arrival).saturating_sub(service.sending);
        self.in_flight.add_in_order(at, parcel, queue_delay);
    }

    #[inline(never)]
    fn leave_oddly(
        &mut self,
        parcel: Parcel,
        arrival: Instant,
        fate: Fate,
        service: Service,
        left: Duration,
    ) {
        if self.drops.covering(left).is_some() {
            self.counters.dropped_by_outage.add(parcel.bytes);
            self.parcels.discard(parcel);
        } else if let (Some(link_layer), 1..) = (self.link_retransmission, fate.failures) {
            self.counters.retried.add(parcel.bytes);
            let ready = service.finish + link_layer.after;
            let fate = Fate { failures: fate.failures - 1, ..fate };
            self.failed.push(Waiting { parcel, arrival, ready, fate });
        } else if fate.faults.contains(Faults::LOST) {
            self.counters.dropped_by_loss.add(parcel.bytes);
            self.parcels.discard(parcel);
        } else {
            let at = service.finish + self.delay.at(left) + fate.jitter;
            let queue_delay = service.finish.saturating_since(arrival).saturating_sub(service.sending);
            let copies = fate.faults.contains(Faults::DUPLICATED);
            if let Some(parcel) = copies.then(|| self.parcels.copy(&parcel)).flatten() {
                self.counters.duplicated.add(parcel.bytes);
                self.fly(fate, Flight { at, parcel, queue_delay });
            }
            self.fly(fate, Flight { at, parcel, queue_delay });
        }
    }

    fn fly(&mut self, fate: Fate, flight: Flight) {
        let Some(mut holder) = self.holder.take() else { return self.fly_on(fate, flight) };
        // Whatever was held flies on with the packet that it waited for.
        let mut passed = core::mem::take(&mut self.passed);
        holder.take(self.parcels.packet(&flight.parcel), flight, &mut |flight| passed.push(flight));
        self.holder = Some(holder);
        for flight in passed.drain(..) {
            self.fly_on(fate, flight);
        }
        self.passed = passed;
    }

    fn fly_on(&mut self, fate: Fate, mut flight: Flight) {
        if let (true, Some(reorder)) = (fate.faults.contains(Faults::HELD_BACK), self.reorder) {
            self.counters.reordered.add(flight.parcel.bytes);
            flight.at += reorder.by;
            self.in_flight.add_out_of_order(flight);
        } else if self.jitter.is_some_and(|jitter| !jitter.keep_order) {
            self.in_flight.add_out_of_order(flight);
        } else {
            self.in_flight.add_in_order(flight.at, flight.parcel, flight.queue_delay);
        }
    }

    fn since_start(&self, at: Instant) -> Duration {
        at.saturating_since(self.start)
    }
}

#[cfg(test)]
mod tests;
