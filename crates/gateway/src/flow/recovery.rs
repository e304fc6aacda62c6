//! Known losses of the radio link: the hole at the front, suspected losses, the probe, and what was given up. The rules
//! by which something is lost are in losses.rs.

use core::ops::Range;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use paceline_wire::{Duration, Instant};

use super::early_answers::EarlyAnswers;
use crate::flight::{Flight, Transmission};
use crate::scoreboard::Scoreboard;

/// Suspected ranges that may wait for the reordering window. Of more, the oldest count as lost.
const SUSPECTS_MAX: usize = 4096;
/// DupThresh of RFC 6675.
const SURPLUS_MIN: u32 = 3;

/// What has left the link according to an ACK.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct LeftLink {
    pub(super) bytes: u64,
    /// Departure of its last transmission.
    pub(super) sent_at: Option<Instant>,
}

/// What was found lost.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct FoundLost {
    pub(super) bytes: u64,
    pub(super) sent_at: Option<Instant>,
}

/// A range that should have been reported.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Suspect {
    gone: Transmission,
    deadline: Instant,
}

/// The hole at the front of the stream: the cumulative ACK stands still until it is filled.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Hole {
    pub(super) position: u64,
    /// First departure of the missing packet.
    pub(super) sent_at: Instant,
}

/// A probe: the head was sent again because the client was silent. The answer tells loss from delay, as in F-RTO (RFC
/// 5682). If it covers more than the head, the first copies are arriving and nothing else is lost.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Probe {
    /// Where the head ends.
    end: u64,
    /// The answer covered just the head: the rest is lost unless more is reported by this time.
    decide_at: Option<Instant>,
}

/// A guess that everything in flight was lost, made by the answer to a probe. After an outage first copies may follow
/// slowly. As in RFC 5682, Section 2.1, step 3, the arrival of data that was not sent again refutes it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Guess {
    /// When it was made.
    at: Instant,
    /// What was in flight then.
    flight: Flight,
    /// End of what was in flight.
    end: u64,
    /// Bytes of it that may leave again before the client is heard.
    #[serde(rename = "may_repeat")]
    may_retransmit: u64,
}

/// The server sent the front again while the newest copy from here was thought to be in flight.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct ServerRetransmission {
    front: u64,
    /// Departure of that copy.
    sent_at: Instant,
    /// Arrival of the server's copy.
    since: Instant,
}

/// Segments that leave first after a guess. Our choice: as at the beginning (RFC 6928), since the client has been
/// heard. In RFC 5681, Section 3.1, one segment leaves after a timeout.
const RETRANSMIT_FIRST: u64 = 10;

/// Loss detection of one flow.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Recovery {
    pub(super) hole: Option<Hole>,
    suspects: VecDeque<Suspect>,
    probe: Option<Probe>,
    guess: Option<Box<Guess>>,
    /// Without SACK: end of what had left when the newest loss episode began (`recover` of RFC 6582), and departure of
    /// the newest repair.
    #[serde(default)]
    recover: u64,
    #[serde(default)]
    repaired_at: Instant,
    /// Without SACK: bytes that duplicate ACKs reported and no cumulative ACK has covered (Linux: sacked_out).
    #[serde(default)]
    told: u64,
    /// End of all that was sent again from here.
    #[serde(default)]
    pub(super) retransmitted_to: u64,
    #[serde(default)]
    pub(super) early_answers: EarlyAnswers,
    #[serde(default)]
    insistence: Option<ServerRetransmission>,
    /// Duplicate ACKs beyond the number of packets that left before the repair of the head.
    surplus: u32,
    /// Only holes that the client reports are repaired: Eq. (12) is off.
    #[serde(default)]
    pub(super) only_reported: bool,
    /// The reordering window in quarters of the RTT; zero while no reordering was seen.
    reordering_quarters: u64,
    /// Holes that have to close until the window is taken back (RACK.reo_wnd_persist).
    reordering_persist: u32,
    /// What was found lost since the last report, and when the first of it had left.
    #[serde(default)]
    pub(super) found: FoundLost,
    /// Scratch space, kept so that an ACK allocates nothing.
    pub(super) parts: Vec<Range<u64>>,
    pub(super) newly: Vec<Range<u64>>,
}

impl Recovery {
    /// When the next suspect or the answer to a probe is to be judged.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let decision = self.probe.and_then(|probe| probe.decide_at);
        [self.suspects.front().map(|s| s.deadline), decision].into_iter().flatten().min()
    }

    /// True if the server insists on `front`, of which a copy left at `sent_at`. It has sent `front` a `round_trip`
    /// before, and could hear of that copy since. After an outage of minutes the RTT measured here is as long, and the
    /// server may know better.
    pub(super) fn server_insists(
        &mut self,
        now: Instant,
        front: u64,
        sent_at: Instant,
        round_trip: Duration,
    ) -> bool {
        match self.insistence {
            Some(known) if (known.front, known.sent_at) == (front, sent_at) => {
                now.saturating_since(known.since) >= round_trip
            }
            _ => {
                self.insistence = Some(ServerRetransmission { front, sent_at, since: now });
                false
            }
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> u64 {
        let suspects = (self.suspects.len() * size_of::<Suspect>()) as u64;
        suspects + self.guess.as_ref().map_or(0, |guess| guess.flight.memory())
    }

    /// True if the client was silent and is being asked.
    pub(super) fn is_asking(&self) -> bool {
        self.probe.is_some()
    }

    /// Lost bytes that may leave again now.
    pub(super) fn may_retransmit(&self) -> u64 {
        self.guess.as_ref().map_or(u64::MAX, |guess| guess.may_retransmit)
    }

    /// Notes that lost data left again.
    pub(super) fn on_retransmitted(&mut self, now: Instant, data: Range<u64>) {
        self.repaired_at = now;
        self.retransmitted_to = self.retransmitted_to.max(data.end);
        if let Some(guess) = &mut self.guess {
            guess.may_retransmit = guess.may_retransmit.saturating_sub(data.end - data.start);
        }
    }

    /// Widens the reordering window (RFC 8985, Section 6.2, Step 4): a quarter of the RTT for each retransmission that
    /// proves needless, up to the RTT.
    fn on_reordering(&mut self) {
        self.reordering_quarters = (self.reordering_quarters + 1).min(4);
        self.reordering_persist = 16;
    }

    /// Takes the news that everything below `una` has arrived. True if that closes the hole. The same step of RFC 8985
    /// takes the window back after 16 recoveries without a needless retransmission. Here it is taken back to zero:
    /// radio links reorder at hand-overs, not before or after.
    pub(super) fn on_advance(&mut self, una: u64) -> bool {
        self.guess.take_if(|guess| guess.end <= una);
        if self.hole.take_if(|hole| una > hole.position).is_none() {
            return false;
        }
        self.surplus = 0;
        self.reordering_persist = self.reordering_persist.saturating_sub(1);
        if self.reordering_persist == 0 {
            self.reordering_quarters = 0;
        }
        true
    }

    /// Opens a hole at the front. The missing data had left at `sent_at`, and all below `sent` has left.
    pub(super) fn open_hole(&mut self, una: u64, sent: u64, sent_at: Instant) {
        self.hole = Some(Hole { position: una, sent_at });
        if una >= self.recover {
            self.recover = sent;
        }
    }

    /// Without SACK: true if an ACK up to `una` is partial (RFC 6582) and answers the repair. Then the first copies of
    /// data before `recover` have arrived or are lost. An ACK sooner than `soon` is not for the repair (RFC 8985,
    /// Section 6.2, Step 2), but for a late first copy. So at most one repair in a round trip is needless.
    pub(super) fn is_partial(&self, now: Instant, una: u64, soon: Duration) -> bool {
        una < self.recover && now.saturating_since(self.repaired_at) >= soon
    }

    /// Counts a duplicate ACK that came although only the head's repair and later departures are in flight. True if by
    /// this count the repair is lost, too. The count may be off by what the client acknowledged twice.
    pub(super) fn on_surplus(&mut self) -> bool {
        self.surplus += 1;
        self.surplus >= SURPLUS_MIN
    }

    /// Takes a range that should have been reported. Returns what is to be judged at once.
    pub(super) fn suspect(
        &mut self,
        now: Instant,
        rtt: Duration,
        gone: Transmission,
    ) -> Option<Transmission> {
        if self.reordering_quarters == 0 {
            return Some(gone);
        }
        let tolerance = rtt.mul_ratio(self.reordering_quarters, 4);
        self.suspects.push_back(Suspect { gone, deadline: now + tolerance });
        if self.suspects.len() > SUSPECTS_MAX {
            self.suspects.pop_front().map(|oldest| oldest.gone)
        } else {
            None
        }
    }

    /// The next suspect whose time is up.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Transmission> {
        self.suspects.front().filter(|suspect| suspect.deadline <= now)?;
        self.suspects.pop_front().map(|suspect| suspect.gone)
    }

    /// Notes that the link has lost `bytes` of what left at `sent_at`.
    pub(super) fn note_found(&mut self, bytes: u64, sent_at: Instant) {
        self.found.bytes += bytes;
        self.found.sent_at = self.found.sent_at.into_iter().chain([sent_at]).min();
    }

    /// Detects reordering: the client has bytes that were sent again less than an RTT (`soon`) ago, so the first copy
    /// came late. RFC 8985 learns this from D-SACKs, one round trip later. A D-SACK does not tell why a copy was sent.
    /// A copy for Eq. (12) or a probe may be needless without reordering.
    pub(super) fn check_needless(
        &mut self,
        now: Instant,
        newly: &Range<u64>,
        soon: Duration,
        sack: bool,
        board: &Scoreboard,
        flight: &Flight,
    ) {
        if !board.has_retransmissions() || self.is_asking() {
            return;
        }
        let Some(retransmission) = board.retransmission_at(newly.start) else { return };
        // The client has kept an older copy that Eq. (12) had given up.
        let expected = retransmission.is_behind_older(flight);
        // An answer that is always sooner tells of a shorter path. With SACK the RTT of other data tells that.
        let sent_at = retransmission.sent_at;
        let early = now.saturating_since(sent_at) < soon;
        if !expected && early && (sack || !self.early_answers.is_answer(now, sent_at, soon)) {
            self.on_reordering();
        }
    }

    /// Starts a probe: the head, up to `end`, is sent again. What became of the rest is left open.
    pub(super) fn ask(&mut self, end: u64) {
        self.probe = Some(Probe { end, decide_at: None });
    }

    /// Without SACK: notes `bytes` that have arrived behind the hole, as a duplicate ACK tells.
    pub(super) fn on_told(&mut self, bytes: u64) {
        self.told = self.told.saturating_add(bytes);
    }

    /// Returns how many of `acked` bytes no duplicate ACK has reported: at least a `segment`, which closed the hole.
    pub(super) fn untold(&mut self, acked: u64, segment: u64) -> u64 {
        let told = self.told.min(acked.saturating_sub(segment));
        self.told -= told;
        acked - told
    }

    /// Resets the bytes that duplicate ACKs reported if no hole is known: the cumulative ACK covers them.
    pub(super) fn forget_told(&mut self) {
        if self.hole.is_none() && self.suspects.is_empty() {
            self.told = 0;
        }
    }

    /// Where the cumulative ACK will stand if a probe's head arrives and nothing else.
    pub(super) fn expected_answer(&self, board: &Scoreboard) -> Option<u64> {
        let end = self.probe?.end;
        Some(board.sacked_until(end).unwrap_or(end))
    }

    /// Handles a report of the client after a probe. If only the head has arrived, and no `more`, the rest has until
    /// `decide_at`. Packets that were only delayed follow each other closely.
    pub(super) fn on_answer(&mut self, more: bool, decide_at: Instant) {
        if more {
            self.probe = None;
        } else if let Some(probe) = &mut self.probe {
            probe.decide_at.get_or_insert(decide_at);
        }
    }

    /// Handles a report after a probe without SACK: it may be about earlier arrivals. All below `sent` has left.
    pub(super) fn on_answer_without_sack(&mut self, sent: u64) {
        if self.probe.take().is_some() {
            self.recover = sent;
        }
    }

    /// Gives up everything in flight, `una..sent`: only the head has arrived by now.
    pub(super) fn guess(&mut self, now: Instant, una: u64, sent: u64, segment: u64, flight: &mut Flight) {
        self.suspects.clear();
        self.probe = None;
        // An earlier guess that is still open goes on in this one, with what it gave up.
        let (at, may_retransmit) = match self.guess.take() {
            Some(earlier) => {
                flight.put_back(earlier.flight, una);
                (earlier.at, earlier.may_retransmit)
            }
            None => (now, RETRANSMIT_FIRST * segment),
        };
        self.guess = Some(Box::new(Guess { at, flight: flight.take(), end: sent, may_retransmit }));
    }

    /// True if the time to answer a probe is over: only its head has arrived.
    pub(super) fn answer_is_due(&self, now: Instant) -> bool {
        self.probe.and_then(|probe| probe.decide_at).is_some_and(|at| at <= now)
    }

    /// Reviews the guess when the client reports `arrived`. A first copy proves it wrong; a copy that left after the
    /// guess does not. What left less than `soon` ago has hardly been answered yet.
    pub(super) fn review_guess(
        &mut self,
        now: Instant,
        arrived: &Range<u64>,
        soon: Duration,
        board: &mut Scoreboard,
        flight: &mut Flight,
    ) {
        let Some(guess) = self.guess.as_mut().filter(|guess| arrived.start < guess.end) else { return };
        let retransmission = board.retransmission_at(arrived.start).filter(|copy| copy.sent_at >= guess.at);
        let early_answers = &mut self.early_answers;
        if retransmission.is_some_and(|copy| early_answers.is_answer(now, copy.sent_at, soon)) {
            // Slow start (RFC 5681, Section 3.1).
            guess.may_retransmit += 2 * (arrived.end - arrived.start);
        } else if let Some(guess) = self.guess.take() {
            flight.put_back(guess.flight, board.una());
            // What has no copy in flight stays lost: it was lost before the guess, or came from the server since and
            // never left.
            for copy in flight.copies() {
                board.remove_lost(copy.start..copy.end.min(guess.end));
            }
            board.put_behind(flight, guess.at);
        }
    }

    /// Forgets all losses: from here on the server repairs what lies above `una`.
    pub(super) fn forget(&mut self, una: u64, flight: &mut Flight) {
        if let Some(guess) = self.guess.take() {
            flight.put_back(guess.flight, una);
        }
        *self = Recovery::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_duplicate_acks_told_of_is_counted_once() {
        let mut recovery = Recovery::default();
        recovery.open_hole(0, 50_000, Instant::ZERO);
        (0..5).for_each(|_| recovery.on_told(1_000));
        assert_eq!(
            recovery.untold(3_000, 1_000),
            1_000,
            "a partial ACK: the repair, and two that were told of"
        );
        assert_eq!(recovery.untold(10_000, 1_000), 7_000, "three were told of");
        assert_eq!(recovery.untold(10_000, 1_000), 10_000);
    }

    #[test]
    fn what_is_left_over_is_forgotten_with_the_hole() {
        let mut recovery = Recovery::default();
        recovery.open_hole(0, 50_000, Instant::ZERO);
        recovery.on_told(5_000);
        recovery.forget_told();
        assert_eq!(recovery.untold(3_000, 1_000), 1_000, "the hole is open");
        recovery.on_advance(3_000);
        recovery.forget_told();
        assert_eq!(recovery.untold(3_000, 1_000), 3_000);
    }
}
