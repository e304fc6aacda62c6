//! Fixed neighbour entries, so that address resolution does not cross an emulated link in the middle of a run.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};

use super::Netlink;
use super::address::family_of;
use crate::system_error::{Context, SystemError};

impl Netlink {
    /// Fixes the hardware address of a neighbour. The kernel never asks for it, and it never expires.
    pub fn add_neighbour(&self, interface: &str, neighbour: IpAddr, mac: &[u8]) -> Result<(), SystemError> {
        let mut message = NeighbourMessage::default();
        message.header.family = family_of(neighbour);
        message.header.ifindex = self.link(interface)?.index;
        message.header.state = NeighbourState::Permanent;
        let destination = match neighbour {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        message.attributes.push(NeighbourAttribute::Destination(destination));
        message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
            .context(|| format!("set neighbour {neighbour} on {interface}"))
    }
}
