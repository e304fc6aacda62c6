//! The memory that all flows share: who may keep how much of it, and be promised how much.
//!
//! The dynamic threshold of Choudhury and Hahne (IEEE/ACM Transactions on Networking 6(2), 1998): a user of a shared memory may
//! hold a multiple of what is free. A few have nearly all of it, many an even part, and somebody who takes what he can leaves
//! something for whoever comes next.

/// What is held: bytes that are kept, or that servers may have on their way by the windows that they were shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Holdings {
    pub(crate) kept: u64,
    pub(crate) promised: u64,
}

impl Holdings {
    /// One flow of these now holds `now` in place of `before`.
    pub(crate) fn replace(&mut self, before: Holdings, now: Holdings) {
        self.kept = (self.kept + now.kept).saturating_sub(before.kept);
        self.promised = (self.promised + now.promised).saturating_sub(before.promised);
    }
}

/// A packet's payload counts for no less than this. It lies in a piece of memory of its own, of 2 KiB or less than twice its length
/// (`paceline_wire::BufferPool`): so at most twice of what is counted is in use, however small the packets of a flow are.
pub(crate) const PIECE_MIN: u64 = 1_024;

/// Our choice: a subscriber alone may have four fifths.
const SUBSCRIBER_MULTIPLE: u64 = 4;

/// What a server has on its way at most, whatever window it was shown, when so many bytes of its have been acknowledged: ten segments
/// (RFC 6928), and a byte more for each (RFC 5681, Section 3.1). A thousand flows that stand still would else be promised the memory of those that do
/// not. A server that sends more meets the limits of what is kept.
pub(crate) fn most_on_the_way(segment: u64, acknowledged: u64) -> u64 {
    10 * segment + acknowledged
}

/// Whether a subscriber may keep `bytes` more.
pub(crate) fn may_keep(pool: u64, all_kept: u64, subscriber: Holdings, bytes: u64) -> bool {
    let Some(free) = pool.saturating_sub(all_kept).checked_sub(bytes) else { return false };
    subscriber.kept + bytes <= SUBSCRIBER_MULTIPLE.saturating_mul(free)
}

/// The most that a flow may be promised, which was promised `own` before.
pub(crate) fn most_promised(pool: u64, all_promised: u64, subscriber: Holdings, own: u64) -> u64 {
    let free = pool.saturating_sub(all_promised.saturating_sub(own));
    let of_subscriber = subscriber.promised.saturating_sub(own);
    // The largest x with x <= free - x, and with of_subscriber + x <= 4 (free - x).
    let for_subscriber = SUBSCRIBER_MULTIPLE.saturating_mul(free).saturating_sub(of_subscriber);
    (free / 2).min(for_subscriber / (SUBSCRIBER_MULTIPLE + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greedy_subscriber_leaves_a_fifth() {
        let (mut all, mut greedy) = (0, Holdings::default());
        while may_keep(1_000_000, all, greedy, 1_000) {
            all += 1_000;
            greedy.kept += 1_000;
        }
        assert_eq!(all, 800_000);
        assert!(may_keep(1_000_000, all, Holdings::default(), 1_000));
    }

    #[test]
    fn promises_of_one_subscriber_leave_room_for_another() {
        let (mut all, mut greedy) = (0, Holdings::default());
        for _ in 0..1_000 {
            let promise = most_promised(1_000_000, all, greedy, 0);
            all += promise;
            greedy.promised += promise;
        }
        assert!((700_000..=800_000).contains(&all), "{all}");
        assert!(most_promised(1_000_000, all, Holdings::default(), 0) >= 100_000);
    }

    #[test]
    fn a_flow_alone_has_half_and_keeps_it() {
        let half = most_promised(1_000_000, 0, Holdings::default(), 0);
        let own = Holdings { kept: 0, promised: half };
        assert_eq!((half, most_promised(1_000_000, half, own, half)), (500_000, 500_000));
    }
}
