//! Interface addresses.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Netlink, Prefix};
use crate::system_error::{Context, SystemError};

impl Netlink {
    /// Adds an address with its on-link prefix. IPv6 addresses are usable at once, because duplicate address
    /// detection is off.
    pub fn add_address(&self, interface: &str, address: Prefix) -> Result<(), SystemError> {
        let mut message = AddressMessage::default();
        message.header.family = family_of(address.address);
        message.header.prefix_len = address.length;
        message.header.index = self.link(interface)?.index;
        message.attributes.push(AddressAttribute::Local(address.address));
        message.attributes.push(AddressAttribute::Address(address.address));
        if address.address.is_ipv6() {
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
            .context(|| format!("add address {address} to {interface}"))
    }
}

pub(super) fn family_of(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
