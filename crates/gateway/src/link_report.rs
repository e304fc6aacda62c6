//! What an ACK told about the radio link.

use paceline_wire::{Duration, Instant};

use crate::upload::UploadReport;

/// What an ACK told about the radio link; the subscriber's bound lives on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkReport {
    /// Bytes that arrived at the client.
    pub(crate) delivered: u64,
    /// Bytes that the link lost.
    pub(crate) lost: u64,
    /// When the first of them had left, if that is known.
    pub(crate) lost_sent: Option<Instant>,
    /// Round-trip time of a packet that left once.
    pub(crate) rtt: Option<Duration>,
    /// Time since the departure of the last packet that arrived. While a hole is open, arrivals are counted rather than
    /// named, so it may be off by some packets, but there is no other word of the queue then.
    pub(crate) age: Option<Duration>,
    /// Round-trip time between server and gateway; none where the gateway itself sends.
    pub(crate) server_rtt: Duration,
    /// How long the report itself waited on the uplink, if its flow knows.
    pub(crate) uplink: Option<Duration>,
    /// Its packets leave at a rate of their own, within the bound.
    pub(crate) paced: bool,
    /// What data of an upload says of the uplink.
    pub(crate) upload: Option<UploadReport>,
}

impl LinkReport {
    /// The gateway itself is the sender.
    pub(crate) fn is_own(&self) -> bool {
        self.server_rtt.is_zero()
    }
}
