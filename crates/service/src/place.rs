//! The gateway's place in the network, and the roles of handed-over descriptors.

use serde::{Deserialize, Serialize};

/// The gateway's place in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    Bridged,
    Alone,
    Routed,
}

/// The role of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    State,
    Device,
    Rule,
    Flows,
    Control,
    Metrics,
}
