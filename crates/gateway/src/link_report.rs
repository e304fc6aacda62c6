//! What an ACK reports about the radio link.

use paceline_wire::{Duration, Instant};

use crate::upload::UploadReport;

/// What an ACK reports about the radio link. The subscriber's queue bound uses it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkReport {
    /// Bytes newly reported as arrived at the client.
    pub(crate) delivered: u64,
    /// Bytes that the link lost.
    pub(crate) lost: u64,
    /// Departure time of the first lost byte, if known.
    pub(crate) lost_sent: Option<Instant>,
    /// Round-trip time of a packet that was sent only once.
    pub(crate) rtt: Option<Duration>,
    /// Time since the departure of the newest packet that arrived. While there is a hole, the gateway knows the number
    /// of arrivals and not which they were. So this may be off by some packets, but nothing else then tells of the
    /// queue.
    pub(crate) age: Option<Duration>,
    /// Round-trip time between server and gateway. Zero if the gateway itself sends.
    pub(crate) server_rtt: Duration,
    /// Time that the report itself waited on the uplink, if its flow knows.
    pub(crate) uplink: Option<Duration>,
    /// The flow paces its packets at its own rate, within the bound.
    pub(crate) paced: bool,
    /// What an upload's data reports about the uplink.
    pub(crate) upload: Option<UploadReport>,
}

impl LinkReport {
    /// True if the gateway itself is the sender.
    pub(crate) fn is_own(&self) -> bool {
        self.server_rtt.is_zero()
    }
}
