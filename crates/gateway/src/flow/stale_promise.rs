//! Data that a server sends by a window that it was shown earlier.
//!
//! A right edge does not move back (RFC 9293, Section 3.8.6). A server may have been shown a large window while its
//! flow passed through, or before its link became slower. It goes on to send that much, and no window stops it: seconds
//! of data waited here. So a loss or a mark tells the server, as a full buffer would (RFC 2914, Section 3; RFC 3168,
//! Section 5). To the flow, a packet that is dropped here was lost before the gateway.

use paceline_wire::{Duration, Ecn, Instant, Packet};

use crate::context::Context;
use crate::retransmit_buffer::RetransmitBuffer;

/// CoDel's interval (RFC 8289, Section 4.3): a queue that goes away sooner is a burst.
const BURST: Duration = Duration::from_millis(100);
/// Our choice: fewer waiting segments are not too much. The window itself lets five wait. Five in place of eight gave
/// the same on 70 drawn points, as did half and twice the round trip below.
const LEAST_SEGMENTS: u64 = 8;

/// Since when too much data waits, and until when the server has been told.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct StalePromise {
    since: Option<Instant>,
    told_until: Option<Instant>,
}

/// The queue that new data of the server finds here.
pub(super) struct Backlog<'a> {
    /// Bytes that wait, bytes of a segment, and bytes that the server may still send by the window that it was shown.
    pub(super) waiting: u64,
    pub(super) segment: u64,
    pub(super) advertised: u64,
    /// The round trip to the client and on to the server.
    pub(super) round_trip: Duration,
    /// Holes in front of it are repaired one by one.
    pub(super) behind_holes: bool,
    /// The data that is kept, and up to where it has left.
    pub(super) buffer: &'a RetransmitBuffer,
    pub(super) sent: u64,
}

impl StalePromise {
    /// Checks new data, which may be marked here. True if it is not to be taken in.
    pub(super) fn refuses(
        &mut self,
        ctx: &mut Context<'_>,
        backlog: &Backlog<'_>,
        packet: &mut Packet,
    ) -> bool {
        let Backlog { waiting, segment, advertised, round_trip, behind_holes, buffer, sent } = *backlog;
        let too_much = waiting > LEAST_SEGMENTS * segment && advertised > waiting;
        let oldest = if too_much { buffer.from(sent) } else { None };
        let waits = oldest.map_or(Duration::ZERO, |chunk| ctx.now.saturating_since(chunk.arrival));
        // Our choice: a queue of one round trip is too much. A server that halves its window then still fills the path:
        // RFC 5681's halving needs a buffer of rate times round trip.
        let stands = waits > round_trip && !behind_holes;
        if !self.on_data(ctx.now, stands, waits, round_trip) {
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

    /// Takes new data. True if it tells the server that too much waits (`stands`), the oldest for `waits`. The server
    /// is told once per round trip, the wait included: it responds once (RFC 5681, Section 3.1; RFC 6675, Section 5).
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
    use crate::test_time::{at, ms};

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
