//! Finds out whether a subscriber's ACKs wait too long on its uplink to tell the state of the downlink.
//!
//! During an upload they wait so long (Section 1 of TCP-RRE). Their reports of outstanding and lost data are then out
//! of date. A bound by them is wrong, and data that is repeated by them has often arrived. So the flows pass through
//! until the uplink is free again.

use paceline_wire::{Duration, Instant};

use crate::rtt_min::{RttMin, STANDING};

/// Our choice: a shorter wait is no queue. An uplink may schedule a phone's packets some milliseconds late.
const LATE_MIN: Duration = Duration::from_millis(20);
/// Our choice: an upload that is bounded makes a shorter queue after its first round trips.
const BOUNDED_MIN: Duration = Duration::from_millis(250);
/// Our choice: how long ACKs count as late. An upload's queue is short for some round trips after each of its losses.
const FREE: Duration = Duration::from_secs(2);

/// What the uplink does to ACKs.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct LateAcks {
    standing: RttMin,
    first: Option<Instant>,
    late_at: Option<Instant>,
}

impl Default for LateAcks {
    fn default() -> Self {
        LateAcks { standing: RttMin::new(STANDING), first: None, late_at: None }
    }
}

impl LateAcks {
    /// Takes an ACK that waited for `queue` on the uplink. The path's round trip without queues is `rtt`. If a bound
    /// keeps the uplink's queue short, the queue goes away again. A download that passed meanwhile would fill the
    /// downlink's buffer, and the upload's ACKs would wait behind it.
    pub(crate) fn on_ack(&mut self, now: Instant, queue: Duration, rtt: Duration, bounded: bool) {
        let first = *self.first.get_or_insert(now);
        let standing = self.standing.update(now, queue);
        let longest = if bounded { (rtt * 2).max(BOUNDED_MIN) } else { (rtt / 2).max(LATE_MIN) };
        if standing > longest && now.saturating_since(first) >= STANDING {
            self.late_at = Some(now);
        } else {
            self.late_at.take_if(|at| now.saturating_since(*at) >= FREE);
        }
    }

    /// True if the ACKs are late.
    pub(crate) fn are_late(&self) -> bool {
        self.late_at.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_queue_that_stands_makes_acks_late_and_they_stay_so_for_two_seconds() {
        let mut acks = LateAcks::default();
        let mut feed = |from: u64, to: u64, queue: fn(u64) -> u64| {
            for ms in (from..to).step_by(10) {
                let queue = Duration::from_millis(queue(ms));
                acks.on_ack(
                    Instant::ZERO + Duration::from_millis(ms),
                    queue,
                    Duration::from_millis(60),
                    false,
                );
            }
            acks.are_late()
        };
        assert!(!feed(0, 1_000, |ms| if ms % 200 == 0 { 0 } else { 100 }), "it empties again and again");
        assert!(!feed(1_000, 2_000, |_| 29), "less than half of a round trip");
        assert!(!feed(2_000, 2_200, |_| 100));
        assert!(feed(2_200, 2_400, |_| 100));
        assert!(feed(2_400, 4_300, |_| 0));
        assert!(!feed(4_300, 4_800, |_| 0));
    }
}
