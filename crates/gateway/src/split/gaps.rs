//! Gaps in what the server sends, and how long the client's leg has to live on what came before them.
//!
//! What is behind a gap waits here until the server has repaired it, a round trip of the wired side or more. If no more waits in front
//! than the target of a clean path, the client's link idles in each gap, and what it did not carry then it never carries. So for as
//! long as gaps come, as much may wait as the longest of them took.

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

/// The gaps of late.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Gaps {
    /// While there is a gap: nothing beyond these positions had come at these times. The first is of the first gap.
    marks: VecDeque<(u64, Instant)>,
    /// The position after the highest byte that has come.
    highest: u64,
    /// The longest gap of late, and when it was seen.
    longest: Duration,
    seen: Option<Instant>,
}

/// Our choice: a gap is forgotten after so many round trips, so that gaps which come less often, and find no room, cost less than a
/// round trip in so many.
const ROUNDS: u64 = 64;
/// Our choice: a repair, and its own repair if it is lost as well. What takes longer is no matter of room.
const ROUNDS_LONG: u64 = 2;
/// Our choice: marks in a round trip. By so much a gap is taken for longer than it is, which is the time in which the client's leg gets
/// going again.
const MARKS: u64 = 8;

impl Gaps {
    /// A packet came of a server that is `rtt` away. Now everything before `received` is here, and nothing beyond `highest`.
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
        // The oldest has said what it can.
        if self.marks.len() as u64 > MARKS * ROUNDS_LONG {
            self.marks.pop_front();
        }
    }

    fn is_past(&self, now: Instant, rtt: Duration) -> bool {
        self.seen.is_none_or(|seen| now.saturating_since(seen) >= rtt * ROUNDS)
    }

    /// How long data may have to wait here for the client's leg not to run dry behind the next gap.
    pub(super) fn room(&self, now: Instant, rtt: Duration) -> Duration {
        if self.is_past(now, rtt) { Duration::ZERO } else { self.longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(80);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A byte each millisecond, of which some are `repaired` so late, in milliseconds; and what then is thought of gaps.
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
        // There is a gap all the time, and each is repaired after 30 ms.
        let room = stream(1_000, |sent| if sent % 20 == 7 { 30 } else { 0 }).room(at(1_000), RTT);
        assert!((28..=40).contains(&room.as_millis()), "{room:?}");
    }

    #[test]
    fn a_server_that_has_gone_asks_for_no_more_than_two_round_trips() {
        let gaps = stream(1_000, |sent| if sent == 100 { 5_000 } else { 0 });
        assert_eq!(gaps.room(at(1_000), RTT), RTT * 2);
    }
}
