//! Routing that brings packets for other hosts to local sockets while the value lives.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use paceline_linux::SystemError;
use paceline_linux::netlink::{Netlink, Prefix, Protocol, Route, RouteTarget, Rule};

/// The rules and routes.
#[derive(Debug)]
pub(super) struct Diversion {
    netlink: Netlink,
    interfaces: Vec<String>,
    routes: Vec<Route>,
}

impl Diversion {
    /// Brings all TCP that arrives at `interfaces` to sockets of this namespace.
    pub(super) fn begin(interfaces: &[String]) -> Result<Diversion, SystemError> {
        let mut diversion =
            Diversion { netlink: Netlink::open()?, interfaces: interfaces.to_vec(), routes: Vec::new() };
        for ipv6 in [false, true] {
            let any: IpAddr = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
            let mut route = Route::new(Prefix::new(any, 0), RouteTarget::Local);
            route.table = Some(TABLE);
            diversion.netlink.set_route(&route)?;
            diversion.routes.push(route);
            for interface in interfaces {
                diversion.netlink.add_rule(&Rule {
                    ipv6,
                    priority: PRIORITY,
                    input_interface: interface.clone(),
                    protocol: Some(Protocol::Tcp),
                    source: None,
                    destination: None,
                    mark: None,
                    table: TABLE,
                })?;
            }
        }
        Ok(diversion)
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        for ipv6 in [false, true] {
            for interface in &self.interfaces {
                let _ = self.netlink.delete_rules(ipv6, PRIORITY, interface);
            }
        }
        for route in &self.routes {
            let _ = self.netlink.delete_route(route);
        }
    }
}

/// Our choice: numbers that nothing else in the lab uses.
const TABLE: u32 = 7_700;
/// The rules come before the main table.
const PRIORITY: u32 = 7_700;
