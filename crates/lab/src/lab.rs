//! The lab: server, gateway and client in network namespaces, and all link ends in a fourth.
//!
//! ```text
//! server s0 -- n0 net n1 -- g0 gateway g1 -- n2 net n3 -- c0 client
//!                wired                          radio
//! ```
//! In `net` the live emulator joins n0 with n1, and n2 with n3. Without links, hosts are connected directly to the
//! gateway's ports, without any limit:
//!
//! ```text
//! server s0 -- g0 gateway g1 -- c0 client
//! ```
//! Everything is removed with the [`Lab`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netns::Netns;
use paceline_linux::SystemError;
use paceline_linux::netlink::{Netlink, Prefix, Route, RouteTarget};

/// How packets cross the gateway's namespace when none of our processes handles them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GatewayKind {
    /// A bridge `br0` with the ports g0 and g1.
    #[default]
    Bridged,
    /// IP forwarding between g0 and g1.
    Routed,
}

/// Configuration of a lab.
#[derive(Clone, Debug)]
pub struct LabConfig {
    /// How the gateway forwards.
    pub gateway: GatewayKind,
    /// Links between hosts and gateway exist.
    pub links: bool,
    /// Number of client addresses, all on c0: 1 to 250.
    pub clients: u8,
    /// The largest IP packet on all interfaces, in bytes.
    pub mtu: u32,
}

impl Default for LabConfig {
    fn default() -> Self {
        LabConfig { gateway: GatewayKind::Bridged, links: true, clients: 1, mtu: 1500 }
    }
}

/// Four joined namespaces.
#[derive(Debug)]
pub struct Lab {
    /// Namespace of the TCP servers; interface s0.
    pub server: Netns,
    /// Namespace of the link ends n0 and n1 (wired), n2 and n3 (radio), without addresses or IP. Empty without links.
    pub net: Netns,
    /// Namespace of the gateway; interfaces g0 (towards the servers) and g1 (towards the clients).
    pub gateway: Netns,
    /// Namespace of the TCP clients; interface c0.
    pub client: Netns,
    config: LabConfig,
}

impl Lab {
    /// Builds the namespaces. First removes those that a killed process left behind.
    pub fn build(config: LabConfig) -> Result<Lab, SystemError> {
        crate::netns::sweep();
        let lab = Lab {
            server: Netns::create("server")?,
            net: Netns::create("net")?,
            gateway: Netns::create("gateway")?,
            client: Netns::create("client")?,
            config,
        };
        lab.quieten()?;
        lab.connect()?;
        match lab.config.gateway {
            GatewayKind::Bridged => lab.bridge_gateway()?,
            GatewayKind::Routed => lab.route_gateway()?,
        }
        lab.bring_up()?;
        lab.address_hosts()?;
        lab.fix_neighbours()?;
        Ok(lab)
    }

    /// Returns the server's IPv4 or IPv6 address.
    pub fn server_address(&self, ipv6: bool) -> IpAddr {
        host(ipv6, Side::Server, 1)
    }

    /// Returns the address of client `number`, counted from 0.
    pub fn client_address(&self, ipv6: bool, number: u8) -> IpAddr {
        host(ipv6, Side::Client, number.saturating_add(1))
    }

    /// Returns the prefix of all client addresses.
    pub fn client_prefix(&self, ipv6: bool) -> Prefix {
        Prefix::new(host(ipv6, Side::Client, 0), if ipv6 { 64 } else { 24 })
    }

    /// Joins the link ends with kernel bridges in place of an emulator. These links have no delay and no limit.
    pub fn join_links(&self) -> Result<(), SystemError> {
        let netlink = self.net.netlink()?;
        for (bridge, ports) in [("wired", ["n0", "n1"]), ("radio", ["n2", "n3"])] {
            netlink.add_bridge(bridge)?;
            for port in ports {
                netlink.set_master(port, Some(bridge))?;
            }
            netlink.set_up(bridge, true)?;
        }
        netlink.wait_until_ready(&["n0", "n1", "n2", "n3", "wired", "radio"])
    }

    /// Sets the minimum retransmission timeout, in milliseconds, of the server's connections with clients.
    pub fn set_server_rto_min(&self, ms: u32) -> Result<(), SystemError> {
        let netlink = self.server.netlink()?;
        for ipv6 in [false, true] {
            let target = match self.config.gateway {
                GatewayKind::Bridged => RouteTarget::Interface("s0".to_owned()),
                GatewayKind::Routed => RouteTarget::Via(host(ipv6, Side::Server, ROUTER)),
            };
            let route = Route { rto_min_ms: Some(ms), ..Route::new(self.client_prefix(ipv6), target) };
            netlink.set_route(&route)?;
        }
        Ok(())
    }

    fn quieten(&self) -> Result<(), SystemError> {
        let silent = [("net.ipv6.conf.all.disable_ipv6", "1"), ("net.ipv6.conf.default.disable_ipv6", "1")];
        self.net.set_sysctls(&silent)?;
        if self.config.gateway == GatewayKind::Bridged {
            self.gateway.set_sysctls(&silent)?;
        }
        for host in [&self.server, &self.client] {
            host.set_sysctls(&[
                ("net.ipv6.conf.default.accept_ra", "0"),
                ("net.ipv6.conf.default.router_solicitations", "0"),
                // A run must not inherit what an earlier run learnt about the path.
                ("net.ipv4.tcp_no_metrics_save", "1"),
            ])?;
        }
        Ok(())
    }

    fn connect(&self) -> Result<(), SystemError> {
        if !self.config.links {
            let gateway = self.gateway.netlink()?;
            gateway.add_veth("g0", "s0", &self.server)?;
            return gateway.add_veth("g1", "c0", &self.client);
        }
        let net = self.net.netlink()?;
        net.add_veth("n0", "s0", &self.server)?;
        net.add_veth("n1", "g0", &self.gateway)?;
        net.add_veth("n2", "g1", &self.gateway)?;
        net.add_veth("n3", "c0", &self.client)
    }

    fn bridge_gateway(&self) -> Result<(), SystemError> {
        let netlink = self.gateway.netlink()?;
        netlink.add_bridge("br0")?;
        netlink.set_mtu("br0", self.config.mtu)?;
        netlink.set_master("g0", Some("br0"))?;
        netlink.set_master("g1", Some("br0"))?;
        netlink.set_up("br0", true)
    }

    fn route_gateway(&self) -> Result<(), SystemError> {
        self.gateway.set_sysctls(&[
            ("net.ipv4.ip_forward", "1"),
            ("net.ipv6.conf.all.forwarding", "1"),
            ("net.ipv4.conf.all.send_redirects", "0"),
        ])
    }

    fn bring_up(&self) -> Result<(), SystemError> {
        let ends = [
            (self.server.netlink()?, &["s0"][..]),
            (self.net.netlink()?, if self.config.links { &LINK_ENDS } else { &[] }),
            (self.gateway.netlink()?, &["g0", "g1"]),
            (self.client.netlink()?, &["c0"]),
        ];
        for (netlink, interfaces) in &ends {
            for interface in *interfaces {
                netlink.set_mtu(interface, self.config.mtu)?;
                netlink.set_up(interface, true)?;
            }
        }
        ends.iter().try_for_each(|(netlink, interfaces)| netlink.wait_until_ready(interfaces))?;
        match self.config.gateway {
            GatewayKind::Bridged => self.gateway.netlink()?.wait_until_ready(&["br0"]),
            GatewayKind::Routed => Ok(()),
        }
    }

    fn address_hosts(&self) -> Result<(), SystemError> {
        let (server, client) = (self.server.netlink()?, self.client.netlink()?);
        let gateway = self.gateway.netlink()?;
        for ipv6 in [false, true] {
            let length = self.on_link_length(ipv6);
            server.add_address("s0", Prefix::new(self.server_address(ipv6), length))?;
            for number in 0..self.config.clients {
                client.add_address("c0", Prefix::new(self.client_address(ipv6, number), length))?;
            }
            if self.config.gateway == GatewayKind::Routed {
                let default = Prefix::new(unspecified(ipv6), 0);
                for (side, interface, netlink) in
                    [(Side::Server, "g0", &server), (Side::Client, "g1", &client)]
                {
                    let router = host(ipv6, side, ROUTER);
                    gateway.add_address(interface, Prefix::new(router, length))?;
                    netlink.set_route(&Route::new(default, RouteTarget::Via(router)))?;
                }
            }
        }
        Ok(())
    }

    /// Prefix length of the hosts' networks. In a bridged lab servers and clients share one network, so that
    /// addresses are the same in both kinds.
    fn on_link_length(&self, ipv6: bool) -> u8 {
        match (self.config.gateway, ipv6) {
            (GatewayKind::Bridged, false) => 16,
            (GatewayKind::Bridged, true) => 48,
            (GatewayKind::Routed, false) => 24,
            (GatewayKind::Routed, true) => 64,
        }
    }

    fn fix_neighbours(&self) -> Result<(), SystemError> {
        let (server, client) = (self.server.netlink()?, self.client.netlink()?);
        let gateway = self.gateway.netlink()?;
        let (server_mac, client_mac) = (server.link("s0")?.mac, client.link("c0")?.mac);
        let fix_clients = |netlink: &Netlink, interface, ipv6| {
            (0..self.config.clients).try_for_each(|number| {
                netlink.add_neighbour(interface, self.client_address(ipv6, number), &client_mac)
            })
        };
        for ipv6 in [false, true] {
            let server_address = self.server_address(ipv6);
            match self.config.gateway {
                GatewayKind::Bridged => {
                    fix_clients(&server, "s0", ipv6)?;
                    client.add_neighbour("c0", server_address, &server_mac)?;
                }
                GatewayKind::Routed => {
                    fix_clients(&gateway, "g1", ipv6)?;
                    gateway.add_neighbour("g0", server_address, &server_mac)?;
                    server.add_neighbour("s0", host(ipv6, Side::Server, ROUTER), &gateway.link("g0")?.mac)?;
                    client.add_neighbour("c0", host(ipv6, Side::Client, ROUTER), &gateway.link("g1")?.mac)?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Side {
    Server = 1,
    Client = 2,
}

fn host(ipv6: bool, side: Side, number: u8) -> IpAddr {
    if ipv6 {
        Ipv6Addr::new(0xfd77, 0, 0, side as u16, 0, 0, 0, u16::from(number)).into()
    } else {
        Ipv4Addr::new(10, 77, side as u8, number).into()
    }
}

fn unspecified(ipv6: bool) -> IpAddr {
    if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// Link ends in the order of the emulator's ports.
pub(crate) const LINK_ENDS: [&str; 4] = ["n0", "n1", "n2", "n3"];
/// The host number of the gateway's own addresses in a routed lab.
const ROUTER: u8 = 254;
