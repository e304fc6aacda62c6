//! The memory that all flows share: how much each may keep, and how much each may advertise to servers.
//!
//! It uses the dynamic threshold of Choudhury and Hahne (IEEE/ACM Transactions on Networking 6(2), 1998). A user of a
//! shared memory may hold a multiple of the free part. A few users get nearly all of it, and many get even parts. A
//! greedy user leaves something for the next one.

/// Memory that a flow or subscriber holds: bytes kept, and bytes that servers may send by the windows that they were
/// shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct MemoryUse {
    pub(crate) kept: u64,
    #[serde(rename = "promised")]
    pub(crate) advertised: u64,
}

impl MemoryUse {
    /// Replaces one flow's part of the sum: `now` in place of `before`.
    pub(crate) fn replace(&mut self, before: MemoryUse, now: MemoryUse) {
        self.kept = (self.kept + now.kept).saturating_sub(before.kept);
        self.advertised = (self.advertised + now.advertised).saturating_sub(before.advertised);
    }
}

/// Smallest number of bytes that a packet's payload counts for. Each payload has its own piece of memory: 2 KiB, or
/// less than twice its length (`paceline_wire::BufferPool`). So the memory in use is at most twice what is counted,
/// even for small packets.
pub(crate) const PIECE_MIN: u64 = 1_024;

/// Our choice: one subscriber alone may have four fifths of the memory.
const SUBSCRIBER_MULTIPLE: u64 = 4;

/// Returns the most bytes that a server has in flight, whatever its window, after `acknowledged` bytes. These are ten
/// segments (RFC 6928), and one more byte for each acknowledged one (RFC 5681, Section 3.1). Without this limit, a
/// thousand idle flows would get the memory of the active ones. A server that sends more meets the limits on kept
/// bytes.
pub(crate) fn most_on_the_way(segment: u64, acknowledged: u64) -> u64 {
    10 * segment + acknowledged
}

/// True if a subscriber may keep `bytes` more.
pub(crate) fn may_keep(pool: u64, all_kept: u64, subscriber: MemoryUse, bytes: u64) -> bool {
    let Some(free) = pool.saturating_sub(all_kept).checked_sub(bytes) else { return false };
    subscriber.kept + bytes <= SUBSCRIBER_MULTIPLE.saturating_mul(free)
}

/// Returns the most that a flow may advertise to its server. It has already advertised `own`.
pub(crate) fn most_advertised(pool: u64, all_advertised: u64, subscriber: MemoryUse, own: u64) -> u64 {
    let free = pool.saturating_sub(all_advertised.saturating_sub(own));
    let of_subscriber = subscriber.advertised.saturating_sub(own);
    // The largest x with x <= free - x, and with of_subscriber + x <= 4 (free - x).
    let for_subscriber = SUBSCRIBER_MULTIPLE.saturating_mul(free).saturating_sub(of_subscriber);
    (free / 2).min(for_subscriber / (SUBSCRIBER_MULTIPLE + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greedy_subscriber_leaves_a_fifth() {
        let (mut all, mut greedy) = (0, MemoryUse::default());
        while may_keep(1_000_000, all, greedy, 1_000) {
            all += 1_000;
            greedy.kept += 1_000;
        }
        assert_eq!(all, 800_000);
        assert!(may_keep(1_000_000, all, MemoryUse::default(), 1_000));
    }

    #[test]
    fn windows_of_one_subscriber_leave_room_for_another() {
        let (mut all, mut greedy) = (0, MemoryUse::default());
        for _ in 0..1_000 {
            let advertised = most_advertised(1_000_000, all, greedy, 0);
            all += advertised;
            greedy.advertised += advertised;
        }
        assert!((700_000..=800_000).contains(&all), "{all}");
        assert!(most_advertised(1_000_000, all, MemoryUse::default(), 0) >= 100_000);
    }

    #[test]
    fn a_flow_alone_has_half_and_keeps_it() {
        let half = most_advertised(1_000_000, 0, MemoryUse::default(), 0);
        let own = MemoryUse { kept: 0, advertised: half };
        assert_eq!((half, most_advertised(1_000_000, half, own, half)), (500_000, 500_000));
    }
}
