//! What all flows of a subscriber have seen of the path to their client.

use paceline_wire::{Duration, Instant, Rate};

use crate::auto::Reason;
use crate::rtt_min::STANDING;
use crate::upload::UploadPath;

/// The path between gateway and client, as all flows of the subscriber have seen it.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PathEstimate {
    /// The shortest RTT of late.
    pub(crate) rtt: Option<Duration>,
    /// An even share of what the link delivers, among the flows that have not ended; zero while unknown.
    pub(crate) share: Rate,
    /// What the link carries, if it was the limit of late; zero while unknown.
    #[serde(default)]
    pub(crate) link: Rate,
    /// Bytes that the subscriber has sent up, without those of acknowledgements.
    #[serde(default)]
    pub(crate) uploaded: u64,
    /// What waits on the way up.
    #[serde(default)]
    pub(crate) uplink: UplinkQueue,
    /// Data waits for room: the link is full.
    #[serde(default)]
    pub(crate) full: bool,
    /// One flow has the link.
    #[serde(default)]
    pub(crate) alone: bool,
    /// Why the gateway cannot help: flows pass through as if it were not there.
    #[serde(default)]
    pub(crate) passes: Option<Reason>,
    /// What an upload may have on its way.
    #[serde(default)]
    pub(crate) upload: UploadPath,
}

/// What a packet of the subscriber's waited on the uplink, and when it came.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct UplinkQueue {
    pub(crate) queue: Duration,
    pub(crate) at: Instant,
}

impl UplinkQueue {
    /// If it came of late.
    pub(crate) fn of_late(&self, now: Instant) -> Option<Duration> {
        (now.saturating_since(self.at) < STANDING).then_some(self.queue)
    }
}
