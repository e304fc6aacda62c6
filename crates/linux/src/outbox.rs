//! Packets that leave by a port, in order, until the device has taken them.

use std::collections::VecDeque;
use std::io;

use paceline_wire::{Checksum, Packet};

/// A bounded queue before a device. It decides what to do when the device refuses a packet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    packets: VecDeque<Packet>,
    refusals: u32,
    segments_itself: Segmentation,
    rejoins: bool,
    counters: OutboxCounters,
}

/// Counters of the packets that were to leave by a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OutboxCounters {
    /// Packets that the device took, super-packets included.
    pub sent_packets: u64,
    /// Their bytes from the IP header on.
    pub sent_ip_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_full: u64,
    /// Packets dropped because the device refused them.
    pub dropped_refused: u64,
    /// Super-packets that were cut here because the device does not segment.
    pub segmented: u64,
    /// Segments that left as part of a rejoined super-packet.
    pub rejoined: u64,
}

/// How an attempt to send ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendProgress {
    /// The queue is empty.
    All,
    /// The socket or the device is full. A device does not report when it has room again, so try again a little later.
    Later,
}

impl Outbox {
    /// Returns an empty queue. With `rejoins`, adjacent segments of one super-packet leave as one packet.
    pub(crate) fn new(rejoins: bool) -> Self {
        Outbox { rejoins, ..Self::default() }
    }

    /// Appends a packet, or drops it if the queue is full.
    pub(crate) fn push(&mut self, packet: Packet) {
        if self.joins_last(&packet) {
            self.counters.rejoined += 1;
        } else if self.packets.len() >= PACKETS_MAX {
            self.counters.dropped_full += 1;
        } else if self.must_cut(&packet) {
            self.counters.segmented += 1;
            self.packets.extend(packet.segments());
        } else {
            self.packets.push_back(packet);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn first(&self) -> Option<&Packet> {
        self.packets.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }

    pub(crate) fn count_from(&mut self, counters: OutboxCounters) {
        self.counters = counters;
    }

    pub(crate) fn counters(&self) -> OutboxCounters {
        self.counters
    }

    /// The device took the first `count` packets.
    pub(crate) fn sent(&mut self, count: usize) {
        self.refusals = 0;
        for packet in self.packets.drain(..count.min(self.packets.len())) {
            self.counters.sent_packets += 1;
            self.counters.sent_ip_bytes += packet.ip_len() as u64;
            if packet.gso_size().is_some() {
                self.segments_itself = Segmentation::Device;
            }
        }
    }

    /// The device did not take the first packet.
    pub(crate) fn refused(&mut self, error: &io::Error) -> SendProgress {
        match error.raw_os_error() {
            Some(libc::EINTR) => SendProgress::All,
            Some(libc::EAGAIN) => SendProgress::Later,
            Some(libc::ENOBUFS | libc::ENOMEM) => self.congested(),
            _ => {
                self.drop_first();
                SendProgress::All
            }
        }
    }

    fn joins_last(&mut self, packet: &Packet) -> bool {
        self.rejoins
            && self.segments_itself != Segmentation::Software
            && self.packets.back_mut().is_some_and(|last| last.join(packet))
    }

    /// Also true for a super-packet whose checksum is not partial: a device can only complete a partial checksum.
    fn must_cut(&self, packet: &Packet) -> bool {
        packet.gso_size().is_some()
            && (self.segments_itself == Segmentation::Software || packet.checksum() != Checksum::Partial)
    }

    fn congested(&mut self) -> SendProgress {
        self.refusals += 1;
        let is_super_packet = self.first().is_some_and(|packet| packet.gso_size().is_some());
        // With PACKET_QDISC_BYPASS, a device that cannot segment refuses super-packets with ENOBUFS, however often
        // they are tried.
        if is_super_packet && self.refusals > SUPER_PACKET_REFUSALS_MAX {
            self.segment_first();
            return SendProgress::All;
        }
        if self.refusals > REFUSALS_MAX {
            self.drop_first();
            return SendProgress::All;
        }
        SendProgress::Later
    }

    fn segment_first(&mut self) {
        let Some(packet) = self.packets.pop_front() else { return };
        self.refusals = 0;
        self.counters.segmented += 1;
        self.segments_itself = self.segments_itself.after_refusal();
        let segments: Vec<Packet> = packet.segments().collect();
        for segment in segments.into_iter().rev() {
            self.packets.push_front(segment);
        }
    }

    fn drop_first(&mut self) {
        self.refusals = 0;
        if self.packets.pop_front().is_some() {
            self.counters.dropped_refused += 1;
        }
    }
}

/// Who segments super-packets: the device, until it has refused three in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Segmentation {
    #[default]
    Device,
    RefusedOnce,
    RefusedTwice,
    Software,
}

impl Segmentation {
    fn after_refusal(self) -> Self {
        match self {
            Segmentation::Device => Segmentation::RefusedOnce,
            Segmentation::RefusedOnce => Segmentation::RefusedTwice,
            Segmentation::RefusedTwice | Segmentation::Software => Segmentation::Software,
        }
    }
}

/// Our choice: a few hundred milliseconds of a fast link. A node should never hand over nearly as much at once.
const PACKETS_MAX: usize = 16_384;
/// Our choice: two refusals distinguish a full ring from a device that never takes super-packets.
const SUPER_PACKET_REFUSALS_MAX: u32 = 2;
/// Our choice: some milliseconds of attempts. After that, the packet would only delay the packets behind it.
const REFUSALS_MAX: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn error(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    #[test]
    fn a_full_device_is_tried_again_and_then_loses_only_the_first_packet() {
        let mut outbox = Outbox::default();
        outbox.push(crate::testing::tcp_packet(1000, None));
        outbox.push(crate::testing::tcp_packet(1000, None));
        for _ in 0..REFUSALS_MAX {
            assert_eq!(outbox.refused(&error(libc::ENOBUFS)), SendProgress::Later);
        }
        assert_eq!(outbox.refused(&error(libc::ENOBUFS)), SendProgress::All);
        assert_eq!((outbox.len(), outbox.counters().dropped_refused), (1, 1));
        assert_eq!(outbox.refused(&error(libc::EAGAIN)), SendProgress::Later);
        assert_eq!(outbox.refused(&error(libc::EMSGSIZE)), SendProgress::All);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_device_that_cannot_segment_gets_segments() {
        let mut outbox = Outbox::default();
        for _ in 0..4 {
            outbox.push(crate::testing::tcp_packet(3000, Some(1000)));
            for _ in 0..=SUPER_PACKET_REFUSALS_MAX {
                if outbox.first().is_some_and(|packet| packet.gso_size().is_some()) {
                    outbox.refused(&error(libc::ENOBUFS));
                }
            }
            assert_eq!(outbox.len(), 3);
            outbox.sent(3);
        }
        assert_eq!(outbox.segments_itself, Segmentation::Software);
        assert_eq!(outbox.counters().sent_packets, 12);
    }

    #[test]
    fn segments_that_wait_together_leave_together() {
        let mut outbox = Outbox::new(true);
        for _ in 0..2 {
            crate::testing::tcp_packet(3000, Some(1000)).segments().for_each(|segment| outbox.push(segment));
        }
        // The second super-packet does not continue the sequence numbers of the first.
        assert_eq!((outbox.len(), outbox.counters().rejoined), (2, 4));
        let first = outbox.first().unwrap();
        assert_eq!(
            (first.to_vec(), first.gso_size()),
            (crate::testing::tcp_packet(3000, None).to_vec(), Some(1000))
        );
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut outbox = Outbox::default();
        for _ in 0..PACKETS_MAX + 5 {
            outbox.push(crate::testing::tcp_packet(0, None));
        }
        assert_eq!((outbox.len(), outbox.counters().dropped_full), (PACKETS_MAX, 5));
    }
}
