//! What a server sends on an old promise.
//!
//! A right edge does not move back (RFC 9293, Section 3.8.6). What a server was shown while its flow passed through, or before its link became
//! slower, it goes on to send, and the window says nothing against it: seconds of it waited here. A server that answers to no window is told by a
//! loss or a mark, as a full buffer would tell it (RFC 2914, Section 3; RFC 3168, Section 5). To the flow a packet that is dropped here is one
//! that was lost before the gateway.

use paceline_wire::{Duration, Ecn, Instant, Packet};

use crate::context::Context;
use crate::retransmit_buffer::RetransmitBuffer;

/// As CoDel's interval (RFC 8289, Section 4.3): what goes away sooner is a burst.
const BURST: Duration = Duration::from_millis(100);
/// Our choice: the window itself lets five segments wait. Five in place of eight gave the same on 70 drawn points, as did half and twice the round
/// trip below.
const LEAST_SEGMENTS: u64 = 8;

/// Since when the window says nothing, and until when the server has been told.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct StalePromise {
    since: Option<Instant>,
    told_until: Option<Instant>,
}

/// What new data of the server finds here.
pub(super) struct Backlog<'a> {
    /// Bytes that wait, those of a segment, and what the server may send by what it was shown.
    pub(super) waiting: u64,
    pub(super) segment: u64,
    pub(super) advertised: u64,
    /// To the client and to the server.
    pub(super) round_trip: Duration,
    /// What is kept, and what of it has left.
    pub(super) buffer: &'a RetransmitBuffer,
    pub(super) sent: u64,
}

impl StalePromise {
    /// New data comes, which may be marked here. True if it is not to be taken in.
    pub(super) fn refuses(
        &mut self,
        ctx: &mut Context<'_>,
        backlog: &Backlog<'_>,
        packet: &mut Packet,
    ) -> bool {
        let Backlog { waiting, segment, advertised, round_trip, buffer, sent } = *backlog;
        let too_much = waiting > LEAST_SEGMENTS * segment && advertised > waiting;
        let oldest = if too_much { buffer.from(sent) } else { None };
        let waits = oldest.map_or(Duration::ZERO, |chunk| ctx.now.saturating_since(chunk.arrival));
        // Our choice: a queue of a round trip. A server that halves its window then still fills the path (a buffer of one product of rate and
        // round trip is what RFC 5681's halving needs).
        if !self.on_data(ctx.now, waits > round_trip, waits, round_trip) {
            return false;
        }
        if matches!(packet.ecn(), Some(Ecn::Ect0 | Ecn::Ect1)) {
            ctx.counters.stale_promises_marked += 1;
            packet.set_ecn(Ecn::Ce);
            return false;
        }
        ctx.counters.stale_promises_dropped += 1;
        true
    }

    /// New data comes, while the oldest that waits has waited for `waits` and too much of it stands (`stands`). True if its server is to be told: once
    /// for each round trip, the wait included, since it answers once (RFC 5681, Section 3.1; RFC 6675, Section 5).
    fn on_data(&mut self, now: Instant, stands: bool, waits: Duration, round_trip: Duration) -> bool {
        if !stands {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let is_due = now.saturating_since(since) >= round_trip.max(BURST)
            && self.told_until.is_none_or(|until| now >= until);
        if is_due {
            self.told_until = Some(now + waits + round_trip);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_server_is_told_once_a_round_trip_after_a_burst_has_had_its_time() {
        let mut promise = StalePromise::default();
        let told: alloc::vec::Vec<u64> =
            (1_000..2_000).filter(|&now| promise.on_data(at(now), true, ms(200), ms(150))).collect();
        assert_eq!(told, [1_150, 1_500, 1_850]);
    }

    #[test]
    fn what_goes_away_in_between_is_no_queue_that_stands() {
        let mut promise = StalePromise::default();
        let told = (1_000..2_000).any(|now| promise.on_data(at(now), now % 100 > 0, ms(50), ms(20)));
        assert!(!told);
    }
}
