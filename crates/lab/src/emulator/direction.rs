//! One direction of an emulated link: the model, the packets that bypass it, and statistics.

use std::collections::VecDeque;

use paceline_linux::Quantiles;
use paceline_path::{ConfigError, Delay, Link, LinkConfig, LinkCounters, RateProcess};
use paceline_wire::{Duration, Instant, OpaqueReason, Packet, PortId};

use super::report::DirectionReport;
use super::series::Series;

#[derive(Debug)]
pub(super) struct Direction {
    name: String,
    from: PortId,
    to: PortId,
    shape: Shape,
    link: Link,
    start: Instant,
    /// The link's propagation delay, for packets that bypass it.
    delay: Delay,
    spared: VecDeque<(Instant, Packet)>,
    statistics: Statistics,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) split: bool,
    pub(super) spare: bool,
}

/// Times of a packet that came out of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    pub(super) at: Instant,
    pub(super) sent: Instant,
    pub(super) queue_delay: Duration,
}

#[derive(Debug)]
struct Statistics {
    /// The link's counters at the start of the measurement.
    base: LinkCounters,
    queue_delay: Quantiles,
    delivered_bytes: Series,
    queue_delay_max_us: Series,
    spared: u64,
}

impl Direction {
    pub(super) fn new(
        name: String,
        [from, to]: [PortId; 2],
        config: LinkConfig<RateProcess>,
        seed: u64,
        shape: Shape,
        start: Instant,
    ) -> Result<Self, ConfigError> {
        let delay = config.delay.clone();
        let link = Link::new(config, seed, start)?;
        let statistics = Statistics::new(start, *link.counters());
        Ok(Direction { name, from, to, shape, link, start, delay, spared: VecDeque::new(), statistics })
    }

    pub(super) fn from(&self) -> PortId {
        self.from
    }

    pub(super) fn to(&self) -> PortId {
        self.to
    }

    pub(super) fn restart_at(&mut self, start: Instant) {
        self.start = start;
        self.link.restart_at(start);
        self.statistics = Statistics::new(start, *self.link.counters());
    }

    pub(super) fn send(&mut self, arrival: Instant, packet: Packet) {
        if self.shape.spare && is_spared(&packet) {
            self.statistics.spared += 1;
            let delay = self.delay.at(arrival.saturating_since(self.start));
            if self.spared.len() < SPARED_MAX {
                self.spared.push_back((arrival + delay, packet));
            }
        } else if self.shape.split {
            packet.segments().for_each(|segment| self.link.send(arrival, segment));
        } else {
            self.link.send(arrival, packet);
        }
    }

    pub(super) fn next_event(&self) -> Option<Instant> {
        let spared = self.spared.front().map(|(at, _)| *at);
        self.link.next_event().into_iter().chain(spared).min()
    }

    /// Gives `sink` every packet that has come out until `now`. Packets that bypassed the link have no [`Exit`].
    pub(super) fn advance(&mut self, now: Instant, sink: &mut impl FnMut(Option<Exit>, Packet)) {
        let Direction { link, statistics, spared, .. } = self;
        link.advance(now, &mut |delivered| {
            let exit = Exit { at: delivered.at, sent: delivered.sent, queue_delay: delivered.queue_delay };
            statistics.note(exit, delivered.packet.ip_len());
            sink(Some(exit), delivered.packet);
        });
        while spared.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, packet)) = spared.pop_front() else { break };
            sink(None, packet);
        }
    }

    pub(super) fn report(&self, now: Instant) -> DirectionReport {
        let (counters, base) = (self.link.counters(), &self.statistics.base);
        let charged = |link: &LinkCounters| self.link.charged_bytes(link.transmitted);
        let capacity_bytes = self.link.capacity_bytes(self.start, now);
        DirectionReport {
            name: self.name.clone(),
            sent_packets: counters.sent.packets - base.sent.packets,
            sent_bytes: counters.sent.bytes - base.sent.bytes,
            delivered_packets: counters.delivered.packets - base.delivered.packets,
            delivered_bytes: counters.delivered.bytes - base.delivered.bytes,
            charged_bytes: charged(counters) - charged(base),
            capacity_bytes,
            dropped_by_queue: counters.dropped_by_queue.packets - base.dropped_by_queue.packets,
            dropped_by_aqm: counters.dropped_by_aqm.packets - base.dropped_by_aqm.packets,
            dropped_by_policer: counters.dropped_by_policer.packets - base.dropped_by_policer.packets,
            marked: counters.marked.packets - base.marked.packets,
            dropped_by_loss: counters.dropped_by_loss.packets - base.dropped_by_loss.packets,
            dropped_by_outage: counters.dropped_by_outage.packets - base.dropped_by_outage.packets,
            duplicated: counters.duplicated.packets - base.duplicated.packets,
            reordered: counters.reordered.packets - base.reordered.packets,
            spared: self.statistics.spared,
            queued_bytes_max: counters.queued_bytes_max,
            queue_delay: self.statistics.queue_delay.clone(),
            delivered_series: self.statistics.delivered_bytes.clone(),
            queue_delay_max_us: self.statistics.queue_delay_max_us.clone(),
        }
    }
}

impl Statistics {
    fn new(start: Instant, base: LinkCounters) -> Self {
        Statistics {
            base,
            queue_delay: Quantiles::new(),
            delivered_bytes: Series::new(start),
            queue_delay_max_us: Series::new(start),
            spared: 0,
        }
    }

    fn note(&mut self, exit: Exit, ip_len: usize) {
        self.queue_delay.record(exit.queue_delay);
        self.delivered_bytes.add(exit.at, ip_len as u32);
        let delay_us = u32::try_from(exit.queue_delay.as_micros()).unwrap_or(u32::MAX);
        self.queue_delay_max_us.raise(exit.at, delay_us);
    }
}

/// True for address resolution: ARP and everything else that is not IP, and ICMPv6 types 133 to 137 (RFC 4861).
fn is_spared(packet: &Packet) -> bool {
    match packet.opaque_reason() {
        Some(OpaqueReason::NotIp) => true,
        Some(OpaqueReason::NotTcp) => {
            let header = packet.header();
            let is_icmpv6 = packet.is_ipv6() && header.get(6) == Some(&58);
            is_icmpv6 && header.get(40).is_some_and(|kind| (133..=137).contains(kind))
        }
        _ => false,
    }
}

/// Our choice: far more requests than a lab's hosts make within one delay.
const SPARED_MAX: usize = 1024;
