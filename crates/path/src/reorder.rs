//! Packets that overtake others.

use paceline_wire::Duration;

use crate::random::Probability;

/// Packets that are held back while others overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of the packets that are held back.
    pub probability: Probability,
    /// Time for which they are held back.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub by: Duration,
}
