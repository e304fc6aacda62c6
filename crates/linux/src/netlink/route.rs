//! Routes, with the per-route TCP settings. Older kernels have these settings only here.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};

use super::address::family_of;
use super::{Netlink, Prefix};
use crate::system_error::{Context, SystemError};

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteTarget {
    /// A router on a connected network.
    Via(IpAddr),
    /// An interface whose network contains the destination.
    Interface(String),
    /// This host itself: its own sockets receive the packets.
    Local,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destinations of the route. Length zero is the default route of the address's family.
    pub destination: Prefix,
    /// Where it leads.
    pub target: RouteTarget,
    /// Routing table; `None` is the main table.
    pub table: Option<u32>,
    /// Priority; the smaller one is preferred. `None` leaves it to the kernel.
    pub priority: Option<u32>,
    /// Minimum retransmission timeout of TCP connections over this route, in milliseconds.
    pub rto_min_ms: Option<u32>,
    /// Initial congestion window of TCP connections over this route, in segments.
    pub initial_cwnd: Option<u32>,
}

impl Route {
    /// A plain route in the main table.
    pub fn new(destination: Prefix, target: RouteTarget) -> Self {
        Route { destination, target, table: None, priority: None, rto_min_ms: None, initial_cwnd: None }
    }
}

impl Netlink {
    /// Adds a route, or replaces the one with the same destination, table and priority.
    pub fn set_route(&self, route: &Route) -> Result<(), SystemError> {
        let message = self.route_message(route)?;
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
            .context(|| format!("set the route to {}", route.destination))
    }

    /// Deletes a route.
    pub fn delete_route(&self, route: &Route) -> Result<(), SystemError> {
        let message = self.route_message(route)?;
        self.request(RouteNetlinkMessage::DelRoute(message), 0)
            .context(|| format!("delete the route to {}", route.destination))
    }

    fn route_message(&self, route: &Route) -> Result<RouteMessage, SystemError> {
        let destination = route.destination.network();
        let mut message = RouteMessage::default();
        message.header.address_family = family_of(destination.address);
        message.header.destination_prefix_length = destination.length;
        message.header.table = RouteHeader::RT_TABLE_UNSPEC;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        let table = route.table.unwrap_or(u32::from(RouteHeader::RT_TABLE_MAIN));
        message.attributes.push(RouteAttribute::Table(table));
        if destination.length > 0 {
            message.attributes.push(RouteAttribute::Destination(route_address(destination.address)));
        }
        match &route.target {
            RouteTarget::Via(router) => {
                message.attributes.push(RouteAttribute::Gateway(route_address(*router)))
            }
            RouteTarget::Interface(name) => {
                if destination.address.is_ipv4() {
                    message.header.scope = RouteScope::Link;
                }
                message.attributes.push(RouteAttribute::Oif(self.link(name)?.index));
            }
            RouteTarget::Local => {
                message.header.kind = RouteType::Local;
                message.header.scope = RouteScope::Host;
                message.attributes.push(RouteAttribute::Oif(self.link("lo")?.index));
            }
        }
        message.attributes.extend(route.priority.map(RouteAttribute::Priority));
        let mut metrics: Vec<_> = route.initial_cwnd.map(RouteMetric::InitCwnd).into_iter().collect();
        if let Some(ms) = route.rto_min_ms {
            // TCP obeys this metric only if it is locked.
            metrics.extend([RouteMetric::Lock(1 << RTAX_RTO_MIN), RouteMetric::RtoMin(ms)]);
        }
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        Ok(message)
    }
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

const RTAX_RTO_MIN: u32 = 13;
