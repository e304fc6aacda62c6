//! Log of the transmissions in flight to the client, in order of departure.
//!
//! The radio link keeps order. When a transmission is known to have arrived, all earlier ones have left the link, too.
//! What they carried and the client does not report is lost. The log also gives the bytes in flight, RTT samples and
//! lost retransmissions, and costs O(1) per ACK. RFC 8985 orders by time for the same reason.

use alloc::collections::VecDeque;

use paceline_wire::Instant;

/// One departure of a range of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Transmission {
    /// First stream position.
    pub(crate) start: u64,
    /// Position after the last.
    pub(crate) end: u64,
    /// Departure.
    pub(crate) sent_at: Instant,
    /// Order of departure within this flow, from 1.
    pub(crate) order: u64,
    /// True if none of its bytes had left before.
    pub(crate) first: bool,
}

/// The latest transmission known to have arrived, in order of departure, and how much of it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub(crate) struct NewestArrival {
    /// Order of departure; zero if there is none.
    pub(crate) order: u64,
    /// Position after its bytes that have arrived.
    pub(crate) end: u64,
}

/// Our choice: the most that a repaired flow logs by default. That is `max_flow_buffer_bytes` in pieces of `PIECE_MIN`,
/// and 23 MB in whole segments. Where no data is kept, nothing else bounds the log of a stream of single bytes to a
/// silent client.
const FIRSTS_MAX: usize = 1 << 14;

/// Memory that one departure takes.
pub(crate) const TRANSMISSION_BYTES: usize = size_of::<Transmission>();

impl Transmission {
    fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// The log. First transmissions are sorted by position as well as by order; retransmissions only by order.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Flight {
    firsts: VecDeque<Transmission>,
    #[serde(rename = "repeats")]
    retransmissions: VecDeque<Transmission>,
    bytes: u64,
    last_order: u64,
    left_order: u64,
}

impl Flight {
    /// Bytes in flight: sent, and not known to have left the link.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Order up to which all transmissions have left the link.
    pub(crate) fn left_order(&self) -> u64 {
        self.left_order
    }

    /// True if the oldest transmission in flight is a retransmission of the byte at `position`.
    pub(crate) fn oldest_retransmits(&self, position: u64) -> bool {
        self.oldest().is_some_and(|t| !t.first && t.start <= position && position < t.end)
    }

    /// Departure of the oldest transmission in flight.
    pub(crate) fn oldest_sent_at(&self) -> Option<Instant> {
        self.oldest().map(|t| t.sent_at)
    }

    /// Bytes of memory that the log takes.
    pub(crate) fn memory(&self) -> u64 {
        ((self.firsts.len() + self.retransmissions.len()) * size_of::<Transmission>()) as u64
    }

    /// Logs the first departure of a range. Without room it extends the newest entry, as in a full log.
    pub(crate) fn push_first(&mut self, start: u64, end: u64, sent_at: Instant, has_room: bool) {
        if has_room || !self.extend(end) {
            self.push(start, end, sent_at, true);
        }
    }

    /// Extends the newest transmission to `end` if it is a first one. Returns whether it did.
    fn extend(&mut self, end: u64) -> bool {
        let Some(last) = self.firsts.back_mut().filter(|last| last.order == self.last_order) else {
            return false;
        };
        self.bytes += end - last.end;
        last.end = end;
        true
    }

    /// Logs a departure and returns its order. In a full log a first transmission extends the newest entry if that is a
    /// first one. Its bytes count, and its round trip seems longer, never shorter.
    pub(crate) fn push(&mut self, start: u64, end: u64, sent_at: Instant, first: bool) -> u64 {
        if first && self.firsts.len() >= FIRSTS_MAX && self.extend(end) {
            return self.last_order;
        }
        self.last_order += 1;
        let transmission = Transmission { start, end, sent_at, order: self.last_order, first };
        self.bytes += transmission.len();
        if first {
            self.firsts.push_back(transmission)
        } else {
            self.retransmissions.push_back(transmission)
        }
        self.last_order
    }

    /// Removes the newest retransmission if it carried exactly this range. Without room for more, the log then keeps
    /// only one of the unanswered copies that leave by timeouts.
    pub(crate) fn forget_copy(&mut self, start: u64, end: u64) {
        if self.retransmissions.back().is_some_and(|copy| copy.start == start && copy.end == end) {
            self.retransmissions.pop_back();
            self.bytes -= end - start;
        }
    }

    /// The first transmission that carried the byte at `position`, if it is in flight.
    pub(crate) fn first_at(&self, position: u64) -> Option<Transmission> {
        let after = self.firsts.partition_point(|t| t.start <= position);
        let found = *self.firsts.get(after.checked_sub(1)?)?;
        (position < found.end).then_some(found)
    }

    /// Removes the oldest transmission if it left before `arrived`. Of `arrived` itself it removes only the part below
    /// `arrived.end`. The segments of a super-packet travel one by one, so the rest is still in flight.
    pub(crate) fn pop_until(&mut self, arrived: NewestArrival) -> Option<Transmission> {
        let oldest = *self.oldest().filter(|t| t.order <= arrived.order)?;
        if oldest.order == arrived.order && arrived.end < oldest.end {
            return self.pop_part(arrived.end.saturating_sub(oldest.start));
        }
        self.pop_oldest()
    }

    fn pop_oldest(&mut self) -> Option<Transmission> {
        let oldest = *self.oldest()?;
        self.remove_oldest();
        self.bytes -= oldest.len();
        self.left_order = oldest.order;
        Some(oldest)
    }

    /// Removes the first `bytes` of the oldest transmission, less than the whole.
    fn pop_part(&mut self, bytes: u64) -> Option<Transmission> {
        let oldest = *self.oldest().filter(|_| bytes > 0)?;
        if let Some(front) = self.oldest_mut() {
            front.start += bytes;
        }
        self.bytes -= bytes;
        Some(Transmission { end: oldest.start + bytes, ..oldest })
    }

    /// Removes one segment of at most `bytes` from the oldest transmission. A duplicate ACK tells that a segment has
    /// left the link, but not which.
    pub(crate) fn pop_segment(&mut self, bytes: u64) -> Option<Transmission> {
        if self.oldest()?.len() <= bytes { self.pop_oldest() } else { self.pop_part(bytes) }
    }

    /// Forgets all transmissions, as after a timeout.
    pub(crate) fn clear(&mut self) {
        self.firsts.clear();
        self.retransmissions.clear();
        self.bytes = 0;
        self.left_order = self.last_order;
    }

    /// Forgets all transmissions, as [`clear`](Self::clear) does, and returns them for [`put_back`](Self::put_back).
    pub(crate) fn take(&mut self) -> Flight {
        let rest = Flight { last_order: self.last_order, left_order: self.last_order, ..Flight::default() };
        core::mem::replace(self, rest)
    }

    /// Puts `older` back in front of what departed since, as far as it lies beyond `una`: it had not left the link.
    pub(crate) fn put_back(&mut self, mut older: Flight, una: u64) {
        for part in [&mut older.firsts, &mut older.retransmissions] {
            part.retain(|t| t.end > una);
        }
        older.bytes = older.copies().map(Transmission::len).sum();
        older.firsts.append(&mut self.firsts);
        older.retransmissions.append(&mut self.retransmissions);
        older.bytes += self.bytes;
        older.last_order = self.last_order;
        *self = older;
    }

    /// All transmissions in flight.
    pub(crate) fn copies(&self) -> impl Iterator<Item = &Transmission> {
        self.firsts.iter().chain(&self.retransmissions)
    }

    fn first_is_oldest(&self) -> bool {
        match (self.firsts.front(), self.retransmissions.front()) {
            (Some(first), Some(retransmission)) => first.order < retransmission.order,
            (first, _) => first.is_some(),
        }
    }

    fn oldest(&self) -> Option<&Transmission> {
        if self.first_is_oldest() { self.firsts.front() } else { self.retransmissions.front() }
    }

    fn oldest_mut(&mut self) -> Option<&mut Transmission> {
        if self.first_is_oldest() { self.firsts.front_mut() } else { self.retransmissions.front_mut() }
    }

    fn remove_oldest(&mut self) {
        if self.first_is_oldest() {
            self.firsts.pop_front();
        } else {
            self.retransmissions.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    #[test]
    fn firsts_and_retransmissions_leave_in_order_of_departure() {
        let mut flight = Flight::default();
        flight.push(0, 10, t(1), true);
        let retransmission = flight.push(0, 10, t(2), false);
        flight.push(10, 20, t(3), true);
        assert_eq!(flight.bytes(), 30);
        assert_eq!(flight.first_at(15).map(|t| t.order), Some(3));
        let arrived = NewestArrival { order: retransmission, end: 10 };
        assert_eq!(flight.pop_until(arrived).map(|t| t.order), Some(1));
        assert_eq!(flight.pop_until(arrived).map(|t| t.order), Some(2));
        assert_eq!(flight.pop_until(arrived), None);
        assert_eq!((flight.bytes(), flight.left_order()), (10, 2));
    }

    #[test]
    fn of_a_super_packet_only_what_has_arrived_has_left() {
        let mut flight = Flight::default();
        let order = flight.push(0, 2920, t(1), true);
        let range = |t: Option<Transmission>| t.map(|t| (t.start, t.end));
        assert_eq!(range(flight.pop_until(NewestArrival { order, end: 1460 })), Some((0, 1460)));
        assert_eq!(range(flight.pop_until(NewestArrival { order, end: 1460 })), None);
        assert_eq!((flight.bytes(), flight.left_order()), (1460, 0));
        assert_eq!(range(flight.pop_until(NewestArrival { order, end: 2920 })), Some((1460, 2920)));
        assert_eq!((flight.bytes(), flight.left_order()), (0, order));
    }

    #[test]
    fn a_duplicate_ack_takes_one_segment_of_a_super_packet() {
        let mut flight = Flight::default();
        flight.push(0, 5000, t(1), true);
        for range in [(0, 1448), (1448, 2896), (2896, 4344), (4344, 5000)] {
            assert_eq!(flight.pop_segment(1448).map(|t| (t.start, t.end)), Some(range));
        }
        assert_eq!(flight.bytes(), 0);
    }

    #[test]
    fn the_log_of_a_stream_in_single_bytes_has_an_end() {
        let mut flight = Flight::default();
        for n in 0..100_000 {
            flight.push(n, n + 1, t(n), true);
        }
        assert_eq!(flight.firsts.len(), 1 << 14);
        assert_eq!(flight.bytes(), 100_000);
        let last = flight.first_at(99_999).unwrap();
        assert_eq!((last.start, last.end, last.sent_at), ((1 << 14) - 1, 100_000, t((1 << 14) - 1)));
        let (order, mut bytes) = (last.order, 0);
        while let Some(gone) = flight.pop_until(NewestArrival { order, end: 50_000 }) {
            bytes += gone.len();
        }
        assert_eq!((bytes, flight.bytes()), (50_000, 50_000));
        // There is room in the log again.
        assert!(flight.push(100_000, 100_001, t(100_000), true) > order);
    }

    #[test]
    fn a_full_log_keeps_the_order_of_retransmissions() {
        let mut flight = Flight::default();
        for n in 0..20_000 {
            flight.push(n, n + 1, t(n), true);
        }
        let retransmission = flight.push(0, 1, t(20_000), false);
        assert!(flight.push(20_000, 20_001, t(20_001), true) > retransmission, "it left later");
    }
}
