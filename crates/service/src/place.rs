//! How the gateway stands in the network, and what belongs to its place there.

use serde::{Deserialize, Serialize};

/// How the gateway stands in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    Bridged,
    Alone,
    Routed,
}

/// What a descriptor is.
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
