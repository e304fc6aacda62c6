//! One direction of a link: queue, bottleneck, propagation, impairments.

mod managed;

use alloc::vec::Vec;

use paceline_wire::{Duration, Instant, Packet};

use crate::bottleneck::Bottleneck;
use crate::config::LinkConfig;
use crate::counters::{Count, LinkCounters};
use crate::delay::{Delay, Jitter};
use crate::delivered::Delivered;
use crate::error::ConfigError;
use crate::failed::FailedTransmissions;
use crate::flight::{Flight, InFlight};
use crate::impairment::{Faults, Impairment, Impairments};
use crate::link_layer::LinkRetransmission;
use crate::outage::{OutageEffect, Outages};
use crate::packet_store::{PacketHandle, PacketStore};
use crate::queue::{DropTail, Waiting};
use crate::queue_limit::QueueLimit;
use crate::random::Random;
use crate::rate::RateProcess;
use crate::reorder::Reorder;
use crate::reorder_hold::ReorderHold;

use managed::ManagedQueue;

/// One direction of a link.
///
/// [`send`](Link::send) hands packets to it, [`advance`](Link::advance) takes out packets that have arrived, and
/// [`next_event`](Link::next_event) tells when to call it. Time never goes backwards between calls. Departures and
/// arrivals depend on the times given to `send`, never on the time at which `advance` is called. An early or late call
/// only changes when the caller sees them.
///
/// A packet first meets the policer. It waits in the queue until the bottleneck takes it, and leaves when its last byte
/// has been sent. Then it meets loss, outage, duplication, the box that holds out-of-order packets, propagation and
/// jitter, in this order. The link layer may repair a loss by retransmission. Nothing is allocated per packet once the
/// queues have reached the size that the path needs.
#[derive(Clone, Debug)]
pub struct Link {
    start: Instant,
    bottleneck: Bottleneck,
    framing_bytes: u64,
    store: PacketStore,
    /// The waiting packets. With queue management, only the packet chosen as next.
    queue: DropTail,
    managed: Option<ManagedQueue>,
    link_retransmission: Option<LinkRetransmission>,
    failed: FailedTransmissions,
    /// Time at which the first packet of the queue will be served, once known.
    next: Option<Next>,
    in_service: Option<(Waiting, Service)>,
    /// Time at which the bottleneck last finished.
    free_at: Instant,
    impairments: Impairments,
    drops: Outages,
    delay: Delay,
    jitter: Option<Jitter>,
    reorder: Option<Reorder>,
    /// True if no outage loses packets, and packets keep their order unless their fate is odd.
    orderly: bool,
    in_flight: InFlight,
    /// Present only if out-of-order packets are held.
    reorder_hold: Option<ReorderHold>,
    passed: Vec<Flight>,
    counters: LinkCounters,
    now: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    At(Service),
    Never,
}

/// A packet that is about to enter the link.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    bytes: u32,
    arrival: Instant,
    impairment: Impairment,
    /// True if nothing waits or is being sent.
    idle: bool,
    /// True if the packet is dropped, by the policer or for lack of room.
    refused: bool,
}

/// Times at which the bottleneck serves a packet.
#[derive(Clone, Copy, Debug)]
struct Service {
    start: Instant,
    finish: Instant,
    sending: Duration,
}

impl Link {
    /// Makes a link whose schedule of rates, delays and outages begins at `start`, not later than the first packet.
    /// Random choices follow from `seed`. Two directions need two seeds.
    pub fn new(config: LinkConfig<RateProcess>, seed: u64, start: Instant) -> Result<Link, ConfigError> {
        config.check()?;
        let (holds, drops) = match config.outage.effect {
            OutageEffect::Hold => (config.outage.clone(), Outages::default()),
            OutageEffect::Drop => (Outages::default(), config.outage.clone()),
        };
        let discipline = config.aqm.build(config.queue, Random::named(seed, "aqm"));
        let managed = discipline.map(|discipline| ManagedQueue::new(discipline, start));
        let keeps_order = config.jitter.is_none_or(|jitter| jitter.keep_order);
        Ok(Link {
            start,
            orderly: drops.is_empty() && keeps_order && !config.hold_out_of_order,
            framing_bytes: config.framing_bytes,
            store: PacketStore::default(),
            queue: DropTail::new(if managed.is_some() { QueueLimit::Unlimited } else { config.queue }),
            managed,
            link_retransmission: config.link_retransmission,
            failed: FailedTransmissions::default(),
            next: None,
            in_service: None,
            free_at: start,
            impairments: Impairments::new(&config, seed),
            drops,
            delay: config.delay,
            jitter: config.jitter,
            reorder: config.reorder,
            bottleneck: Bottleneck::new(config.rate, holds),
            in_flight: InFlight::default(),
            reorder_hold: config.hold_out_of_order.then(ReorderHold::default),
            passed: Vec::new(),
            counters: LinkCounters::default(),
            now: start,
        })
    }

    /// Restarts the schedule of rates, delays and outages at `start`. `start` must not be before any earlier time, nor
    /// after any later one. Packets stay in the link, and a packet that is being sent keeps its time.
    pub fn restart_at(&mut self, start: Instant) {
        let start = start.max(self.now);
        self.serve_until(start);
        self.start = start;
        self.next = None;
        self.bottleneck.restart();
        self.serve_until(start);
    }

    /// Hands a packet to the link. A super-packet must be split first.
    pub fn send(&mut self, now: Instant, packet: Packet) {
        let admitted = self.admit(now, &packet);
        if !admitted.refused {
            let handle = self.store.store(packet, admitted.bytes, admitted.arrival);
            self.enqueue(handle, admitted);
        }
    }

    /// Hands a copy of a packet to the link. Together with [`arrive_by_ref`](Link::arrive_by_ref), it lets the large
    /// packets stay in their places in memory.
    #[inline]
    pub fn send_copy(&mut self, now: Instant, packet: &Packet) {
        let admitted = self.admit(now, packet);
        if !admitted.refused {
            let handle = self.store.store_copy(packet, admitted.bytes, admitted.arrival);
            self.enqueue(handle, admitted);
        }
    }

    /// Draws the fate of a packet, and checks whether there is room.
    #[inline(always)]
    fn admit(&mut self, now: Instant, packet: &Packet) -> Admitted {
        let arrival = now.max(self.now);
        self.serve_until(arrival);
        let bytes = u32::try_from(packet.ip_len()).unwrap_or(u32::MAX);
        self.counters.sent.add(bytes);
        let impairment = self.impairments.decide(self.since_start(arrival), packet);
        let idle = self.in_service.is_none() && self.queue.len() == 0;
        let policed = impairment.faults.contains(Faults::POLICED);
        let overflows = !idle && !self.queue.has_room(bytes);
        if policed {
            self.counters.dropped_by_policer.add(bytes);
        } else if overflows {
            self.counters.dropped_by_queue.add(bytes);
        }
        Admitted { bytes, arrival, impairment, idle, refused: policed || overflows }
    }

    #[inline(always)]
    fn enqueue(&mut self, handle: PacketHandle, Admitted { arrival, impairment, idle, .. }: Admitted) {
        if idle && self.bottleneck.is_instant() {
            let service = Service { start: arrival, finish: arrival, sending: Duration::ZERO };
            return self.leave(handle, arrival, impairment, service);
        }
        let waiting = Waiting { handle, arrival, ready: arrival, impairment };
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

    /// Gives `sink` every packet that has arrived by `now`, in order of arrival.
    pub fn advance(&mut self, now: Instant, sink: &mut impl FnMut(Delivered)) {
        self.serve_until(now);
        while let Some(flight) = self.in_flight.take(now) {
            self.counters.delivered.add(flight.handle.bytes);
            if let Some(delivered) = self.store.take(flight) {
                sink(delivered);
            }
        }
    }

    /// Gives `sink` every packet that has arrived by `now`, without serving the bottleneck. This is for drivers whose
    /// two ends proceed by turns. It equals [`advance`](Link::advance) if `now` is at most
    /// [`least_delay`](Link::least_delay) after the last [`serve_until`](Link::serve_until) or `send`. The packets stay
    /// in memory.
    #[inline]
    pub fn arrive_by_ref(&mut self, now: Instant, sink: &mut impl FnMut(&Delivered)) {
        while let Some(flight) = self.in_flight.take(now) {
            self.counters.delivered.add(flight.handle.bytes);
            self.store.show(flight, sink);
        }
    }

    /// Returns the time at which `advance` next has something to do. Then a packet may turn out to be lost or late.
    /// `None` if nothing happens before the next packet is sent.
    pub fn next_event(&self) -> Option<Instant> {
        let finish = match (&self.in_service, &self.next) {
            (Some((_, service)), _) | (None, Some(Next::At(service))) => service.finish,
            (None, _) => {
                // A failed packet arrives no sooner than if it left when it is ready. Before that, nothing is to be
                // done.
                let ready = self.failed.next_ready();
                let again = ready.map(|ready| ready + self.delay.at(self.since_start(ready)));
                return self.in_flight.next_arrival().into_iter().chain(again).min();
            }
        };
        let leaving = finish + self.delay.at(self.since_start(finish));
        Some(self.in_flight.next_arrival().map_or(leaving, |arrival| arrival.min(leaving)))
    }

    /// True if every packet leaves the bottleneck when it is handed over. Then there is no limit, and no outage that
    /// holds packets.
    pub fn is_instant(&self) -> bool {
        self.bottleneck.is_instant()
    }

    /// The least time between a packet's departure from the bottleneck and its arrival.
    pub fn least_delay(&self) -> Duration {
        self.delay.least()
    }

    /// Totals so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Bytes, IP and framing, that the bottleneck could have carried from `from` to `to`. Excludes outages that hold
    /// packets; `None` without a limit. The utilization is [`charged_bytes`](Link::charged_bytes) divided by this.
    pub fn capacity_bytes(&self, from: Instant, to: Instant) -> Option<u64> {
        self.bottleneck.capacity_bytes(self.since_start(from), self.since_start(to))
    }

    /// Bytes that these packets use at the bottleneck: IP and framing.
    pub fn charged_bytes(&self, packets: Count) -> u64 {
        packets.bytes + packets.packets * self.framing_bytes
    }

    /// The number of packets that wait, are being sent, or will be retransmitted by the link layer.
    pub fn queued(&self) -> usize {
        let managed = self.managed.as_ref().map_or(0, |managed| managed.backlog().0);
        managed + self.queue.len() + self.failed.len() + usize::from(self.in_service.is_some())
    }

    /// Waiting IP bytes, as the limit of the queue counts them.
    pub fn queued_bytes(&self) -> u64 {
        self.queue.bytes() + self.managed.as_ref().map_or(0, |managed| managed.backlog().1)
    }

    /// The number of packets between the bottleneck and the other end, including those that are held.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len() + self.reorder_hold.as_ref().map_or(0, ReorderHold::len)
    }

    /// Lets the bottleneck proceed to `now`. [`advance`](Link::advance) and [`send`](Link::send) do this, too.
    #[inline]
    pub fn serve_until(&mut self, now: Instant) {
        self.now = self.now.max(now);
        // Usually a packet is still being sent, or there is none.
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
            if let Some((Waiting { handle, arrival, impairment, .. }, service)) = self.in_service.take() {
                self.leave(handle, arrival, impairment, service);
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

    /// Returns when the first packet of the queue will be served; `None` without one.
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
        Some(match self.bottleneck.serve(ready, u64::from(first.handle.bytes) + self.framing_bytes) {
            None => Next::Never,
            Some(service) => Next::At(Service {
                start: self.start + service.start,
                finish: self.start + service.finish,
                sending: service.sending,
            }),
        })
    }

    /// Moves a failed packet to the head of the queue, once its failure is known and the bottleneck is free.
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

    /// Handles a packet whose last byte has left the bottleneck. Usually the packet is then in flight.
    #[inline(always)]
    fn leave(&mut self, handle: PacketHandle, arrival: Instant, impairment: Impairment, service: Service) {
        self.free_at = service.finish;
        self.counters.transmitted.add(handle.bytes);
        self.counters.sending += service.sending;
        let left = self.since_start(service.finish);
        if !self.orderly || impairment.is_impaired() {
            return self.leave_oddly(handle, arrival, impairment, service, left);
        }
        let at = service.finish + self.delay.at(left) + impairment.jitter;
        let queue_delay = service.finish.saturating_since(arrival).saturating_sub(service.sending);
        self.in_flight.add_in_order(at, handle, queue_delay);
    }

    #[inline(never)]
    fn leave_oddly(
        &mut self,
        handle: PacketHandle,
        arrival: Instant,
        impairment: Impairment,
        service: Service,
        left: Duration,
    ) {
        if self.drops.covering(left).is_some() {
            self.counters.dropped_by_outage.add(handle.bytes);
            self.store.discard(handle);
        } else if let (Some(link_layer), 1..) = (self.link_retransmission, impairment.failures) {
            self.counters.retried.add(handle.bytes);
            let ready = service.finish + link_layer.after;
            let impairment = Impairment { failures: impairment.failures - 1, ..impairment };
            self.failed.push(Waiting { handle, arrival, ready, impairment });
        } else if impairment.faults.contains(Faults::LOST) {
            self.counters.dropped_by_loss.add(handle.bytes);
            self.store.discard(handle);
        } else {
            let at = service.finish + self.delay.at(left) + impairment.jitter;
            let queue_delay = service.finish.saturating_since(arrival).saturating_sub(service.sending);
            let copies = impairment.faults.contains(Faults::DUPLICATED);
            if let Some(handle) = copies.then(|| self.store.copy(&handle)).flatten() {
                self.counters.duplicated.add(handle.bytes);
                self.fly(impairment, Flight { at, handle, queue_delay });
            }
            self.fly(impairment, Flight { at, handle, queue_delay });
        }
    }

    fn fly(&mut self, impairment: Impairment, flight: Flight) {
        let Some(mut reorder_hold) = self.reorder_hold.take() else { return self.fly_on(impairment, flight) };
        // Held packets continue together with the packet that they waited for.
        let mut passed = core::mem::take(&mut self.passed);
        reorder_hold.take(self.store.packet(&flight.handle), flight, &mut |flight| passed.push(flight));
        self.reorder_hold = Some(reorder_hold);
        for flight in passed.drain(..) {
            self.fly_on(impairment, flight);
        }
        self.passed = passed;
    }

    fn fly_on(&mut self, impairment: Impairment, mut flight: Flight) {
        if let (true, Some(reorder)) = (impairment.faults.contains(Faults::HELD_BACK), self.reorder) {
            self.counters.reordered.add(flight.handle.bytes);
            flight.at += reorder.by;
            self.in_flight.add_out_of_order(flight);
        } else if self.jitter.is_some_and(|jitter| !jitter.keep_order) {
            self.in_flight.add_out_of_order(flight);
        } else {
            self.in_flight.add_in_order(flight.at, flight.handle, flight.queue_delay);
        }
    }

    fn since_start(&self, at: Instant) -> Duration {
        at.saturating_since(self.start)
    }
}

#[cfg(test)]
mod tests;
