//! `auto`: chooses mode and sender of a flow from measurements, with no number to set.
//!
//! It decides at the SYN (`decide`) by what earlier flows of the subscriber showed (`memory`). `guard` keeps a client
//! from more than its share. Every decision has a [`Reason`], which is counted and logged.

mod decide;
mod guard;
mod history;
mod reason;
mod uplink;

use paceline_wire::{Duration, FlowKey, Instant};

use crate::config::SharingConfig;

pub use history::{ClientRecord, KnownPath, PathHistory};
pub use reason::Reason;

pub use crate::mode::{Decision, DecisionKind};

pub(crate) use decide::decide;
pub(crate) use guard::{OptimisticAcks, may_open};
pub(crate) use history::{FlowObservation, server_prefix};
pub(crate) use uplink::UplinkDelay;

/// Our choice: ACKs are late if they wait on the uplink for longer than a round trip of the path and for longer than
/// this. A sender hardly notices less.
const LATE: Duration = Duration::from_millis(100);

/// True if ACKs that wait on the uplink for `queue` are late on a path with the round trip `rtt`, if that is known.
pub(crate) fn is_late(queue: Duration, rtt: Option<Duration>) -> bool {
    queue > rtt.unwrap_or_default().max(LATE)
}

impl PathHistory {
    /// Returns what is known of both ends of a new flow (client to server).
    pub fn known(&self, now: Instant, sharing: &SharingConfig, key: &FlowKey) -> KnownPath {
        self.look_up(now, sharing.subscriber(key.src.ip()), key.dst.ip())
    }
}
