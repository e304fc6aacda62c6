//! Where the gateway's packets come from, and what the kernel does with them when the gateway is gone.

use std::io;

use paceline_gateway::{RADIO, WAN};
use paceline_linux::netlink::{Netlink, Prefix};
use paceline_linux::nft::{FailOpen, FailOpenConfig, Refreshed, RescaleConfig};
use paceline_linux::tun_routes::{TunRoutes, TunRoutesConfig};
use paceline_linux::{Device, EventLoop, Filter, Housekeeping, PacketSocket, PacketSocketConfig, Tun};
use paceline_wire::Instant;

use crate::args::GatewayArgs;
use crate::error::{Error, Result};
use crate::run::lab::system;

/// The gateway's place in the network.
#[derive(Debug)]
pub(super) enum Attached {
    /// Between two ports of a bridge: a rule keeps from the bridge what the gateway forwards.
    Bridged(Box<Bridged>),
    /// Between two interfaces that nothing else joins.
    Alone,
    /// Behind a TUN device, to which TCP of the clients is routed. With the device go the routes, and the kernel forwards.
    Routed(Box<Routed>),
}

#[derive(Debug)]
pub(super) struct Routed {
    /// Marks the packets that the routes take; `None` where there is no nftables, and the routes take all.
    rule: Option<FailOpen>,
    routes: Routes,
}

/// The routes are laid when the loop runs.
#[derive(Debug)]
enum Routes {
    Waiting(TunRoutesConfig),
    Laid(TunRoutes),
}

#[derive(Debug)]
pub(super) struct Bridged {
    rule: FailOpen,
    /// What arrived before was forwarded by the bridge, too.
    stale_before: Option<Instant>,
}

/// Puts the gateway between two interfaces.
pub(super) fn bridged(
    event_loop: &mut EventLoop,
    wan: &str,
    radio: &str,
    datagrams: bool,
) -> Result<Attached> {
    let netlink = Netlink::open().map_err(system)?;
    let masters = [wan, radio].map(|name| netlink.link(name).map(|link| link.master));
    let [Ok(master_of_wan), Ok(master_of_radio)] = masters else {
        let missing = if masters[0].is_err() { wan } else { radio };
        return Err(no_interface(missing));
    };
    let own = netlink.host_addresses().map_err(system)?;
    let filter = Filter::Tcp { except_destinations: own.clone(), datagrams };
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
            let config = FailOpenConfig::new(&name_of(wan, radio), &[wan, radio], own);
            let config = FailOpenConfig { datagrams, ..config };
            let (rule, since) = FailOpen::install(&config).map_err(system)?;
            Ok(Attached::Bridged(Box::new(Bridged { rule, stale_before: Some(since) })))
        }
        (None, None) => {
            tracing::warn!(
                "{wan} and {radio} are in no bridge: when the gateway ends, nothing joins them; make both ports of one \
                 bridge, and it fails open"
            );
            join(event_loop, Filter::All)?;
            Ok(Attached::Alone)
        }
        _ => Err(Error::input(format!(
            "{wan} and {radio} must be ports of the same bridge, or both of none; `bridge link` shows what they are"
        ))),
    }
}

/// Puts the gateway behind a new TUN device.
pub(super) fn routed(
    event_loop: &mut EventLoop,
    tun: &str,
    args: &GatewayArgs,
    datagrams: bool,
) -> Result<Attached> {
    let (wan, radio) = args.interfaces()?;
    let netlink = Netlink::open().map_err(system)?;
    if let Some(missing) = distinct(wan, radio).into_iter().find(|name| netlink.link(name).is_err()) {
        return Err(no_interface(missing));
    }
    let device =
        Tun::open(tun).map_err(|error| Error::io(format_args!("make the TUN device {tun}"), &error))?;
    let device = Device::Tun { tun: device, clients: args.clients.clone(), wan: WAN, radio: RADIO };
    event_loop.add(device).map_err(|error| Error::io(format_args!("use the TUN device {tun}"), &error))?;
    let clients =
        args.clients.iter().map(|client| Prefix::new(client.network(), client.prefix_len())).collect();
    let mut ports = distinct(wan, radio);
    ports.push(tun);
    let config = FailOpenConfig::marking(&name_of(wan, radio), &ports, MARK);
    let config = FailOpenConfig { datagrams, ..config };
    let rule = match FailOpen::install(&config) {
        Ok((rule, _)) => Some(rule),
        Err(error) => {
            tracing::warn!(
                "{error}; if the gateway hangs, it keeps packets; if it ends, flows that it rescales are slow"
            );
            None
        }
    };
    let routes = TunRoutesConfig::new(tun, &[wan], &[radio], clients);
    let routes = Routes::Waiting(TunRoutesConfig { mark: rule.as_ref().map(|_| MARK), ..routes });
    Ok(Attached::Routed(Box::new(Routed { rule, routes })))
}

fn no_interface(name: &str) -> Error {
    Error::input(format!("there is no interface {name}; `ip link` lists them"))
}

/// One name, where a router has its servers and clients behind the same interface.
fn distinct<'a>(wan: &'a str, radio: &'a str) -> Vec<&'a str> {
    if wan == radio { vec![wan] } else { vec![wan, radio] }
}

/// What rules and tables of the gateway between these interfaces are called.
fn name_of(wan: &str, radio: &str) -> String {
    format!("{wan}-{radio}")
}

impl Attached {
    /// To be called eight times a second.
    pub(super) fn refresh(&mut self, housekeeping: &mut Housekeeping<'_>) -> io::Result<()> {
        if let Attached::Routed(routed) = self {
            // What the device holds after a lapse has gone nowhere else.
            routed.rule.as_mut().map(FailOpen::refresh).transpose().map_err(io::Error::other)?;
            if let Routes::Waiting(config) = &routed.routes {
                routed.routes = Routes::Laid(TunRoutes::install(config).map_err(io::Error::other)?);
            }
        }
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

    /// How windows are to be rescaled in packets that do not pass the gateway, if they can pass elsewhere.
    pub(super) fn rescale_config(&self, args: &GatewayArgs) -> Result<Option<RescaleConfig>> {
        let mark = match self {
            Attached::Bridged(_) => None,
            Attached::Routed(routed) if routed.rule.is_some() => Some(MARK),
            Attached::Routed(_) | Attached::Alone => return Ok(None),
        };
        let (wan, radio) = args.interfaces()?;
        Ok(Some(RescaleConfig::new(&name_of(wan, radio), &distinct(wan, radio), mark)))
    }

    /// Hands everything back to the kernel.
    pub(super) fn detach(self) -> Result<()> {
        match self {
            Attached::Bridged(bridged) => bridged.rule.remove().map_err(system),
            Attached::Routed(routed) => {
                if let Some(rule) = routed.rule {
                    rule.remove().map_err(system)?;
                }
                match routed.routes {
                    Routes::Laid(routes) => routes.remove().map_err(system),
                    Routes::Waiting(_) => Ok(()),
                }
            }
            Attached::Alone => Ok(()),
        }
    }
}

/// Set in packets that go through the TUN device. Our choice: a bit that common programs leave alone.
const MARK: u32 = 0x0800_0000;
