//! Packets other than TCP, for each subscriber.

use core::net::IpAddr;

use paceline_wire::{Instant, Packet};

use super::Table;
use crate::config::GatewayConfig;
use crate::ids::SubscriberId;
use crate::non_tcp::Admission;
use crate::pool::may_keep;
use crate::timers::disarm;

/// Waiting packets may leave if there is room for this many bytes: a full packet.
const NON_TCP_ROOM: u64 = 1_500;

impl Table {
    /// Notes `bytes` from a client. A client without TCP flows becomes a subscriber by it, if the table has room.
    pub(crate) fn non_tcp_from_client(
        &mut self,
        config: &GatewayConfig,
        now: Instant,
        client: IpAddr,
        bytes: u64,
    ) {
        let known = self.by_prefix.contains_key(&config.sharing.subscriber(client));
        if !known && self.subscribers.len() >= self.max_flows {
            return;
        }
        let index = self.subscriber_of(config, client);
        self.subscribers[index].non_tcp.get_or_insert_default().on_uplink(now, bytes);
        self.arm_non_tcp(index);
    }

    /// Takes a packet for a client. A client without a subscriber gets it at once.
    pub(crate) fn non_tcp_to_client(
        &mut self,
        config: &GatewayConfig,
        now: Instant,
        client: IpAddr,
        packet: Packet,
        buffered: &mut u64,
    ) -> Admission {
        let Some(&index) = self.by_prefix.get(&config.sharing.subscriber(client)) else {
            return Admission::Forward(packet);
        };
        let subscriber = &mut self.subscribers[index];
        let bytes = packet.ip_len() as u64;
        let contended = subscriber.contended(now, bytes);
        let (pool, memory_use) = (config.limits.max_buffer_bytes as u64, subscriber.memory_use);
        let may_keep = |bytes| may_keep(pool, *buffered, memory_use, bytes);
        let offered = subscriber.non_tcp.get_or_insert_default().offer(now, packet, contended, may_keep);
        if matches!(offered, Admission::Forward(_)) {
            subscriber.on_non_tcp_sent(now, bytes);
            self.capacity.on_sent(now, bytes);
        }
        self.settle_non_tcp(index, buffered);
        self.list_for_turn(index);
        self.arm_non_tcp(index);
        offered
    }

    /// Returns the next waiting packet other than TCP that may leave. `dropped` counts those that are dropped.
    pub(crate) fn next_non_tcp(
        &mut self,
        now: Instant,
        dropped: &mut u64,
        buffered: &mut u64,
    ) -> Option<Packet> {
        while let Some(&index) = self.stirred.last() {
            if let Some(subscriber) = self.subscribers.get_mut(index) {
                let contended = subscriber.contended(now, NON_TCP_ROOM);
                let next =
                    subscriber.non_tcp.as_mut().and_then(|non_tcp| non_tcp.take(now, contended, dropped));
                self.settle_non_tcp(index, buffered);
                let subscriber = &mut self.subscribers[index];
                if let Some(packet) = next {
                    let bytes = packet.ip_len() as u64;
                    subscriber.on_non_tcp_sent(now, bytes);
                    self.capacity.on_sent(now, bytes);
                    return Some(packet);
                }
                subscriber.stirred = false;
                self.arm_non_tcp(index);
            }
            self.stirred.pop();
        }
        None
    }

    /// Handles the timers of packets other than TCP.
    pub(crate) fn non_tcp_timeouts(&mut self, now: Instant) {
        loop {
            let subscribers = &mut self.subscribers;
            self.non_tcp_timers.tidy(subscribers.len(), |id| subscribers.get(id)?.armed);
            let due = self
                .non_tcp_timers
                .pop_due(now, |id, at| subscribers.get_mut(id).is_some_and(|one| disarm(&mut one.armed, at)));
            let Some(index) = due else { return };
            let subscriber = &mut self.subscribers[index];
            subscriber.non_tcp.take_if(|non_tcp| non_tcp.is_over(now));
            if subscriber.is_over() {
                self.forget(index);
                continue;
            }
            self.list_for_turn(index);
            if !self.subscribers[index].stirred {
                self.arm_non_tcp(index);
            }
        }
    }

    /// Lists a subscriber whose waiting packets other than TCP may be able to leave.
    pub(super) fn list_for_turn(&mut self, index: SubscriberId) {
        let subscriber = &mut self.subscribers[index];
        let waits = subscriber.non_tcp.as_ref().is_some_and(|non_tcp| non_tcp.waiting_bytes() > 0);
        if waits && !subscriber.stirred {
            subscriber.stirred = true;
            self.stirred.push(index);
        }
    }

    /// Charges the waiting packets to the subscriber, and to the memory that all share.
    fn settle_non_tcp(&mut self, index: SubscriberId, buffered: &mut u64) {
        let subscriber = &mut self.subscribers[index];
        let Some((before, now)) = subscriber.non_tcp.as_mut().map(|non_tcp| non_tcp.settle()) else { return };
        subscriber.memory_use.replace(before, now);
        *buffered = (*buffered + now.kept).saturating_sub(before.kept);
    }

    fn arm_non_tcp(&mut self, index: SubscriberId) {
        let subscriber = &mut self.subscribers[index];
        if let Some(non_tcp) = &subscriber.non_tcp {
            self.non_tcp_timers.set(&mut subscriber.armed, index, non_tcp.due());
        }
    }
}
