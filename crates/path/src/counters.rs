//! What a link has done.

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
/// What was sent or duplicated is delivered, dropped for one of five reasons, or still in the link:
/// `sent + duplicated == delivered + dropped() + Link::queued() + Link::in_flight()`, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Handed to the link.
    pub sent: Count,
    /// Left the bottleneck, what was lost afterwards included.
    pub transmitted: Count,
    /// Attempts that failed and that the link layer made good for by another one. They count as transmitted, too.
    pub retried: Count,
    /// Arrived at the other end, duplicates included.
    pub delivered: Count,
    /// Copies made by the link.
    pub duplicated: Count,
    /// Held back so that others overtook.
    pub reordered: Count,
    /// Found no room in the queue, or, where the discipline has it so, made room for others.
    pub dropped_by_queue: Count,
    /// Dropped by active queue management before the queue was full.
    pub dropped_by_aqm: Count,
    /// Exceeded what the [`Policer`](crate::Policer) allows.
    pub dropped_by_policer: Count,
    /// Lost as [`Loss`](crate::Loss) says.
    pub dropped_by_loss: Count,
    /// Lost in an outage.
    pub dropped_by_outage: Count,
    /// Marked by queue management as having met congestion (ECN), or told to brake (ABC). They go on.
    pub marked: Count,
    /// How long the bottleneck was sending. Opportunities take no time.
    pub sending: Duration,
    /// The most that ever waited.
    pub queued_bytes_max: u64,
}

impl Count {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

impl LinkCounters {
    /// What will never arrive, by the name of its cause.
    pub fn dropped_by_cause(&self) -> [(&'static str, Count); 5] {
        [
            ("queue", self.dropped_by_queue),
            ("aqm", self.dropped_by_aqm),
            ("policer", self.dropped_by_policer),
            ("loss", self.dropped_by_loss),
            ("outage", self.dropped_by_outage),
        ]
    }

    /// Everything that will never arrive.
    pub fn dropped(&self) -> Count {
        let reasons = self.dropped_by_cause().map(|(_, count)| count);
        Count {
            packets: reasons.iter().map(|reason| reason.packets).sum(),
            bytes: reasons.iter().map(|reason| reason.bytes).sum(),
        }
    }
}
