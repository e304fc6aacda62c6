//! `auto`: mode and sender of a flow from what is measured, with no number to set.
//!
//! A SYN decides (`decide`) by what earlier flows of the subscriber showed (`memory`), and `guard` keeps a client from more than its
//! share. Every decision has a [`Reason`], which is counted and told.

mod decide;
mod guard;
mod memory;
mod uplink;

use core::fmt;

use paceline_wire::{Duration, FlowKey, Instant};

use crate::config::SharingConfig;
use crate::mode::Mode;
use crate::subscriber::prefix;

pub use memory::{ClientRecord, Known, Memory};

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

/// Why `auto` has decided as it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Reason {
    /// No flow of the client has been seen of late.
    Unknown,
    /// Its flows have shown nothing that speaks against the default. The older names were reasons once; a gateway of then may hand them over.
    #[cfg_attr(feature = "serde", serde(alias = "varying-link", alias = "steady-link"))]
    Ordinary,
    /// Acknowledgements wait on the uplink.
    LateAcks,
    /// The link's buffer overflows, and is too short for a bound to be of use.
    ShortBuffer,
    /// Data is lost without load, on a path so long that a sender of our own repairs it better.
    LossyPath,
    /// The application reads more slowly than the link carries.
    SlowReader,
    /// What was repaired had not been lost.
    NeedlessRepairs,
    /// The client acknowledges what it cannot have.
    OptimisticAcks,
    /// The server recovers from losses as well by itself.
    ServerRecovers,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// What a new flow becomes.
    Mode(Mode),
    /// The server repairs the flow from here on.
    ServerRepairs,
    /// The server sees the client's own window.
    OwnWindow,
    /// The flow passes from here on.
    Passes,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// What.
    pub what: What,
    /// Why.
    pub reason: Reason,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 9] = [
        Reason::Unknown,
        Reason::Ordinary,
        Reason::LateAcks,
        Reason::ShortBuffer,
        Reason::LossyPath,
        Reason::SlowReader,
        Reason::NeedlessRepairs,
        Reason::OptimisticAcks,
        Reason::ServerRecovers,
    ];

    /// As metrics and logs name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Unknown => "unknown",
            Reason::Ordinary => "ordinary",
            Reason::LateAcks => "late-acks",
            Reason::ShortBuffer => "short-buffer",
            Reason::LossyPath => "lossy-path",
            Reason::SlowReader => "slow-reader",
            Reason::NeedlessRepairs => "needless-repairs",
            Reason::OptimisticAcks => "optimistic-acks",
            Reason::ServerRecovers => "server-recovers",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Memory {
    /// What is known of the ends of a new flow (client to server).
    pub fn known(&self, now: Instant, sharing: &SharingConfig, key: &FlowKey) -> Known {
        self.look_up(now, prefix(sharing, key.src.ip()), key.dst.ip())
    }
}
