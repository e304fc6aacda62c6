//! A small discrete-event model: gateway -> drop-tail bottleneck -> client -> acknowledgements back to the gateway.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use paceline_gateway::bound::BoundSample;
use paceline_wire::{Duration, Instant, Rate};

use crate::cubic::Cubic;
use crate::link::Service;
use crate::rules::Rule;

/// Size of every packet in bytes.
pub(crate) const PACKET: u64 = 1_500;

/// The server of the bounded flow in slow start: ten packets, then two for every acknowledged one, without a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    /// Round trip between server and gateway.
    pub(crate) wired_rtt: Duration,
    /// Number of packets to send.
    pub(crate) total: u64,
}

/// Traffic that bypasses the gateway and shares the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rival {
    None,
    /// One CUBIC flow between two times.
    Cubic {
        from: Duration,
        to: Duration,
    },
    /// Packets at a constant rate.
    Udp(Rate),
}

/// One experiment.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) link: Service,
    pub(crate) queue_bytes: u64,
    /// Round-trip propagation between gateway and client. Each value holds from its time on.
    pub(crate) rtt: Vec<(Duration, Duration)>,
    /// The longest random delay of an acknowledgement. Order is kept.
    pub(crate) jitter: Duration,
    /// Interval at which acknowledgements arrive in batches.
    pub(crate) ack_batch: Duration,
    /// Packets per acknowledgement.
    pub(crate) ack_every: u32,
    /// Random loss, in packets per million.
    pub(crate) loss_ppm: u32,
    pub(crate) server: Server,
    pub(crate) rival: Rival,
    pub(crate) length: Duration,
}

impl Path {
    /// A download without end, alone on the link, with an acknowledgement for each packet and 3 MB of buffer.
    pub(crate) fn new(link: Service, rtt: Duration, length: Duration) -> Self {
        Path {
            link,
            queue_bytes: 3_000_000,
            rtt: vec![(Duration::ZERO, rtt)],
            jitter: Duration::ZERO,
            ack_batch: Duration::ZERO,
            ack_every: 1,
            loss_ppm: 0,
            server: Server { wired_rtt: Duration::from_millis(30), total: 1 << 40 },
            rival: Rival::None,
            length,
        }
    }

    fn rtt_at(&self, at: Instant) -> Duration {
        let elapsed = at.saturating_since(Instant::ZERO);
        self.rtt.iter().rev().find(|step| step.0 <= elapsed).map_or(self.rtt[0].1, |step| step.1)
    }
}

/// One packet of the bounded flow that left the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) at: Instant,
    pub(crate) queue_delay: Duration,
}

/// Results of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) rival: Vec<Delivery>,
    pub(crate) drops: u64,
    /// Time at which the last packet was acknowledged, if the server's data ends.
    pub(crate) completed: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Bounded,
    Cubic,
    Udp,
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    owner: Owner,
    number: u64,
    sent: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(dead_code)] // Only experiments poll.
enum Event {
    Departure,
    Ack,
    DelayedAck(u64),
    RivalAck { sent: Instant },
    RivalStart,
    RivalRecover,
    UdpSend,
    SourceArrival(u64),
    Poll,
}

/// The running state of one experiment.
pub(crate) struct Model<'a> {
    path: &'a Path,
    link: Service,
    rule: &'a mut dyn Rule,
    now: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    tie: u64,
    queue: VecDeque<Flying>,
    departing: bool,
    // The bounded flow.
    waiting: u64,
    produced: u64,
    acked: u64,
    outstanding: u64,
    next: u64,
    flight: VecDeque<Flying>,
    returning: VecDeque<(Instant, Vec<Flying>)>,
    unacked: Vec<Flying>,
    unacked_generation: u64,
    last_ack: Instant,
    random: u64,
    cubic: Cubic,
    outcome: Outcome,
}

/// Runs `path` under `rule`.
pub(crate) fn run(path: &Path, rule: &mut dyn Rule) -> Outcome {
    let mut model = Model {
        path,
        link: path.link.clone(),
        rule,
        now: Instant::ZERO,
        events: BinaryHeap::new(),
        tie: 0,
        queue: VecDeque::new(),
        departing: false,
        waiting: 0,
        produced: 0,
        acked: 0,
        outstanding: 0,
        next: 0,
        flight: VecDeque::new(),
        returning: VecDeque::new(),
        unacked: Vec::new(),
        unacked_generation: 0,
        last_ack: Instant::ZERO,
        random: 0x9e37_79b9_7f4a_7c15,
        cubic: Cubic::default(),
        outcome: Outcome::default(),
    };
    model.start();
    while let Some(Reverse((at, _, event))) = model.events.pop() {
        if at > Instant::ZERO + path.length {
            break;
        }
        model.now = at;
        model.handle(event);
        model.forward();
    }
    model.outcome
}

impl Model<'_> {
    fn at(&mut self, at: Instant, event: Event) {
        self.tie += 1;
        self.events.push(Reverse((at.max(self.now), self.tie, event)));
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if below == 0 { 0 } else { (self.random >> 11) % below }
    }

    fn start(&mut self) {
        self.produced = 10;
        self.waiting = 10;
        match self.path.rival {
            Rival::None => {}
            Rival::Cubic { from, .. } => self.at(Instant::ZERO + from, Event::RivalStart),
            Rival::Udp(_) => self.at(Instant::ZERO, Event::UdpSend),
        }
        self.forward();
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Departure => self.depart(),
            Event::Ack => self.ack(),
            Event::DelayedAck(generation) => {
                if generation == self.unacked_generation && !self.unacked.is_empty() {
                    self.send_ack();
                }
            }
            Event::RivalAck { sent } => {
                let rtt = self.now.saturating_since(sent);
                self.cubic.on_ack(self.now, rtt);
                self.rival_forward();
            }
            Event::RivalStart => self.rival_forward(),
            Event::RivalRecover => {
                self.cubic.on_loss(self.now);
                self.rival_forward();
            }
            Event::UdpSend => {
                self.enqueue(Flying { owner: Owner::Udp, number: 0, sent: self.now });
                if let Rival::Udp(rate) = self.path.rival {
                    self.at(self.now + rate.time_for(PACKET), Event::UdpSend);
                }
            }
            Event::SourceArrival(packets) => self.waiting += packets,
            Event::Poll => {
                if let Some(every) = self.rule.poll() {
                    self.at(self.now + every, Event::Poll);
                }
            }
        }
    }

    fn forward(&mut self) {
        while self.waiting > 0 {
            let view = View { queue: self.queue.len() as u64 * PACKET, link: &self.link };
            if self
                .rule
                .limit(self.now, &view)
                .is_some_and(|limit| self.outstanding + PACKET > limit.max(PACKET))
            {
                break;
            }
            if self.outstanding > 20_000_000 {
                break;
            }
            self.waiting -= 1;
            self.outstanding += PACKET;
            let packet = Flying { owner: Owner::Bounded, number: self.next, sent: self.now };
            self.next += 1;
            self.flight.push_back(packet);
            self.enqueue(packet);
        }
    }

    fn rival_forward(&mut self) {
        let Rival::Cubic { to, .. } = self.path.rival else { return };
        while self.now < Instant::ZERO + to && self.cubic.may_send() {
            let number = self.cubic.on_sent();
            self.enqueue(Flying { owner: Owner::Cubic, number, sent: self.now });
        }
    }

    fn enqueue(&mut self, packet: Flying) {
        if (self.queue.len() as u64 + 1) * PACKET > self.path.queue_bytes {
            self.outcome.drops += 1;
            if packet.owner == Owner::Cubic {
                // The sender learns of it after the packets in the queue have left, and a round trip.
                let delay =
                    self.path.rtt_at(self.now) + self.link.drain_time(self.now, self.queue.len() as u64);
                self.at(self.now + delay, Event::RivalRecover);
            }
            return;
        }
        self.queue.push_back(packet);
        if !self.departing {
            self.departing = true;
            let next = self.link.next_departure(self.now, PACKET);
            self.at(next, Event::Departure);
        }
    }

    fn depart(&mut self) {
        self.departing = false;
        let Some(packet) = self.queue.pop_front() else { return };
        let service = self.link.on_departure(self.now, PACKET);
        let waited = self.now.saturating_since(packet.sent).saturating_sub(service);
        let delivery = Delivery { at: self.now, queue_delay: waited };
        let back = self.now + self.path.rtt_at(self.now);
        match packet.owner {
            Owner::Bounded => {
                if self.path.loss_ppm == 0 || self.random(1_000_000) >= u64::from(self.path.loss_ppm) {
                    self.outcome.deliveries.push(delivery);
                    self.unacked.push(packet);
                    if self.unacked.len() as u32 >= self.path.ack_every {
                        self.send_ack();
                    } else {
                        self.unacked_generation += 1;
                        let generation = self.unacked_generation;
                        self.at(self.now + Duration::from_millis(40), Event::DelayedAck(generation));
                    }
                }
            }
            Owner::Cubic => {
                self.outcome.rival.push(delivery);
                self.at(back, Event::RivalAck { sent: packet.sent });
            }
            Owner::Udp => self.outcome.rival.push(delivery),
        }
        if !self.queue.is_empty() {
            self.departing = true;
            let next = self.link.next_departure(self.now, PACKET);
            self.at(next, Event::Departure);
        }
    }

    fn send_ack(&mut self) {
        self.unacked_generation += 1;
        let jitter = self.path.jitter.as_nanos();
        let jitter = Duration::from_nanos(self.random(jitter));
        let mut at = (self.now + self.path.rtt_at(self.now) + jitter).max(self.last_ack);
        let batch = self.path.ack_batch.as_nanos();
        if batch > 0 {
            at = Instant::from_nanos(at.as_nanos().div_ceil(batch) * batch);
        }
        self.last_ack = at;
        let packets = core::mem::take(&mut self.unacked);
        self.returning.push_back((at, packets));
        self.at(at, Event::Ack);
    }

    fn ack(&mut self) {
        let Some((_, packets)) = self.returning.pop_front() else { return };
        let Some(newest) = packets.last().copied() else { return };
        let delivered = packets.len() as u64 * PACKET;
        // Lost packets are retransmitted at once, as if SACK had shown each hole three packets later.
        let mut lost = 0;
        while let Some(first) = self.flight.front().copied() {
            if first.number > newest.number {
                break;
            }
            if packets.iter().any(|p| p.number == first.number) {
                self.flight.pop_front();
                continue;
            }
            lost += 1;
            self.flight.pop_front();
        }
        self.outstanding -= delivered + lost * PACKET;
        self.waiting += lost;
        if lost > 0 {
            self.rule.on_loss(self.now);
        }
        self.acked += packets.len() as u64;
        let sample = BoundSample {
            flows: 1,
            server_rtt: Duration::ZERO,
            now: self.now,
            delivered,
            rtt: Some(self.now.saturating_since(newest.sent)),
            age: Some(self.now.saturating_since(newest.sent)),
            outstanding: self.outstanding,
            limited: self.waiting > 0,
            own: false,
            paced: false,
            crowded: false,
        };
        self.rule.on_ack(&sample);
        let Server { wired_rtt, total } = self.path.server;
        let more = (2 * packets.len() as u64).min(total.saturating_sub(self.produced));
        self.produced += more;
        if more > 0 {
            self.at(self.now + wired_rtt, Event::SourceArrival(more));
        }
        if self.acked >= total {
            self.outcome.completed.get_or_insert(self.now);
        }
    }
}

/// State that only an oracle may use.
pub(crate) struct View<'a> {
    pub(crate) queue: u64,
    pub(crate) link: &'a Service,
}
