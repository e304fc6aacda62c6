//! `auto`: mode and sender of a flow from what is measured, with no number to set.
//!
//! A SYN decides (`decide`) by what earlier flows of the subscriber showed (`memory`), and `guard` keeps a client from more than its
//! share. Every decision has a [`Reason`], which is counted and told.

mod decide;
mod guard;
mod memory;
mod reason;
mod uplink;

use paceline_wire::{Duration, FlowKey, Instant};

use crate::config::SharingConfig;

pub use memory::{ClientRecord, Known, Memory};
pub use reason::Reason;

pub use crate::mode::{Decision, What};

pub(crate) use decide::decide;
pub(crate) use guard::{Claim, may_open};
pub(crate) use memory::{Seen, server_prefix};
pub(crate) use uplink::UplinkDelay;

/// Our choice: ACKs are late when they wait on the uplink for as long as the path takes, and for no less than this: below it a sender
/// hardly notices.
const LATE: Duration = Duration::from_millis(100);

/// Whether ACKs that wait on the uplink for `queue` are late on a path that takes `rtt`, if that is known.
pub(crate) fn is_late(queue: Duration, rtt: Option<Duration>) -> bool {
    queue > rtt.unwrap_or_default().max(LATE)
}

impl Memory {
    /// What is known of the ends of a new flow (client to server).
    pub fn known(&self, now: Instant, sharing: &SharingConfig, key: &FlowKey) -> Known {
        self.look_up(now, sharing.subscriber(key.src.ip()), key.dst.ip())
    }
}
