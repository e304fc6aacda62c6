//! Where the gateway's packets come from, and what the kernel does with them when the gateway is gone.

use std::io;

use ipnet::IpNet;
use paceline_gateway::{RADIO, WAN};
use paceline_linux::netlink::{Netlink, Prefix, Route, RouteTarget, Rule};
use paceline_linux::nft::{FailOpen, FailOpenConfig, Refreshed};
use paceline_linux::{
    Device, EventLoop, Filter, Housekeeping, PacketSocket, PacketSocketConfig, SystemError, Tun,
};
use paceline_wire::Instant;

use crate::error::{Error, Result};
use crate::run::lab::system;

/// The gateway's place in the network.
#[derive(Debug)]
pub(super) enum Attached {
    /// Between two ports of a bridge: a rule keeps from the bridge what the gateway forwards.
    Bridged(Box<Bridged>),
    /// Between two interfaces that nothing else joins.
    Alone,
    /// Behind a TUN device: routes lead through it.
    Routed(Box<Routes>),
}

#[derive(Debug)]
pub(super) struct Bridged {
    rule: FailOpen,
    /// What arrived before was forwarded by the bridge, too.
    stale_before: Option<Instant>,
}

/// Puts the gateway between two interfaces.
pub(super) fn bridged(event_loop: &mut EventLoop, wan: &str, radio: &str) -> Result<Attached> {
    let netlink = Netlink::open().map_err(system)?;
    let masters = [wan, radio].map(|name| netlink.link(name).map(|link| link.master));
    let [Ok(master_of_wan), Ok(master_of_radio)] = masters else {
        let missing = if masters[0].is_err() { wan } else { radio };
        return Err(Error::input(format!("there is no interface {missing}; `ip link` lists them")));
    };
    let own = netlink.host_addresses().map_err(system)?;
    let filter = Filter::Tcp { except_destinations: own.clone() };
    let join = |event_loop: &mut EventLoop, filter: Filter| {
        for (port, name) in [(WAN, wan), (RADIO, radio)] {
            let config = PacketSocketConfig { filter: filter.clone(), ..PacketSocketConfig::default() };
            let socket = PacketSocket::open(name, &config)
                .map_err(|error| Error::io(format_args!("open interface {name}"), &error))?;
            event_loop
                .add(Device::Packet { port, socket })
                .map_err(|error| Error::io(format_args!("use interface {name}"), &error))?;
        }
        Ok::<(), Error>(())
    };
    match (master_of_wan, master_of_radio) {
        (Some(one), Some(other)) if one == other => {
            join(event_loop, filter)?;
            let config = FailOpenConfig::new(&format!("{wan}-{radio}"), &[wan, radio], own);
            let (rule, since) = FailOpen::install(&config).map_err(system)?;
            Ok(Attached::Bridged(Box::new(Bridged { rule, stale_before: Some(since) })))
        }
        (None, None) => {
            eprintln!(
                "paceline: {wan} and {radio} are in no bridge: when the gateway ends, nothing joins them; make both ports \
                 of one bridge, and it fails open"
            );
            join(event_loop, Filter::All)?;
            Ok(Attached::Alone)
        }
        _ => Err(Error::input(format!(
            "{wan} and {radio} must be ports of the same bridge, or both of none; `bridge link` shows what they are"
        ))),
    }
}

/// Puts the gateway behind a new TUN device, and lets TCP of the clients be routed through it.
pub(super) fn routed(event_loop: &mut EventLoop, name: &str, clients: &[IpNet]) -> Result<Attached> {
    let tun =
        Tun::open(name).map_err(|error| Error::io(format_args!("make the TUN device {name}"), &error))?;
    let device = Device::Tun { tun, clients: clients.to_vec(), wan: WAN, radio: RADIO };
    event_loop.add(device).map_err(|error| Error::io(format_args!("use the TUN device {name}"), &error))?;
    let routes = Routes::install(name, clients).map_err(system)?;
    Ok(Attached::Routed(Box::new(routes)))
}

impl Attached {
    /// To be called four times a second.
    pub(super) fn refresh(&mut self, housekeeping: &mut Housekeeping<'_>) -> io::Result<()> {
        if let Attached::Bridged(bridged) = self {
            if let Refreshed::AfterLapse(until) = bridged.rule.refresh().map_err(io::Error::other)? {
                bridged.stale_before = Some(until);
            }
            if let Some(until) = bridged.stale_before.take() {
                housekeeping.discard_before(until);
            }
        }
        Ok(())
    }

    /// Hands everything back to the kernel.
    pub(super) fn detach(self) -> Result<()> {
        match self {
            Attached::Bridged(bridged) => bridged.rule.remove().map_err(system),
            Attached::Alone => Ok(()),
            Attached::Routed(routes) => routes.remove().map_err(system),
        }
    }
}

/// Rules that send TCP from and to the clients to a table of its own, whose one route leads to the TUN. With the device goes
/// the route, and a rule that leads to an empty table means nothing: the kernel looks on and forwards.
#[derive(Debug)]
pub(super) struct Routes {
    netlink: Netlink,
}

impl Routes {
    fn install(tun: &str, clients: &[IpNet]) -> std::result::Result<Routes, SystemError> {
        let netlink = Netlink::open()?;
        let interfaces = netlink.links()?;
        netlink.set_up(tun, true)?;
        // Enough for what a burst brings while the process is off the processor.
        netlink.set_queue_length(tun, TUN_QUEUE_PACKETS)?;
        let routes = Routes { netlink };
        routes.remove_rules()?;
        for ipv6 in [false, true] {
            let everything = Prefix::new(if ipv6 { IPV6_ANY } else { IPV4_ANY }, 0);
            let mut route = Route::new(everything, RouteTarget::Interface(tun.to_owned()));
            route.table = Some(TABLE);
            routes.netlink.set_route(&route)?;
        }
        for interface in interfaces.iter().filter(|link| link.name != "lo" && link.name != tun) {
            for client in clients {
                let prefix = Prefix::new(client.network(), client.prefix_len());
                routes.add(&interface.name, None, Some(prefix))?;
                routes.add(&interface.name, Some(prefix), None)?;
            }
        }
        Ok(routes)
    }

    fn add(
        &self,
        interface: &str,
        source: Option<Prefix>,
        destination: Option<Prefix>,
    ) -> std::result::Result<(), SystemError> {
        let ipv6 = source.or(destination).is_some_and(|prefix| prefix.address.is_ipv6());
        self.netlink.add_rule(&Rule {
            ipv6,
            priority: PRIORITY,
            input_interface: interface.to_owned(),
            tcp_only: true,
            source,
            destination,
            table: TABLE,
        })
    }

    fn remove(self) -> std::result::Result<(), SystemError> {
        self.remove_rules()
    }

    fn remove_rules(&self) -> std::result::Result<(), SystemError> {
        for ipv6 in [false, true] {
            self.netlink.delete_rules(ipv6, PRIORITY, TABLE)?;
        }
        Ok(())
    }
}

const IPV4_ANY: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
const IPV6_ANY: std::net::IpAddr = std::net::IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED);
/// Our choice: numbers that no distribution uses.
const TABLE: u32 = 7_700;
const PRIORITY: u32 = 7_700;
const TUN_QUEUE_PACKETS: u32 = 4_000;
