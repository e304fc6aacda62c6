//! Retransmission by the link layer: what is lost on the air is sent again by the hop itself, a few times.
//!
//! A selective-repeat link layer without resequencing, as in the studies that call link-layer retransmission a cause of
//! reordering: the sender learns of a failed frame some time after its end, and then sends it before anything that waits. What
//! was sent meanwhile has overtaken it. Each attempt takes its time at the bottleneck and meets the loss anew; after the
//! last one the packet is gone. Acknowledgements of the link layer take no capacity.

use paceline_wire::Duration;

/// How a link layer repeats what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkRetransmission {
    /// How often a packet is sent again at most.
    pub limit: u8,
    /// From the end of a failed attempt until the sender knows of it.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub after: Duration,
}
