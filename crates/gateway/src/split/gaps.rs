//! Gaps in the server's data, and how long kept data must last for the client's leg to bridge them.
//!
//! Data behind a gap waits here until the server has repaired the gap: a round trip of the wired side or more. If no
//! more than a clean path's target waits, the client's link becomes idle in each gap. That capacity is lost. So while
//! gaps come, as much data may wait as lasts for the longest of them.

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

/// The recent gaps.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Gaps {
    /// While there is a gap: positions and times. At each time, nothing beyond its position had arrived. The first mark
    /// is that of the oldest gap.
    marks: VecDeque<(u64, Instant)>,
    /// The position after the highest byte that has arrived.
    highest: u64,
    /// The longest recent gap, and when it was seen.
    longest: Duration,
    seen: Option<Instant>,
}

/// Our choice: a gap is forgotten after this many round trips. Rarer gaps find no room. They cost less than one round
/// trip in this many.
const ROUNDS: u64 = 64;
/// The longest gap that counts, in round trips. Our choice: a repair, and a second one if the first is lost, too. Room
/// does not help against longer gaps.
const ROUNDS_LONG: u64 = 2;
/// Marks in a round trip. Our choice: a gap may appear longer by the interval between marks. In this time the client's
/// leg gets going again.
const MARKS: u64 = 8;

impl Gaps {
    /// Notes a packet from a server that is `rtt` away. All data before `received` is here, and none beyond `highest`.
    pub(super) fn on_arrival(&mut self, now: Instant, received: u64, highest: u64, rtt: Duration) {
        let before = core::mem::replace(&mut self.highest, highest.max(received));
        if highest <= received {
            self.marks.clear();
            return;
        }
        if self.marks.back().is_none_or(|&(_, at)| now.saturating_since(at) >= rtt / MARKS) {
            self.marks.push_back((before, now));
        }
        while self.marks.get(1).is_some_and(|&(position, _)| position <= received) {
            self.marks.pop_front();
        }
        let Some(&(_, since)) = self.marks.front() else { return };
        let length = now.saturating_since(since).min(rtt * ROUNDS_LONG);
        if length >= self.longest || self.is_past(now, rtt) {
            (self.longest, self.seen) = (length, Some(now));
        }
        // The oldest mark is no longer needed.
        if self.marks.len() as u64 > MARKS * ROUNDS_LONG {
            self.marks.pop_front();
        }
    }

    fn is_past(&self, now: Instant, rtt: Duration) -> bool {
        self.seen.is_none_or(|seen| now.saturating_since(seen) >= rtt * ROUNDS)
    }

    /// Returns how long data may wait here, so that the client's leg does not run dry in the next gap.
    pub(super) fn room(&self, now: Instant, rtt: Duration) -> Duration {
        if self.is_past(now, rtt) { Duration::ZERO } else { self.longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_time::at;

    const RTT: Duration = Duration::from_millis(80);

    /// One byte is sent each millisecond. `repaired` gives the delay of each byte, in milliseconds. Returns the gaps at
    /// the end.
    fn stream(until_ms: u64, repaired: impl Fn(u64) -> u64) -> Gaps {
        let (mut gaps, mut come) = (Gaps::default(), alloc::collections::BTreeSet::new());
        let mut received = 0;
        for ms in 0..until_ms {
            come.extend((0..=ms).filter(|&sent| sent + repaired(sent) == ms));
            while come.contains(&received) {
                received += 1;
            }
            let highest = come.last().map_or(0, |last| last + 1);
            gaps.on_arrival(at(ms), received, highest, RTT);
            assert!(gaps.marks.len() as u64 <= MARKS * ROUNDS_LONG + 1);
        }
        gaps
    }

    #[test]
    fn a_stream_without_gaps_needs_no_room() {
        assert_eq!(stream(500, |_| 0).room(at(500), RTT), Duration::ZERO);
    }

    #[test]
    fn there_is_room_for_the_longest_gap_and_not_for_long() {
        let gaps = stream(500, |sent| if sent == 100 { 90 } else { 0 });
        let room = gaps.room(at(500), RTT);
        assert!((88..=100).contains(&room.as_millis()), "{room:?}");
        assert_eq!(gaps.room(at(500) + RTT * ROUNDS, RTT), Duration::ZERO);
    }

    #[test]
    fn gaps_that_follow_each_other_closely_are_not_taken_for_one() {
        // There is always a gap, and each is repaired after 30 ms.
        let room = stream(1_000, |sent| if sent % 20 == 7 { 30 } else { 0 }).room(at(1_000), RTT);
        assert!((28..=40).contains(&room.as_millis()), "{room:?}");
    }

    #[test]
    fn a_server_that_has_gone_asks_for_no_more_than_two_round_trips() {
        let gaps = stream(1_000, |sent| if sent == 100 { 5_000 } else { 0 });
        assert_eq!(gaps.room(at(1_000), RTT), RTT * 2);
    }
}
