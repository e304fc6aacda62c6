//! CoDel as in Section 5 of RFC 8289, without the queue. It decides about one packet. `crates/path` also looks at the
//! packet behind a dropped one, which decides whether `drop_next` moves, and it can mark.

use paceline_wire::{Duration, Instant};

/// RFC 8289, Section 4.4.
const TARGET: Duration = Duration::from_millis(5);
/// RFC 8289, Section 4.3.
const INTERVAL: Duration = Duration::from_millis(100);
/// If no more than this waits, nothing is dropped (Section 5.6).
const MTU: u64 = 1_500;

/// The state, with the names of RFC 8289.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct CoDel {
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u64,
    lastcount: u64,
    dropping: bool,
}

impl CoDel {
    /// True if the packet just taken out must be dropped. `left` bytes wait behind it.
    pub(super) fn drops(&mut self, now: Instant, sojourn: Duration, left: u64) -> bool {
        let ok_to_drop = self.ok_to_drop(now, sojourn, left);
        if self.dropping {
            self.dropping = ok_to_drop;
            let drops = ok_to_drop && now >= self.drop_next;
            if drops {
                self.count += 1;
                self.drop_next = control_law(self.drop_next, self.count);
            }
            return drops;
        }
        if ok_to_drop {
            self.dropping = true;
            // As in Section 5.5: if CoDel was dropping recently, it resumes at about the rate that it had found.
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now.saturating_since(self.drop_next) < INTERVAL * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = control_law(now, self.count);
            self.lastcount = self.count;
        }
        ok_to_drop
    }

    /// dodequeue() of Section 5.6.
    fn ok_to_drop(&mut self, now: Instant, sojourn: Duration, left: u64) -> bool {
        if sojourn < TARGET || left <= MTU {
            self.first_above_time = None;
            return false;
        }
        let first = *self.first_above_time.get_or_insert(now + INTERVAL);
        now >= first
    }
}

/// Adds to `t` an interval that shrinks with the square root of the number of drops.
fn control_law(t: Instant, count: u64) -> Instant {
    t + Duration::from_nanos((INTERVAL.as_nanos().pow(2) / count.max(1)).isqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_time::at;

    #[test]
    fn drops_begin_an_interval_after_the_target_was_left_and_come_closer() {
        let mut codel = CoDel::default();
        let drops: alloc::vec::Vec<u64> =
            (1_000..1_600).filter(|&ms| codel.drops(at(ms), Duration::from_millis(20), 50_000)).collect();
        // The first drop after 100 ms, then each 100 / sqrt(n) ms after the one before.
        assert_eq!(drops, [1_100, 1_200, 1_271, 1_329, 1_379, 1_424, 1_464, 1_502, 1_538, 1_571]);
    }

    #[test]
    fn a_short_wait_or_a_short_queue_is_left_alone() {
        let mut codel = CoDel::default();
        for ms in 0..1_000 {
            assert!(!codel.drops(at(ms), Duration::from_millis(4), 50_000));
            assert!(!codel.drops(at(ms), Duration::from_millis(50), 1_500));
        }
    }
}
