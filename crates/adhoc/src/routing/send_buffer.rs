//! Packets that wait for a route (RFC 4728, Section 4.2).

use std::collections::VecDeque;

use paceline_wire::{Duration, Instant, Packet};

use super::super::StationId;

#[derive(Debug)]
pub(super) struct SendBuffer {
    limit: usize,
    patience: Duration,
    /// In order of arrival, each with the end of its patience.
    waiting: VecDeque<(Instant, StationId, Packet)>,
}

impl SendBuffer {
    pub(super) fn new(limit: usize, patience: Duration) -> Self {
        SendBuffer { limit: limit.max(1), patience, waiting: VecDeque::new() }
    }

    /// Adds a packet. Returns the number of packets dropped, the oldest first.
    pub(super) fn push(&mut self, now: Instant, to: StationId, packet: Packet) -> u64 {
        let mut dropped = self.expire(now);
        if self.waiting.len() >= self.limit {
            self.waiting.pop_front();
            dropped += 1;
        }
        self.waiting.push_back((now + self.patience, to, packet));
        dropped
    }

    /// Drops packets that have waited too long. Returns their number.
    pub(super) fn expire(&mut self, now: Instant) -> u64 {
        let mut dropped = 0;
        while self.waiting.front().is_some_and(|(until, ..)| *until <= now) {
            self.waiting.pop_front();
            dropped += 1;
        }
        dropped
    }

    pub(super) fn has(&self, to: StationId) -> bool {
        self.waiting.iter().any(|waiting| waiting.1 == to)
    }

    /// Takes the first packet for a station.
    pub(super) fn pop(&mut self, to: StationId) -> Option<Packet> {
        let at = self.waiting.iter().position(|waiting| waiting.1 == to)?;
        self.waiting.remove(at).map(|(_, _, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at_s(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    #[test]
    fn packets_wait_a_while_and_make_room() {
        let mut buffer = SendBuffer::new(2, Duration::from_secs(30));
        let packet = Packet::default;
        assert_eq!(buffer.push(at_s(0), 1, packet()) + buffer.push(at_s(1), 2, packet()), 0);
        assert_eq!(buffer.push(at_s(2), 2, packet()), 1);
        assert!(!buffer.has(1) && buffer.has(2));
        assert_eq!(buffer.expire(at_s(31)), 1);
        assert!(buffer.pop(2).is_some() && buffer.pop(2).is_none());
    }
}
