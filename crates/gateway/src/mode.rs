//! What a flow can become, and a decision about one.

use crate::auto::Reason;
use crate::counters::PassReason;
use crate::split::SenderConfig;

/// What becomes of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is forwarded unchanged.
    Pass(PassReason),
    /// It is accelerated; its ends keep talking to each other.
    Transparent,
    /// Each end talks to the gateway; this sends to the client.
    Split(SenderConfig),
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// What a new flow becomes.
    Mode(Mode),
    /// The server repairs the flow from here on.
    ServerRepairs,
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
