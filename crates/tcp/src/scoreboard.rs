//! The sent and unacknowledged data, segment by segment.
//!
//! Segments lie in a queue in stream order and have running numbers. A cumulative ACK pops them, and a SACK block finds
//! them by division. So nothing is searched or allocated per packet. For time-based loss detections a list links them
//! in order of sending (Linux tsorted_sent_queue).

mod sent_order;
mod sound;

use alloc::collections::VecDeque;

use paceline_wire::Instant;

use crate::ranges::RangeSet;

bitflags::bitflags! {
    /// State of a segment (Linux TCPCB_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
    pub struct Mark: u8 {
        /// The receiver has it.
        const SACKED = 1;
        /// It is marked lost.
        const LOST = 2;
        /// It was retransmitted since it was last marked lost.
        const RETRANSMITTED = 4;
        /// It was ever retransmitted.
        const EVER_RETRANSMITTED = 8;
        /// It ends with a FIN.
        const FIN = 16;
        /// It was sent when no more data was waiting.
        const APP_LIMITED = 32;
        /// It is in the list in order of sending.
        const LISTED = 64;
    }
}

/// One segment that was sent. Positions are of the 64-bit stream.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Segment {
    /// Its first position.
    pub start: u64,
    /// The position after its last.
    pub end: u64,
    /// When it was last sent.
    pub sent_at: Instant,
    /// Packets that the connection had delivered when it was last sent.
    pub delivered: u64,
    /// Time of that delivery. `Instant::ZERO` once this segment has been counted.
    pub delivered_at: Instant,
    /// Departure time of the first packet of that flight.
    pub first_sent_at: Instant,
    /// SND.NXT when it was last sent.
    pub nxt_at_send: u64,
    /// Its neighbours in the list in order of sending. Its own number means none, because any other number may belong
    /// to a segment.
    prev: u32,
    next: u32,
    /// Its state.
    pub mark: Mark,
}

impl Segment {
    /// True if it is marked lost and waits for retransmission.
    pub fn is_lost_and_waiting(&self) -> bool {
        self.mark.contains(Mark::LOST) && !self.mark.intersects(Mark::RETRANSMITTED | Mark::SACKED)
    }
}

/// Times and counts that a segment stores when it is sent (Linux tcp_rate_skb_sent).
#[derive(Clone, Copy, Debug)]
pub struct SendStamp {
    /// The departure time.
    pub now: Instant,
    /// Packets delivered so far.
    pub delivered: u64,
    /// Time of the last delivery.
    pub delivered_at: Instant,
    /// Departure time of the first packet of the current flight.
    pub first_sent_at: Instant,
    /// True if no more data is waiting.
    pub app_limited: bool,
}

/// The segments between SND.UNA and SND.NXT.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Scoreboard {
    segments: VecDeque<Segment>,
    /// The running number of the first segment. Numbers wrap.
    base: u32,
    una: u64,
    nxt: u64,
    mss: u64,
    sacked: RangeSet,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    /// Segments marked lost and not yet retransmitted.
    waiting: u32,
    /// No segment before this one waits for retransmission.
    retransmit_hint: u32,
    /// Oldest and newest of the list in order of sending.
    oldest: Option<u32>,
    newest: Option<u32>,
    /// Number of loss marks since the start.
    lost_total: u64,
}

/// Our choice: the most ranges for each segment in flight, because a peer can report each byte separately. A receiver
/// reports segments as they arrive (RFC 2018, Section 4), which makes at most one range for two segments. If the path
/// cuts each segment into eight and loses half of these at random, there are two ranges for each segment.
const RANGES_PER_SEGMENT: usize = 2;

impl Scoreboard {
    /// An empty board for a stream at `position`; `mss` is the usual length of a segment.
    pub fn new(position: u64, mss: u32) -> Self {
        Scoreboard { una: position, nxt: position, mss: u64::from(mss.max(1)), ..Scoreboard::default() }
    }

    /// Sets the usual length of a segment.
    pub fn set_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss.max(1));
    }

    /// SND.UNA.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// SND.NXT.
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Segments sent and not cumulatively acknowledged.
    pub fn packets_out(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Of those, the number that the receiver has.
    pub fn sacked_out(&self) -> u32 {
        self.sacked_out
    }

    /// Of those, the number marked lost.
    pub fn lost_out(&self) -> u32 {
        self.lost_out
    }

    /// Of those, the number retransmitted.
    pub fn retrans_out(&self) -> u32 {
        self.retrans_out
    }

    /// Number of loss marks since the start. A segment marked twice counts twice.
    pub fn lost_total(&self) -> u64 {
        self.lost_total
    }

    /// Pipe (RFC 6675, Section 4), in packets: Linux tcp_packets_in_flight.
    pub fn in_flight(&self) -> u32 {
        (self.packets_out() + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// True if no segment is unacknowledged.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// One past the highest position that the receiver reported beyond SND.UNA, else SND.UNA.
    pub fn highest_sack(&self) -> u64 {
        self.sacked.last().map_or(self.una, |(_, end)| end)
    }

    /// Ranges that the receiver reported by SACK.
    pub fn sacked_ranges(&self) -> &RangeSet {
        &self.sacked
    }

    /// The segment with this number.
    pub fn get(&self, number: u32) -> Option<&Segment> {
        self.segments.get(number.wrapping_sub(self.base) as usize)
    }

    /// The number of the first segment, and the number after the last.
    pub fn numbers(&self) -> (u32, u32) {
        (self.base, self.base.wrapping_add(self.packets_out()))
    }

    /// The number of the segment that contains `position`, or the number after the last segment.
    pub fn number_at(&self, position: u64) -> u32 {
        self.base.wrapping_add(self.index_at(position) as u32)
    }

    /// All segments in stream order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> + '_ {
        self.segments.iter()
    }

    /// Adds a segment at SND.NXT.
    pub fn push(&mut self, end: u64, fin: bool, stamp: SendStamp) {
        let number = self.base.wrapping_add(self.packets_out());
        let mut mark = if fin { Mark::FIN | Mark::LISTED } else { Mark::LISTED };
        mark.set(Mark::APP_LIMITED, stamp.app_limited);
        let prev = self.newest.replace(number);
        match prev.and_then(|prev| self.get_mut(prev)) {
            Some(segment) => segment.next = number,
            None => self.oldest = Some(number),
        }
        self.segments.push_back(Segment {
            start: self.nxt,
            end,
            sent_at: stamp.now,
            delivered: stamp.delivered,
            delivered_at: stamp.delivered_at,
            first_sent_at: stamp.first_sent_at,
            nxt_at_send: end,
            prev: prev.unwrap_or(number),
            next: number,
            mark,
        });
        self.nxt = end;
    }

    /// Notes that a segment was retransmitted.
    pub fn on_retransmitted(&mut self, number: u32, stamp: SendStamp) {
        self.unlink(number);
        let nxt = self.nxt;
        let Some(segment) = self.get_mut(number) else { return };
        segment.sent_at = stamp.now;
        segment.delivered = stamp.delivered;
        segment.delivered_at = stamp.delivered_at;
        segment.first_sent_at = stamp.first_sent_at;
        segment.nxt_at_send = nxt;
        segment.mark.set(Mark::APP_LIMITED, stamp.app_limited);
        let (again, waited) = (segment.mark.contains(Mark::RETRANSMITTED), segment.is_lost_and_waiting());
        segment.mark |= Mark::RETRANSMITTED | Mark::EVER_RETRANSMITTED;
        self.retrans_out += u32::from(!again);
        self.waiting -= u32::from(waited);
        self.link(number);
    }

    /// Removes the segments below `una`. `acked` sees each whole segment. Returns their number.
    pub fn acknowledge(&mut self, una: u64, mut acked: impl FnMut(&Segment)) -> u32 {
        let mut count = 0;
        while let Some(front) = self.segments.front_mut() {
            if front.end > una {
                // Part of a segment: the rest keeps its marks (tcp_clean_rtx_queue trims it likewise).
                front.start = front.start.max(una);
                break;
            }
            // Read in place: a copy would have to wait for the preceding write.
            acked(front);
            count += 1;
            if front.mark.intersects(Mark::SACKED | Mark::LOST | Mark::RETRANSMITTED) {
                self.waiting -= u32::from(front.is_lost_and_waiting());
                self.sacked_out -= u32::from(front.mark.contains(Mark::SACKED));
                self.lost_out -= u32::from(front.mark.contains(Mark::LOST));
                self.retrans_out -= u32::from(front.mark.contains(Mark::RETRANSMITTED));
            }
            self.unlink(self.base);
            self.segments.pop_front();
            self.base = self.base.wrapping_add(1);
        }
        self.una = self.una.max(una);
        self.sacked.remove_below(self.una);
        if (self.retransmit_hint.wrapping_sub(self.base) as i32) < 0 {
            self.retransmit_hint = self.base;
        }
        count
    }

    /// Notes a SACK block. `newly` sees each whole segment that it reports first. Returns their number.
    pub fn sack(&mut self, start: u64, end: u64, mut newly: impl FnMut(&Segment)) -> u32 {
        let (start, end) = (start.max(self.una), end.min(self.nxt));
        if start >= end || !self.has_room_for(start, end) {
            return 0;
        }
        let mut gaps = core::mem::take(&mut self.sacked);
        let mut count = 0;
        // A segment counts once it is covered completely. So the search begins at the segment in which the new range
        // begins.
        let mut fresh = (u64::MAX, 0);
        let merged = gaps.insert(start, end, |gap_start, gap_end| {
            fresh = (fresh.0.min(gap_start), fresh.1.max(gap_end));
        });
        self.sacked = gaps;
        if fresh.0 >= fresh.1 {
            return 0;
        }
        let mut index = self.index_at(fresh.0);
        while let Some(segment) = self.segments.get(index) {
            if segment.start >= fresh.1 {
                break;
            }
            let whole = segment.start >= merged.0 && segment.end <= merged.1;
            if whole && !segment.mark.contains(Mark::SACKED) {
                newly(segment);
                self.mark_sacked(index);
                count += 1;
            }
            index += 1;
        }
        count
    }

    /// Marks a segment lost, even if it was retransmitted. False if it is marked already or has arrived.
    pub fn mark_lost(&mut self, number: u32) -> bool {
        let Some(segment) = self.get_mut(number) else { return false };
        let mark = segment.mark;
        if mark.contains(Mark::SACKED) || segment.is_lost_and_waiting() {
            return false;
        }
        segment.mark = (mark - Mark::RETRANSMITTED) | Mark::LOST;
        self.retrans_out -= u32::from(mark.contains(Mark::RETRANSMITTED));
        self.lost_out += u32::from(!mark.contains(Mark::LOST));
        self.lost_total += 1;
        self.waiting += 1;
        self.unlink(number);
        if (number.wrapping_sub(self.retransmit_hint) as i32) < 0 {
            self.retransmit_hint = number;
        }
        true
    }

    /// Removes all loss marks (tcp_undo_cwnd_reduction). Segments that were not retransmitted return to the list.
    pub fn unmark_lost(&mut self) {
        for index in 0..self.segments.len() {
            let number = self.base.wrapping_add(index as u32);
            let segment = &mut self.segments[index];
            segment.mark -= Mark::LOST;
            if !segment.mark.intersects(Mark::LISTED | Mark::SACKED) {
                self.link_in_order(number);
            }
        }
        self.lost_out = 0;
        self.waiting = 0;
    }

    /// Forgets all SACK reports after the receiver has discarded the data (RFC 2018, Section 8).
    pub fn forget_sacks(&mut self) {
        for segment in &mut self.segments {
            segment.mark -= Mark::SACKED;
        }
        self.sacked.clear();
        self.sacked_out = 0;
    }

    /// The lowest segment that is marked lost and not retransmitted.
    pub fn next_lost(&mut self) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        loop {
            let segment = self.get(self.retransmit_hint)?;
            if segment.is_lost_and_waiting() {
                return Some(self.retransmit_hint);
            }
            // Skips a whole range that the receiver has.
            let next = match segment.mark.contains(Mark::SACKED) {
                true => self.sacked.covering(segment.start).map(|(_, end)| self.number_at(end)),
                false => None,
            };
            let following = self.retransmit_hint.wrapping_add(1);
            self.retransmit_hint = match next {
                Some(next) if (next.wrapping_sub(following) as i32) > 0 => next,
                _ => following,
            };
        }
    }

    /// True if a segment below the highest SACK is missing and not retransmitted.
    pub fn has_open_holes(&self) -> bool {
        if self.sacked.is_empty() {
            return self.waiting > 0;
        }
        let below = self.index_at(self.highest_sack() - 1) as u32 + 1;
        below.saturating_sub(self.sacked_out) > self.retrans_out
    }

    /// The number of the first segment, if there is one.
    pub fn first(&self) -> Option<u32> {
        self.segments.front().map(|_| self.base)
    }

    /// The first segment.
    pub fn head(&self) -> Option<&Segment> {
        self.segments.front()
    }

    /// True if the first segment was ever retransmitted, or any retransmission is in flight (tcp_any_retrans_done).
    pub fn any_retransmitted(&self) -> bool {
        self.retrans_out > 0 || self.head().is_some_and(|head| head.mark.contains(Mark::EVER_RETRANSMITTED))
    }

    /// Marks every segment lost for which `lost` is true.
    pub fn mark_lost_where(&mut self, lost: impl Fn(u32, &Segment) -> bool) {
        let (mut number, end) = self.numbers();
        while number != end {
            if self.get(number).is_some_and(|segment| lost(number, segment)) {
                self.mark_lost(number);
            }
            number = number.wrapping_add(1);
        }
    }

    /// Counts sacked, lost and retransmitted segments anew. For checks.
    pub fn recount(&self) -> (u32, u32, u32) {
        let count = |mark| self.segments.iter().filter(|s| s.mark.contains(mark)).count() as u32;
        (count(Mark::SACKED), count(Mark::LOST), count(Mark::RETRANSMITTED))
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Segment> {
        self.segments.get_mut(number.wrapping_sub(self.base) as usize)
    }

    /// True if a block may be noted: it touches a known range, or there are few ranges.
    fn has_room_for(&self, start: u64, end: u64) -> bool {
        self.sacked.len() < self.segments.len() * RANGES_PER_SEGMENT || self.sacked.touches(start, end)
    }

    fn mark_sacked(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        let (mark, waited) = (segment.mark, segment.is_lost_and_waiting());
        // A segment that has arrived is neither lost nor in flight.
        segment.mark = (mark - Mark::LOST - Mark::RETRANSMITTED) | Mark::SACKED;
        segment.delivered_at = Instant::ZERO;
        self.sacked_out += 1;
        self.waiting -= u32::from(waited);
        self.lost_out -= u32::from(mark.contains(Mark::LOST));
        self.retrans_out -= u32::from(mark.contains(Mark::RETRANSMITTED));
        self.unlink(self.base.wrapping_add(index as u32));
    }

    /// The index of the segment that contains `position`. It is found by division, which is exact while segments are
    /// full-sized.
    fn index_at(&self, position: u64) -> usize {
        let Some(front) = self.segments.front() else { return 0 };
        if position < front.end {
            return 0;
        }
        let guess = 1 + ((position - front.end) / self.mss) as usize;
        match self.segments.get(guess) {
            Some(segment) if segment.start <= position && position < segment.end => guess,
            _ => self.segments.partition_point(|segment| segment.end <= position),
        }
    }
}

#[cfg(test)]
mod tests;
