//! What all flows of a subscriber have seen of the path to their client.

use paceline_wire::{Duration, Instant, Rate};

use crate::rtt_min::STANDING;
use crate::upload::UploadPath;

/// The path between gateway and client, as all flows of the subscriber have seen it.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PathEstimate {
    /// Shortest recent RTT.
    pub(crate) rtt: Option<Duration>,
    /// An even share of the link's expected rate for each flow that has not ended; zero while unknown.
    pub(crate) share: Rate,
    /// Known rate of the link; zero while unknown.
    #[serde(default)]
    pub(crate) link: Rate,
    /// Bytes that the subscriber has sent, without those of acknowledgements.
    #[serde(default)]
    pub(crate) uploaded: u64,
    /// The queue on the uplink.
    #[serde(default)]
    pub(crate) uplink: UplinkQueue,
    /// Data waits for room: the link is full.
    #[serde(default)]
    pub(crate) full: bool,
    /// At most one flow has not ended.
    #[serde(default)]
    pub(crate) alone: bool,
    /// ACKs wait behind an upload, so that flows pass through as if the gateway were not there.
    #[serde(default)]
    pub(crate) late_acks: bool,
    /// What an upload may have in flight.
    #[serde(default)]
    pub(crate) upload: UploadPath,
}

/// Wait of a packet of the subscriber on the uplink, and its arrival.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct UplinkQueue {
    pub(crate) queue: Duration,
    pub(crate) at: Instant,
}

impl UplinkQueue {
    /// Returns the wait if the packet came recently.
    pub(crate) fn of_late(&self, now: Instant) -> Option<Duration> {
        (now.saturating_since(self.at) < STANDING).then_some(self.queue)
    }
}
