//! What is not TCP on its way to a subscriber, QUIC above all: passed at once, but no more than its share while TCP flows wait.
//!
//! The link is the subscriber's, so its datagrams take part in the subscriber's scheduler:
//! - while no TCP flow waits, they leave as they come;
//! - while some do, they have a flow's share for each of their own busy flows: for each byte that TCP sends, so much credit. What
//!   has credit leaves at once, before TCP; the rest waits, in order;
//! - what has left counts as outstanding, and as delivered once the link is known to have passed what left after it (it keeps the
//!   order). So the bound of `crate::bound` covers the whole link, and TCP leaves room;
//! - what waits is dropped by CoDel (RFC 8289), which QUIC answers as any congestion, and after [`WAIT_MAX`] in any case: no
//!   datagram is delayed by more, and none overtakes another.

mod busy;
mod codel;

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant, Packet};

use crate::pool::MemoryUse;
use crate::retransmit_buffer;
use busy::Busy;
use codel::CoDel;

/// Our choice: RFC 8289's interval, a round trip; a voice call still bears it.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(100);

/// Bytes that wait for one subscriber. Our choice: `WAIT_MAX` at 80 Mbit/s.
const WAITING_MAX: u64 = 1_000_000;

/// Our choice: what a QUIC sender may begin with (RFC 9002, Section 7.2) passes without a wait.
const CREDIT_MIN: u64 = 16_000;

/// On a fast link credit is kept for this time of its rate. Our choice: a few turns of the scheduler.
const CREDIT_TIME: Duration = Duration::from_millis(10);

/// Departures are told apart by this much, and no more of them are kept than `DEPARTURES_MAX`. Our choice: the bound's target is
/// eight times as long.
const DEPARTURE_STEP: Duration = Duration::from_millis(1);
const DEPARTURES_MAX: usize = 512;

/// A subscriber without TCP is remembered for so long after a datagram. Our choice: longer than QUIC's usual idle timeout of 30 s.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(60);

/// What is not TCP, of one subscriber.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct NonTcp {
    waiting: VecDeque<(Instant, Packet)>,
    waiting_bytes: u64,
    /// The memory of what waits, and that as counted among what its subscriber and all keep.
    #[serde(default)]
    kept: u64,
    #[serde(default)]
    charged: u64,
    /// Bytes that may leave although TCP flows wait.
    credit: u64,
    /// Bytes that left at about this time and are not known to have arrived.
    departures: VecDeque<(Instant, u64)>,
    outstanding: u64,
    codel: CoDel,
    busy: Busy,
    /// When the newest datagram came.
    last: Instant,
    pub(crate) downlink_bytes: u64,
    pub(crate) uplink_bytes: u64,
}

/// What becomes of a datagram.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is handed on at once, for each packet, without an allocation"
)]
pub(crate) enum Offered {
    /// It leaves at once.
    Leaves(Packet),
    /// It waits for its turn.
    Waits,
    /// Too much waits.
    Dropped,
}

impl NonTcp {
    /// A datagram came from the client.
    pub(crate) fn on_uplink(&mut self, now: Instant, bytes: u64) {
        self.last = now;
        self.uplink_bytes += bytes;
    }

    /// A datagram came for the client. `contended`: TCP flows of the subscriber wait for their turn. `may_keep` says whether there is memory.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        packet: Packet,
        contended: bool,
        may_keep: impl FnOnce(u64) -> bool,
    ) -> Offered {
        let bytes = packet.ip_len() as u64;
        self.last = now;
        self.busy.on_packet(now, &packet);
        if self.waiting.is_empty() && (!contended || self.credit >= bytes) {
            self.pay(bytes, contended);
            self.downlink_bytes += bytes;
            return Offered::Leaves(packet);
        }
        if self.waiting_bytes + bytes > WAITING_MAX || !may_keep(cost(&packet)) {
            return Offered::Dropped;
        }
        self.waiting_bytes += bytes;
        self.kept += cost(&packet);
        self.waiting.push_back((now, packet));
        Offered::Waits
    }

    /// The next datagram that waited and may leave now. `dropped` counts those that may not leave at all.
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

    /// Credit is for what leaves although TCP flows wait.
    fn pay(&mut self, bytes: u64, contended: bool) {
        if contended {
            self.credit -= bytes;
        }
    }

    /// `bytes` of TCP left while `flows` flows wanted to send; `per_ms` is what the link carries in a millisecond.
    pub(crate) fn on_tcp_sent(&mut self, now: Instant, bytes: u64, flows: u32, per_ms: u64) {
        let most = CREDIT_MIN.max(per_ms * CREDIT_TIME.as_millis());
        let share = bytes * u64::from(self.busy.flows(now)) / u64::from(flows.max(1));
        self.credit = (self.credit + share).min(most);
    }

    /// `bytes` of it left for the client, and TCP has something on the link, whose ACKs will tell of them.
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

    /// What left at `sent` has arrived: so has, or never will, what left before. Returns these bytes.
    pub(crate) fn on_arrival(&mut self, sent: Instant) -> u64 {
        let mut arrived = 0;
        while let Some(&(at, bytes)) = self.departures.front()
            && at <= sent
        {
            self.departures.pop_front();
            arrived = bytes.saturating_add(arrived);
        }
        // Of a state that was read from another process the sum may be anything.
        let arrived = arrived.min(self.outstanding);
        self.outstanding -= arrived;
        arrived
    }

    /// Nothing of TCP's is left on the link that could tell. Returns the bytes that count no more.
    pub(crate) fn forget_departures(&mut self) -> u64 {
        self.departures.clear();
        core::mem::take(&mut self.outstanding)
    }

    /// Bytes that have left and are not known to have arrived.
    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// What it keeps, as counted before and now.
    pub(crate) fn settle(&mut self) -> (MemoryUse, MemoryUse) {
        let memory_use = |kept| MemoryUse { kept, advertised: 0 };
        (memory_use(core::mem::replace(&mut self.charged, self.kept)), memory_use(self.kept))
    }

    /// The same of what another program wrote down, which may have counted otherwise.
    pub(crate) fn recount(&mut self) -> (MemoryUse, MemoryUse) {
        self.waiting_bytes = self.waiting.iter().map(|(_, packet)| packet.ip_len() as u64).sum();
        self.kept = self.waiting.iter().map(|(_, packet)| cost(packet)).sum();
        self.settle()
    }

    /// Bytes that wait.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// When it has to be looked at again.
    pub(crate) fn due(&self) -> Instant {
        let remembered = self.last + REMEMBERED;
        // A moment later, it has waited too long.
        self.waiting.front().map_or(remembered, |(since, _)| *since + WAIT_MAX + Duration::from_nanos(1))
    }

    /// Nobody has to remember it.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.waiting.is_empty() && self.last + REMEMBERED <= now
    }
}

/// What a packet that waits counts for, as one of a flow's.
fn cost(packet: &Packet) -> u64 {
    retransmit_buffer::cost(0, packet.payload().len() as u64)
}

#[cfg(test)]
mod tests;
