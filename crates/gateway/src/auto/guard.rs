//! Limits what one client may take of what all share.
//!
//! Bandwidth, payload memory and advertised windows are shared already (`share.rs`, `pool.rs`). Two things remain:
//! places in the flow table, which one client could fill by opening flows, and false acknowledgements.

/// Our choice, as in `pool.rs`: a subscriber alone may have four fifths of the places.
const SUBSCRIBER_MULTIPLE: usize = 4;
/// Our choice: a subscriber with fewer flows than this is never refused. Browsers open six connections to a host, and
/// some dozens in all.
const ALWAYS: usize = 64;

/// True if a subscriber with `own` flows may open another, with `all` of `max` places taken. This is the dynamic
/// threshold of Choudhury and Hahne (IEEE/ACM Transactions on Networking 6(2), 1998), which leaves places for the next
/// subscriber.
pub(crate) fn may_open(max: usize, all: usize, own: usize) -> bool {
    let free = max.saturating_sub(all + 1);
    own < ALWAYS.min(max.div_ceil(8)) || own < SUBSCRIBER_MULTIPLE.saturating_mul(free)
}

/// Bytes that a flow's ACKs covered, and those of them that were not sent.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct OptimisticAcks {
    acked: u64,
    unsent: u64,
}

/// Our choice: data that bypasses the gateway, as during a change of routes, is acknowledged like that too, but not for
/// long.
const UNSENT_MAX: u64 = 1 << 20;

impl OptimisticAcks {
    /// Handles an ACK that covers `acked` bytes for the first time, of which `unsent` had not left for the client. True
    /// if this is more than an accident: half of the recently acknowledged bytes, and more than `UNSENT_MAX`. That is
    /// optimistic ACKing (Savage et al., TCP Congestion Control with a Misbehaving Receiver, CCR 29(5), 1999).
    pub(crate) fn on_ack(&mut self, acked: u64, unsent: u64) -> bool {
        self.acked += acked;
        self.unsent += unsent;
        if self.acked > 4 * UNSENT_MAX {
            (self.acked, self.unsent) = (self.acked / 2, self.unsent / 2);
        }
        self.unsent > UNSENT_MAX && self.unsent > self.acked / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_opens_what_he_can_leaves_a_fifth_of_the_places() {
        let mut own = 0;
        while may_open(10_000, own, own) {
            own += 1;
        }
        assert!((7_900..=8_000).contains(&own), "{own}");
        assert!(may_open(10_000, own, 0) && may_open(10_000, own, 60));
    }

    #[test]
    fn a_full_table_still_has_room_for_a_client_with_few_flows() {
        assert!(may_open(1_000, 999, 3));
        assert!(!may_open(1_000, 999, 200));
        // A table too small to divide.
        assert!(may_open(1, 0, 0) && may_open(8, 0, 0));
    }

    #[test]
    fn an_accident_is_no_claim() {
        let mut claim = OptimisticAcks::default();
        assert!(!claim.on_ack(500_000, 500_000));
        assert!(!(0..10_000).any(|_| claim.on_ack(100_000, 1_000)));
        assert!((0..100).any(|_| claim.on_ack(100_000, 90_000)));
    }
}
