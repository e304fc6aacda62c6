//! Retransmission by the link layer: the hop itself retransmits packets lost on the air, a few times.
//!
//! This is a selective-repeat link layer without resequencing. It is taken from studies that call link-layer
//! retransmission a cause of reordering. The sender learns of a failed frame some time after its end, and retransmits
//! it before all waiting packets. Packets sent in between have overtaken it. Each attempt takes time at the bottleneck
//! and can be lost again. After the last attempt the packet is lost. Acknowledgements of the link layer take no
//! capacity.

use paceline_wire::Duration;

/// Retransmission by the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkRetransmission {
    /// The most retransmissions of a packet.
    pub limit: u8,
    /// Time from the end of a failed attempt until the sender knows of the failure.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub after: Duration,
}
