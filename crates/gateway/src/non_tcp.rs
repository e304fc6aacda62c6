//! Packets other than TCP towards a subscriber, above all QUIC. While TCP flows wait, they get no more than their
//! share.
//!
//! They take part in the scheduler of their subscriber, whose link they use:
//! - While no TCP flow waits, they leave at once.
//! - While TCP flows wait, each busy flow of datagrams has the share of one TCP flow. Each byte that TCP sends adds to
//!   their credit. A datagram with credit leaves at once, before TCP. The others wait, in order.
//! - Bytes that left count as outstanding. The link keeps the order, so they count as delivered when a packet that left
//!   later has arrived. The bound of `crate::bound` thus covers the whole link, and TCP leaves room.
//! - CoDel (RFC 8289) drops datagrams that wait, and QUIC takes the drop for congestion. After [`WAIT_MAX`] a datagram
//!   is dropped in any case. None is delayed longer, and none overtakes another.

mod busy;
mod codel;

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant, Packet};

use crate::pool::MemoryUse;
use crate::retransmit_buffer;
use busy::BusyFlows;
use codel::CoDel;

/// Our choice: the interval of RFC 8289, a round trip. A voice call still bears it.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(100);

/// The most bytes that wait for one subscriber. Our choice: `WAIT_MAX` at 80 Mbit/s.
const WAITING_MAX: u64 = 1_000_000;

/// Our choice: the initial window of a QUIC sender (RFC 9002, Section 7.2) passes without a wait.
const CREDIT_MIN: u64 = 16_000;

/// On a fast link the most credit is what the link carries in this time. Our choice: a few turns of the scheduler.
const CREDIT_TIME: Duration = Duration::from_millis(10);

/// Resolution of departure times, and the most of them that are kept. Our choice: the bound's target is eight times the
/// resolution.
const DEPARTURE_STEP: Duration = Duration::from_millis(1);
const DEPARTURES_MAX: usize = 512;

/// Time after its last datagram for which a subscriber without TCP is remembered. Our choice: longer than QUIC's usual
/// idle timeout of 30 s.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(60);

/// Packets other than TCP of one subscriber.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct NonTcp {
    waiting: VecDeque<(Instant, Packet)>,
    waiting_bytes: u64,
    /// Memory of the waiting packets, and the part of it counted for the subscriber and for all.
    #[serde(default)]
    kept: u64,
    #[serde(default)]
    charged: u64,
    /// Bytes that may leave while TCP flows wait.
    credit: u64,
    /// Bytes that left at about this time and may still be in flight.
    departures: VecDeque<(Instant, u64)>,
    outstanding: u64,
    codel: CoDel,
    busy: BusyFlows,
    /// Arrival time of the newest datagram.
    last: Instant,
    pub(crate) downlink_bytes: u64,
    pub(crate) uplink_bytes: u64,
}

/// What happens to a datagram that came for the client.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is handed on at once, for each packet, without an allocation"
)]
pub(crate) enum Admission {
    /// It leaves at once.
    Forward(Packet),
    /// It waits for its turn.
    Queued,
    /// Too much already waits, or there is no memory.
    Dropped,
}

impl NonTcp {
    /// Notes a datagram from the client.
    pub(crate) fn on_uplink(&mut self, now: Instant, bytes: u64) {
        self.last = now;
        self.uplink_bytes += bytes;
    }

    /// Takes a datagram for the client. `contended`: TCP flows of the subscriber wait for their turn. `may_keep` says
    /// whether there is memory.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        packet: Packet,
        contended: bool,
        may_keep: impl FnOnce(u64) -> bool,
    ) -> Admission {
        let bytes = packet.ip_len() as u64;
        self.last = now;
        self.busy.on_packet(now, &packet);
        if self.waiting.is_empty() && (!contended || self.credit >= bytes) {
            self.pay(bytes, contended);
            self.downlink_bytes += bytes;
            return Admission::Forward(packet);
        }
        if self.waiting_bytes + bytes > WAITING_MAX || !may_keep(cost(&packet)) {
            return Admission::Dropped;
        }
        self.waiting_bytes += bytes;
        self.kept += cost(&packet);
        self.waiting.push_back((now, packet));
        Admission::Queued
    }

    /// Returns the next waiting datagram that may leave now. `dropped` counts those that are dropped.
    pub(crate) fn take(&mut self, now: Instant, contended: bool, dropped: &mut u64) -> Option<Packet> {
        loop {
            let (since, packet) = self.waiting.front()?;
            let (wait, bytes) = (now.saturating_since(*since), packet.ip_len() as u64);
            let late = wait > WAIT_MAX;
            if !late && contended && self.credit < bytes {
                return None;
            }
            let (_, packet) = self.waiting.pop_front()?;
            self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
            self.kept = self.kept.saturating_sub(cost(&packet));
            if late || self.codel.drops(now, wait, self.waiting_bytes) {
                *dropped += 1;
                continue;
            }
            self.pay(bytes, contended);
            self.downlink_bytes += bytes;
            return Some(packet);
        }
    }

    /// Takes the credit for bytes that leave while TCP flows wait.
    fn pay(&mut self, bytes: u64, contended: bool) {
        if contended {
            self.credit -= bytes;
        }
    }

    /// Adds credit: `bytes` of TCP left while `flows` flows wanted to send. The link carries `per_ms` bytes in a
    /// millisecond.
    pub(crate) fn on_tcp_sent(&mut self, now: Instant, bytes: u64, flows: u32, per_ms: u64) {
        let most = CREDIT_MIN.max(per_ms * CREDIT_TIME.as_millis());
        let share = bytes * u64::from(self.busy.flows(now)) / u64::from(flows.max(1));
        self.credit = (self.credit + share).min(most);
    }

    /// Notes that `bytes` left for the client. TCP must have something in flight, whose ACKs will show their arrival.
    pub(crate) fn on_departure(&mut self, now: Instant, bytes: u64) {
        self.outstanding += bytes;
        let full = self.departures.len() >= DEPARTURES_MAX;
        match self.departures.back_mut() {
            Some((at, sum)) if full || now.saturating_since(*at) < DEPARTURE_STEP => {
                *sum += bytes;
                *at = now;
            }
            _ => self.departures.push_back((now, bytes)),
        }
    }

    /// A packet that left at `sent` has arrived, so all that left before has arrived or is lost. Returns the bytes of
    /// those.
    pub(crate) fn on_arrival(&mut self, sent: Instant) -> u64 {
        let mut arrived = 0;
        while let Some(&(at, bytes)) = self.departures.front()
            && at <= sent
        {
            self.departures.pop_front();
            arrived = bytes.saturating_add(arrived);
        }
        // A state from another process may have any sum.
        let arrived = arrived.min(self.outstanding);
        self.outstanding -= arrived;
        arrived
    }

    /// Forgets all departures: TCP has nothing in flight that could show their arrival. Returns the bytes that no
    /// longer count.
    pub(crate) fn forget_departures(&mut self) -> u64 {
        self.departures.clear();
        core::mem::take(&mut self.outstanding)
    }

    /// Returns the bytes that left and may still be in flight.
    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Returns the memory that it keeps: as last counted, and as of this call.
    pub(crate) fn settle(&mut self) -> (MemoryUse, MemoryUse) {
        let memory_use = |kept| MemoryUse { kept, advertised: 0 };
        (memory_use(core::mem::replace(&mut self.charged, self.kept)), memory_use(self.kept))
    }

    /// As `settle`, but counts anew. The program that wrote this state may have counted differently.
    pub(crate) fn recount(&mut self) -> (MemoryUse, MemoryUse) {
        self.waiting_bytes = self.waiting.iter().map(|(_, packet)| packet.ip_len() as u64).sum();
        self.kept = self.waiting.iter().map(|(_, packet)| cost(packet)).sum();
        self.settle()
    }

    /// Returns the bytes that wait.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Returns the time at which it must be looked at again.
    pub(crate) fn due(&self) -> Instant {
        let remembered = self.last + REMEMBERED;
        // One nanosecond later, the packet has waited too long.
        self.waiting.front().map_or(remembered, |(since, _)| *since + WAIT_MAX + Duration::from_nanos(1))
    }

    /// True if it need not be remembered any longer.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.waiting.is_empty() && self.last + REMEMBERED <= now
    }
}

/// Memory that a waiting packet counts for, as one of a TCP flow does.
fn cost(packet: &Packet) -> u64 {
    retransmit_buffer::cost(0, packet.payload().len() as u64)
}

#[cfg(test)]
mod tests;
