//! The modes of a flow, and a decision about one.

use crate::auto::Reason;
use crate::counters::PassReason;
use crate::split::SenderConfig;

/// Mode of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is forwarded unchanged.
    Pass(PassReason),
    /// It is accelerated; its ends keep talking to each other.
    Transparent,
    /// Each end talks to the gateway, which sends to the client with this sender.
    Split(SenderConfig),
}

/// The subject of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DecisionKind {
    /// Mode of a new flow.
    Mode(Mode),
    /// The server repairs the flow from here on.
    ServerRepairs,
    /// The flow passes from here on.
    Passes,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// What was decided.
    pub what: DecisionKind,
    /// The reason.
    pub reason: Reason,
}
