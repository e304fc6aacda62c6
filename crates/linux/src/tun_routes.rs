//! Fail-open of a routed gateway: routes that lead through its TUN device, and go with it.
//!
//! Rules by incoming interface send TCP, and UDP if asked for, between servers and clients to a routing table of its own, which
//! has one route: the TUN. When the process is gone so is the device, and with it the route; the rules then find an empty table, and the main
//! table forwards as if there were no gateway. What the gateway writes comes in by the TUN, which no rule names: it leaves
//! by the main table, so nothing runs in circles. The host's own packets are found in the local table before any rule of ours.
//!
//! A process that is frozen keeps its device. So the rules may ask for a mark, which another rule sets while the process lives
//! ([`FailOpenConfig::marking`](crate::nft::FailOpenConfig::marking)): without it, too, the main table forwards.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::netlink::{Netlink, Prefix, Protocol, Route, RouteTarget, Rule};
use crate::sysctl;
use crate::system_error::SystemError;

/// Which packets to lead through the TUN.
#[derive(Clone, Debug)]
pub struct TunRoutesConfig {
    /// The TUN device; it is brought up.
    pub tun: String,
    /// The interfaces towards the servers.
    pub wan: Vec<String>,
    /// The interfaces towards the clients.
    pub radio: Vec<String>,
    /// The clients' prefixes.
    pub clients: Vec<Prefix>,
    /// Only packets with these bits in their marks, which those from the TUN must have, too.
    pub mark: Option<u32>,
    /// UDP, too.
    pub datagrams: bool,
}

impl TunRoutesConfig {
    /// TCP, whatever the mark.
    pub fn new(tun: &str, wan: &[&str], radio: &[&str], clients: Vec<Prefix>) -> Self {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        TunRoutesConfig {
            tun: tun.to_owned(),
            wan: owned(wan),
            radio: owned(radio),
            clients,
            mark: None,
            datagrams: false,
        }
    }
}

/// The installed rules, removed with this value.
#[derive(Debug)]
pub struct TunRoutes {
    netlink: Netlink,
    table: u32,
    /// Those that rules name.
    interfaces: Vec<String>,
    families: Vec<bool>,
}

impl TunRoutes {
    /// Installs routes and rules in the calling thread's network namespace, in place of what an earlier process left. The
    /// packet loop should run already: packets come to the TUN from here on.
    pub fn install(config: &TunRoutesConfig) -> Result<TunRoutes, SystemError> {
        families(config).into_iter().try_for_each(check_forwarding)?;
        let routes = TunRoutes::adopt(config)?;
        routes.remove_rules()?;
        // Loose: what the gateway writes has source addresses that lie behind other interfaces. The larger of this and the
        // setting for all interfaces holds, so that need not be changed.
        sysctl::set(&format!("net/ipv4/conf/{}/rp_filter", config.tun), 2)?;
        if config.mark.is_some() {
            // Without it the way back of what the gateway writes is looked for in the main table, and is another.
            sysctl::set(&format!("net/ipv4/conf/{}/src_valid_mark", config.tun), 1)?;
        }
        routes.repair(config)?;
        Ok(routes)
    }

    /// Puts back what is missing of device, routes and rules: with some of the rules, packets of one direction would go past the gateway.
    pub fn repair(&self, config: &TunRoutesConfig) -> Result<(), SystemError> {
        // Bringing up what is up would be told to whoever watches, and be looked into again.
        if !self.netlink.link(&config.tun)?.up {
            self.netlink.set_up(&config.tun, true)?;
        }
        for &ipv6 in &self.families {
            let default = if ipv6 {
                Prefix::new(Ipv6Addr::UNSPECIFIED, 0)
            } else {
                Prefix::new(Ipv4Addr::UNSPECIFIED, 0)
            };
            let route = Route::new(default, RouteTarget::Interface(config.tun.clone()));
            self.netlink.set_route(&Route { table: Some(self.table), ..route })?;
        }
        self.add_rules(config)
    }

    /// What another process has installed, to be removed by this one.
    pub fn adopt(config: &TunRoutesConfig) -> Result<TunRoutes, SystemError> {
        let mut interfaces = [&config.wan[..], &config.radio[..]].concat();
        interfaces.sort_unstable();
        interfaces.dedup();
        let netlink = Netlink::open()?;
        let table = TABLE_BASE + netlink.link(&config.tun)?.index;
        Ok(TunRoutes { netlink, table, interfaces, families: families(config) })
    }

    /// Removes the rules: from here on the main table forwards everything.
    pub fn remove(self) -> Result<(), SystemError> {
        self.remove_rules()
    }

    fn add_rules(&self, config: &TunRoutesConfig) -> Result<(), SystemError> {
        for &client in &config.clients {
            for protocol in
                [Some(Protocol::Tcp), config.datagrams.then_some(Protocol::Udp)].into_iter().flatten()
            {
                let rule = |interface: &String| Rule {
                    ipv6: client.address.is_ipv6(),
                    priority: PRIORITY,
                    input_interface: interface.clone(),
                    protocol: Some(protocol),
                    source: None,
                    destination: None,
                    mark: config.mark,
                    table: self.table,
                };
                for interface in &config.wan {
                    self.netlink.add_rule(&Rule { destination: Some(client), ..rule(interface) })?;
                }
                for interface in &config.radio {
                    self.netlink.add_rule(&Rule { source: Some(client), ..rule(interface) })?;
                }
            }
        }
        Ok(())
    }

    fn remove_rules(&self) -> Result<(), SystemError> {
        for &ipv6 in &self.families {
            for interface in &self.interfaces {
                self.netlink.delete_rules(ipv6, PRIORITY, interface)?;
            }
        }
        Ok(())
    }
}

impl Drop for TunRoutes {
    fn drop(&mut self) {
        // Rules that stay lead to an empty table.
        let _ = self.remove_rules();
    }
}

/// IPv4, IPv6 or both, by the clients.
fn families(config: &TunRoutesConfig) -> Vec<bool> {
    let mut families: Vec<bool> = config.clients.iter().map(|prefix| prefix.address.is_ipv6()).collect();
    families.sort_unstable();
    families.dedup();
    families
}

fn check_forwarding(ipv6: bool) -> Result<(), SystemError> {
    let name = if ipv6 { "net.ipv6.conf.all.forwarding" } else { "net.ipv4.ip_forward" };
    if sysctl::get(name)? == "0" {
        let reason = std::io::Error::other(format!("this machine does not forward packets; set {name}=1"));
        return Err(SystemError::new("route through the gateway", reason));
    }
    Ok(())
}

/// Of the rules. Our choice: before the main table's, 32766.
pub const PRIORITY: u32 = 7700;
/// The device's number is added, so that gateways of one machine have a table each. Our choice: beyond those that have names (253 to 255).
const TABLE_BASE: u32 = 7700;
