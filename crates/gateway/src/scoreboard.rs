//! What the client has and what it lacks, by range of the stream: RFC 6675's scoreboard, seen from the gateway.
//!
//! Positions below `una` are acknowledged. The sets hold exceptions only, so without loss they stay empty and an ACK
//! costs O(1). They are trees, not tcp's `RangeSet`, because ranges are also taken out of the middle.

use core::ops::Range;

use alloc::vec::Vec;
use paceline_wire::Instant;
use rangemap::{RangeMap, RangeSet};

use crate::flight::{Flight, Transmission};

/// The latest local retransmission of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Retransmission {
    /// Order of departure ([`Flight`]).
    pub(crate) order: u64,
    /// Departure.
    pub(crate) sent_at: Instant,
    /// Order of an older copy that was then still in flight; zero if there was none. Eq. (12) sends again what has not
    /// arrived yet.
    pub(crate) older: u64,
}

impl Retransmission {
    /// True if the older copy is still in flight. The link keeps order and brings it first.
    pub(crate) fn is_behind_older(self, flight: &Flight) -> bool {
        self.older > flight.left_order()
    }
}

/// Our choice: no link's loss makes this many holes at once. A twentieth of 64 MB, the largest window that is believed,
/// is 2,300 segments. A client that reports every other byte would make each of them a range, and each hole a packet.
/// That is far beyond the memory that data may take.
const SACKED_MAX: usize = 4_096;
/// Our choice: 64 MB in pieces of 1 KiB. Retransmissions stay here when their data is reported, so they are bounded.
const RETRANSMITTED_MAX: usize = 1 << 16;

/// Memory of a range in one of the sets: two positions, its value, and its part of a tree node that may be half empty.
pub(crate) const RANGE_BYTES: usize = 96;

/// The scoreboard of one flow.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Scoreboard {
    /// First position that the client has not acknowledged.
    una: u64,
    /// First position that has not left for the client yet.
    sent: u64,
    sacked: RangeSet<u64>,
    sacked_bytes: u64,
    lost: RangeSet<u64>,
    lost_bytes: u64,
    #[serde(rename = "repeated")]
    retransmitted: RangeMap<u64, Retransmission>,
    /// The server's own repairs that the client has not reported, lost by the radio link or not. Without a gateway,
    /// too, the server would hear of the gap until then.
    #[serde(default)]
    server_repairs: RangeSet<u64>,
}

impl Scoreboard {
    /// A flow whose stream starts at `position`.
    pub(crate) fn new(position: u64) -> Self {
        Scoreboard { una: position, sent: position, ..Scoreboard::default() }
    }

    /// First unacknowledged position.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// First position that has not left yet.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes that left, are not acknowledged in any way and not known to be lost: the sum of Eq. (8).
    pub(crate) fn outstanding(&self) -> u64 {
        (self.sent - self.una).saturating_sub(self.sacked_bytes + self.lost_bytes)
    }

    /// Bytes known to be lost and not sent again yet.
    pub(crate) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// The lowest lost range.
    pub(crate) fn first_lost(&self) -> Option<Range<u64>> {
        self.lost.first().cloned()
    }

    /// Notes that everything below `end` has left at least once, or will never leave from here.
    pub(crate) fn on_sent(&mut self, end: u64) {
        self.sent = self.sent.max(end);
    }

    /// Notes that `range` has left again.
    pub(crate) fn on_retransmitted(&mut self, range: Range<u64>, retransmission: Retransmission) {
        self.remove_lost(range.clone());
        self.retransmitted.insert(range, retransmission);
    }

    /// The latest retransmission that carried `position`.
    pub(crate) fn retransmission_at(&self, position: u64) -> Option<Retransmission> {
        self.retransmitted.get(&position).copied()
    }

    /// Length of the newest copy of the byte at `position`.
    pub(crate) fn retransmission_len(&self, position: u64) -> Option<u64> {
        self.retransmitted.get_key_value(&position).map(|(range, _)| range.end - range.start)
    }

    /// True once any byte has been retransmitted and is not acknowledged yet.
    pub(crate) fn has_retransmissions(&self) -> bool {
        !self.retransmitted.is_empty()
    }

    /// The client acknowledges everything below `ack`; returns the bytes that it had not reported before.
    pub(crate) fn acknowledge(&mut self, ack: u64) -> u64 {
        if ack <= self.una {
            return 0;
        }
        let below = self.una..ack;
        let mut news = ack - self.una;
        if self.sacked_bytes > 0 {
            let known = overlap(&self.sacked, &below);
            news -= known;
            self.sacked_bytes -= known;
            self.sacked.remove(below.clone());
        }
        if self.lost_bytes > 0 {
            self.remove_lost(below.clone());
        }
        if !self.retransmitted.is_empty() {
            self.retransmitted.remove(below.clone());
        }
        if !self.server_repairs.is_empty() {
            self.server_repairs.remove(below);
        }
        self.una = ack;
        self.sent = self.sent.max(ack);
        news
    }

    /// Bytes of memory that its ranges take.
    pub(crate) fn memory(&self) -> u64 {
        let ranges =
            self.sacked.len() + self.lost.len() + self.retransmitted.len() + self.server_repairs.len();
        (ranges * RANGE_BYTES) as u64
    }

    /// The client reports that it holds `block`; `newly` gets each part not reported before. A new range beyond the
    /// limit, or without room, is ignored as if the option had no room for it (RFC 2018, Section 3).
    pub(crate) fn sack(&mut self, block: Range<u64>, newly: &mut Vec<Range<u64>>, has_room: bool) {
        newly.clear();
        let block = block.start.max(self.una)..block.end.min(self.sent);
        if block.is_empty() {
            return;
        }
        if (self.is_splintered() || !has_room) && !self.joins_reported(&block) {
            return;
        }
        newly.extend(self.sacked.gaps(&block));
        for part in newly.iter() {
            self.sacked_bytes += part.end - part.start;
        }
        if newly.is_empty() {
            return;
        }
        self.sacked.insert(block.clone());
        if !self.server_repairs.is_empty() {
            self.server_repairs.remove(block.clone());
        }
        if self.lost_bytes > 0 {
            self.remove_lost(block);
        }
    }

    /// True if the client dropped reported data (RFC 2018, Section 8): the cumulative ACK stopped inside a block.
    pub(crate) fn has_reneged(&self) -> bool {
        self.sacked_bytes > 0 && self.sacked.contains(&self.una)
    }

    /// Where the reported range that holds `position` ends.
    pub(crate) fn sacked_until(&self, position: u64) -> Option<u64> {
        self.sacked.get(&position).map(|range| range.end)
    }

    /// Forgets all reports; what was reported counts as lost.
    pub(crate) fn forget_sacks(&mut self) {
        let sacked = core::mem::take(&mut self.sacked);
        self.sacked_bytes = 0;
        for range in sacked.iter() {
            self.mark_lost(range.clone());
        }
    }

    /// Marks what is sent and unreported in `range` as lost; returns the bytes newly marked.
    pub(crate) fn mark_lost(&mut self, range: Range<u64>) -> u64 {
        let range = range.start.max(self.una)..range.end.min(self.sent);
        if range.is_empty() {
            return 0;
        }
        let before = self.lost_bytes;
        if self.sacked_bytes == 0 {
            self.insert_lost(range);
        } else {
            let missing: Vec<_> = self.sacked.gaps(&range).collect();
            for part in missing {
                self.insert_lost(part);
            }
        }
        self.lost_bytes - before
    }

    /// Marks `range`, data that filled a gap of the server's stream, as to be sent. No copy of it has left before.
    /// `repaired`: the server sent it again, and it was not merely overtaken.
    pub(crate) fn mark_unsent(&mut self, range: Range<u64>, repaired: bool) {
        self.mark_lost(range.clone());
        if repaired && !range.is_empty() && self.server_repairs.len() < SACKED_MAX {
            self.server_repairs.insert(range);
        }
    }

    /// True if a repair of the server's is in flight to the client, or lost.
    pub(crate) fn has_server_repairs(&self) -> bool {
        !self.server_repairs.is_empty()
    }

    /// True if no copy of the byte at `position`, which the server sent again, has left before.
    pub(crate) fn is_unsent_repair(&self, position: u64) -> bool {
        self.server_repairs.contains(&position) && !self.retransmitted.contains_key(&position)
    }

    /// True if the client lacks nothing of which it has later data.
    pub(crate) fn is_whole(&self) -> bool {
        self.sacked_bytes == 0 && self.lost_bytes == 0
    }

    /// Takes `range` out of the lost data, for example because its bytes are not kept.
    pub(crate) fn remove_lost(&mut self, range: Range<u64>) {
        if self.lost_bytes == 0 || range.is_empty() {
            return;
        }
        self.lost_bytes -= overlap(&self.lost, &range);
        self.lost.remove(range);
    }

    /// Puts into `parts` what the client should have reported of a transmission that has left the link, but has not.
    /// Parts that were sent again since do not count. The parts are lost, or reordered.
    pub(crate) fn missing(&self, gone: &Transmission, parts: &mut Vec<Range<u64>>) {
        parts.clear();
        let range = gone.start.max(self.una)..gone.end.min(self.sent);
        if range.is_empty() || self.sacked.gaps(&range).next().is_none() {
            return;
        }
        let mut covered = RangeSet::new();
        for known in self.sacked.overlapping(&range).chain(self.lost.overlapping(&range)) {
            covered.insert(known.clone());
        }
        for (known, retransmission) in self.retransmitted.overlapping(&range) {
            if retransmission.order > gone.order {
                covered.insert(known.clone());
            }
        }
        parts.extend(covered.gaps(&range));
    }

    /// Puts retransmissions that left after `since` behind first copies that are in `flight`.
    pub(crate) fn put_behind(&mut self, flight: &Flight, since: Instant) {
        let behind = |(range, mut retransmission): (Range<u64>, Retransmission)| {
            if let Some(first) = flight.first_at(range.end - 1).filter(|_| retransmission.sent_at >= since) {
                retransmission.older = first.order;
            }
            (range, retransmission)
        };
        self.retransmitted = core::mem::take(&mut self.retransmitted).into_iter().map(behind).collect();
    }

    /// True if the latest transmission of the byte at `position` is still in flight.
    pub(crate) fn in_flight(&self, position: u64, flight: &Flight) -> bool {
        match self.retransmission_at(position) {
            Some(retransmission) => retransmission.order > flight.left_order(),
            None => flight.first_at(position).is_some(),
        }
    }

    /// Order of the latest transmission of the byte at `position` that is still in flight; zero if there is none.
    pub(crate) fn copy_in_flight(&self, position: u64, flight: &Flight) -> u64 {
        let first = flight.first_at(position).map(|first| first.order);
        let retransmission = self.retransmission_at(position).map(|retransmission| retransmission.order);
        first.max(retransmission.filter(|&order| order > flight.left_order())).unwrap_or(0)
    }

    /// Starts anew at `position`.
    pub(crate) fn reset(&mut self, position: u64) {
        *self = Scoreboard::new(position);
    }

    fn is_splintered(&self) -> bool {
        self.sacked.len() >= SACKED_MAX || self.retransmitted.len() >= RETRANSMITTED_MAX
    }

    /// True if `block` overlaps or touches what was reported before, so that it makes no new range.
    fn joins_reported(&self, block: &Range<u64>) -> bool {
        let around = block.start.saturating_sub(1)..block.end.saturating_add(1);
        self.sacked.overlaps(&around)
    }

    fn insert_lost(&mut self, range: Range<u64>) {
        self.lost_bytes += range.end - range.start - overlap(&self.lost, &range);
        self.lost.insert(range);
    }
}

/// Bytes of `range` that are in `set`.
fn overlap(set: &RangeSet<u64>, range: &Range<u64>) -> u64 {
    set.overlapping(range).map(|r| r.end.min(range.end) - r.start.max(range.start)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(to: u64) -> Scoreboard {
        let mut board = Scoreboard::new(100);
        board.on_sent(to);
        board
    }

    #[test]
    fn a_report_counts_once() {
        let mut board = sent(200);
        let mut newly = Vec::new();
        board.sack(120..140, &mut newly, true);
        assert_eq!(newly.first(), Some(&(120..140)));
        assert_eq!(newly.len(), 1);
        board.sack(110..150, &mut newly, true);
        assert_eq!(newly, [110..120, 140..150]);
        board.sack(110..150, &mut newly, true);
        assert!(newly.is_empty());
        assert_eq!(board.outstanding(), 60);
        board.acknowledge(160);
        assert_eq!((board.outstanding(), board.sacked_bytes), (40, 0));
    }

    #[test]
    fn what_was_reported_or_sent_again_is_not_missing() {
        let mut board = sent(200);
        let mut parts = Vec::new();
        board.sack(120..130, &mut parts, true);
        board.on_retransmitted(150..160, Retransmission { order: 9, sent_at: Instant::ZERO, older: 0 });
        let gone = |order| Transmission { start: 90, end: 200, sent_at: Instant::ZERO, order, first: true };
        board.missing(&gone(5), &mut parts);
        assert_eq!(parts, [100..120, 130..150, 160..200]);
        board.missing(&gone(9), &mut parts);
        assert_eq!(parts, [100..120, 130..200]);
    }

    #[test]
    fn lost_bytes_leave_the_outstanding_and_come_back_when_sent_again() {
        let mut board = sent(200);
        assert_eq!(board.mark_lost(110..120), 10);
        assert_eq!(board.mark_lost(110..125), 5);
        assert_eq!(board.outstanding(), 85);
        board.on_retransmitted(110..125, Retransmission { order: 1, sent_at: Instant::ZERO, older: 0 });
        assert_eq!((board.outstanding(), board.first_lost()), (100, None));
    }

    #[test]
    fn a_client_that_drops_reported_data_is_noticed() {
        let mut board = sent(200);
        let mut newly = Vec::new();
        board.sack(120..150, &mut newly, true);
        board.acknowledge(130);
        assert!(board.has_reneged());
        board.forget_sacks();
        assert_eq!(board.first_lost(), Some(130..150));
    }

    #[test]
    fn what_left_again_by_a_wrong_guess_is_behind_the_first_copies() {
        let (mut board, mut flight) = (sent(200), Flight::default());
        let at = |ms| Instant::ZERO + paceline_wire::Duration::from_millis(ms);
        let first = flight.push(100, 200, at(1), true);
        let older = flight.take();
        assert_eq!(flight.bytes(), 0);
        let order = flight.push(100, 110, at(5), false);
        board.on_retransmitted(100..110, Retransmission { order, sent_at: at(5), older: 0 });
        flight.put_back(older, 100);
        board.put_behind(&flight, at(4));
        assert_eq!(flight.bytes(), 110);
        assert_eq!(board.retransmission_at(100).map(|retransmission| retransmission.older), Some(first));
        assert!(
            board
                .retransmission_at(105)
                .is_some_and(|retransmission| retransmission.is_behind_older(&flight))
        );
    }

    #[test]
    fn reports_in_splinters_have_an_end() {
        let mut board = sent(1_000_000);
        let mut newly = Vec::new();
        for position in (101..100_101).step_by(2) {
            board.sack(position..position + 1, &mut newly, true);
        }
        assert_eq!((board.sacked.len(), board.sacked_bytes), (4_096, 4_096));
        assert!(newly.is_empty(), "the last was not believed");
        // A report that makes a range longer, or two into one, is believed.
        board.sack(102..103, &mut newly, true);
        assert_eq!(newly.first(), Some(&(102..103)));
        board.sack(104..105, &mut newly, true);
        assert_eq!((board.sacked.len(), board.sacked_bytes), (4_094, 4_098));
        board.sack(500_000..500_010, &mut newly, true);
        assert_eq!(newly.first(), Some(&(500_000..500_010)));
        board.acknowledge(200_000);
        assert_eq!((board.sacked.len(), board.sacked_bytes), (1, 10));
    }

    #[test]
    fn retransmissions_in_splinters_have_an_end() {
        let mut board = sent(10_000_000);
        let mut newly = Vec::new();
        for n in 0..70_000 {
            // A hole of a byte leaves again, beside a report that joins the one before.
            let at = 101 + 2 * n;
            let before = board.retransmitted.len();
            board.sack(at..at + 1, &mut newly, true);
            if newly.is_empty() {
                continue;
            }
            board.on_retransmitted(
                at - 1..at,
                Retransmission { order: n + 1, sent_at: Instant::ZERO, older: 0 },
            );
            board.sack(at - 1..at, &mut newly, true);
            assert!(board.retransmitted.len() <= before + 1);
        }
        assert!(board.retransmitted.len() <= 1 << 16, "{}", board.retransmitted.len());
    }
}
