//! The port of a host.

use paceline_wire::PortId;

/// The port by which a host is connected.
pub const HOST: PortId = PortId(0);
