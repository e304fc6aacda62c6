//! The gateway's ports.

use paceline_wire::PortId;

/// The port towards the servers.
pub const WAN: PortId = PortId(0);
/// The port towards the clients.
pub const RADIO: PortId = PortId(1);

/// Port where a routed gateway gets copies of ICMP messages that the kernel forwards or sends past it. Nothing leaves
/// here.
pub const OVERHEARD: PortId = PortId(2);
