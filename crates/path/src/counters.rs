//! Counters of a link.

use paceline_wire::Duration;

/// Packets and their IP bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
}

/// Totals of a link since it was made.
///
/// A packet that was sent or duplicated is delivered, dropped for one of five reasons, or still in the link. In
/// packets: `sent + duplicated == delivered + dropped() + Link::queued() + Link::in_flight()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Handed to the link.
    pub sent: Count,
    /// Left the bottleneck, including packets that were lost later.
    pub transmitted: Count,
    /// Failed attempts that the link layer repeats. They count as transmitted, too.
    pub retried: Count,
    /// Arrived at the other end, duplicates included.
    pub delivered: Count,
    /// Copies made by the link.
    pub duplicated: Count,
    /// Held back so that other packets overtook them.
    pub reordered: Count,
    /// Found no room in the queue, or were dropped to make room for others if the discipline does that.
    pub dropped_by_queue: Count,
    /// Dropped by active queue management before the queue was full.
    pub dropped_by_aqm: Count,
    /// Exceeded the rate of the [`Policer`](crate::Policer).
    pub dropped_by_policer: Count,
    /// Lost according to [`Loss`](crate::Loss).
    pub dropped_by_loss: Count,
    /// Lost in an outage.
    pub dropped_by_outage: Count,
    /// Marked by queue management as congestion (ECN) or "brake" (ABC). They continue in the link.
    pub marked: Count,
    /// Time in which the bottleneck was sending. Opportunities take no time.
    pub sending: Duration,
    /// The largest number of bytes that ever waited.
    pub queued_bytes_max: u64,
}

impl Count {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

impl LinkCounters {
    /// Returns the dropped packets, by the name of the cause.
    pub fn dropped_by_cause(&self) -> [(&'static str, Count); 5] {
        [
            ("queue", self.dropped_by_queue),
            ("aqm", self.dropped_by_aqm),
            ("policer", self.dropped_by_policer),
            ("loss", self.dropped_by_loss),
            ("outage", self.dropped_by_outage),
        ]
    }

    /// Returns the sum of all dropped packets.
    pub fn dropped(&self) -> Count {
        let reasons = self.dropped_by_cause().map(|(_, count)| count);
        Count {
            packets: reasons.iter().map(|reason| reason.packets).sum(),
            bytes: reasons.iter().map(|reason| reason.bytes).sum(),
        }
    }
}
