//! Fail-open of a routed gateway: routes through its TUN device, which disappear with the device.
//!
//! Rules by incoming interface send TCP, and UDP if configured, between servers and clients to a separate routing
//! table. The table has one route, to the TUN. When the process ends, the device and the route are gone. The rules
//! then find an empty table, and the main table forwards as if there were no gateway. Packets that the gateway writes
//! come in by the TUN. No rule names the TUN, so they leave by the main table and do not loop. The host's own packets
//! match the local table before any of these rules.
//!
//! A frozen process keeps its device. So the rules may require a mark. Another rule sets it while the process lives
//! ([`FailOpenConfig::marking`](crate::nft::FailOpenConfig::marking)). Packets without the mark are also forwarded by
//! the main table.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::netlink::{Netlink, Prefix, Protocol, Route, RouteTarget, Rule};
use crate::sysctl;
use crate::system_error::SystemError;

/// Which packets go through the TUN.
#[derive(Clone, Debug)]
pub struct TunRoutesConfig {
    /// The TUN device, which the installation brings up.
    pub tun: String,
    /// The interfaces towards the servers.
    pub wan: Vec<String>,
    /// The interfaces towards the clients.
    pub radio: Vec<String>,
    /// The clients' prefixes.
    pub clients: Vec<Prefix>,
    /// Only packets with these bits in their marks. Packets from the TUN must have them too.
    pub mark: Option<u32>,
    /// Also UDP.
    pub datagrams: bool,
}

impl TunRoutesConfig {
    /// Selects TCP, whatever the mark.
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
    /// The interfaces that the rules name.
    interfaces: Vec<String>,
    families: Vec<bool>,
}

impl TunRoutes {
    /// Installs routes and rules in the calling thread's network namespace, in place of those of an earlier process.
    /// The packet loop should already run, because packets come to the TUN from here on.
    pub fn install(config: &TunRoutesConfig) -> Result<TunRoutes, SystemError> {
        families(config).into_iter().try_for_each(check_forwarding)?;
        let routes = TunRoutes::adopt(config)?;
        routes.remove_rules()?;
        // Loose reverse-path check: packets that the gateway writes have source addresses behind other interfaces.
        // The larger of this setting and the one for all interfaces is in force, so the latter need not be changed.
        sysctl::set(&format!("net/ipv4/conf/{}/rp_filter", config.tun), 2)?;
        if config.mark.is_some() {
            // Without this, the kernel looks up the reverse path of packets from the gateway in the main table, and
            // finds another one.
            sysctl::set(&format!("net/ipv4/conf/{}/src_valid_mark", config.tun), 1)?;
        }
        routes.repair(config)?;
        Ok(routes)
    }

    /// Restores missing parts of device, routes and rules. With only some of the rules, packets of one direction
    /// would bypass the gateway.
    pub fn repair(&self, config: &TunRoutesConfig) -> Result<(), SystemError> {
        // Bringing up a device that is up would send a message to watchers, which would look again.
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

    /// Takes over the rules that another process installed. This process removes them later.
    pub fn adopt(config: &TunRoutesConfig) -> Result<TunRoutes, SystemError> {
        let mut interfaces = [&config.wan[..], &config.radio[..]].concat();
        interfaces.sort_unstable();
        interfaces.dedup();
        let netlink = Netlink::open()?;
        let table = TABLE_BASE + netlink.link(&config.tun)?.index;
        Ok(TunRoutes { netlink, table, interfaces, families: families(config) })
    }

    /// Removes the rules. From here on the main table forwards everything.
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
        // Remaining rules lead to an empty table.
        let _ = self.remove_rules();
    }
}

/// Returns the address families of the clients: IPv4, IPv6 or both.
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

/// Priority of the rules. Our choice: before the main table's, 32766.
pub const PRIORITY: u32 = 7700;
/// The device's number is added, so that each gateway of a machine has its own table. Our choice: beyond the tables
/// that have names (253 to 255).
const TABLE_BASE: u32 = 7700;
