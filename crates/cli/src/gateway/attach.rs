//! Where the gateway's packets come from, and what the kernel does with them when the gateway is gone.

use std::io;
use std::os::fd::OwnedFd;

use paceline_gateway::{OVERHEARD, RADIO, WAN};
use paceline_linux::netlink::{Netlink, Prefix};
use paceline_linux::nft::{FailOpen, FailOpenConfig, Refreshed, RescaleConfig};
use paceline_linux::tun_routes::{TunRoutes, TunRoutesConfig};
use paceline_linux::{
    Device, EventLoop, Filter, Housekeeping, Overheard, PacketSocket, PacketSocketConfig, Side, Slice, Tun,
};
use paceline_wire::{Duration, Instant};

use super::handover::{Inherited, Place, Role};
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
    /// Behind a TUN device, to which TCP and UDP of the clients are routed. With the device go the routes, and the kernel forwards.
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
    args: &GatewayArgs,
    datagrams: bool,
    slice: Option<Slice>,
) -> Result<Attached> {
    let (wan, radio) = args.interfaces()?;
    let netlink = Netlink::open().map_err(system)?;
    let masters = [wan, radio].map(|name| netlink.link(name).map(|link| link.master));
    let [Ok(master_of_wan), Ok(master_of_radio)] = masters else {
        let missing = if masters[0].is_err() { wan } else { radio };
        return Err(no_interface(missing));
    };
    let own = netlink.host_addresses().map_err(system)?;
    let filter = |side| Filter::Tcp {
        except_destinations: own.clone(),
        datagrams,
        slice: slice.map(|slice| (slice, side)),
    };
    let join = |event_loop: &mut EventLoop, filters: [Filter; 2]| {
        for ((port, name), filter) in [(WAN, wan), (RADIO, radio)].into_iter().zip(filters) {
            let config = PacketSocketConfig { filter, ..PacketSocketConfig::default() };
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
            join(event_loop, [filter(Side::Destination), filter(Side::Source)])?;
            let config = FailOpenConfig::new(&args.name()?, &[wan, radio], own);
            let config = FailOpenConfig { datagrams, slice, ..config };
            let (rule, since) = FailOpen::install(&config).map_err(system)?;
            Ok(Attached::Bridged(Box::new(Bridged { rule, stale_before: Some(since) })))
        }
        (None, None) if slice.is_some() => {
            Err(Error::input(format!("several workers need {wan} and {radio} to be ports of one bridge")))
        }
        (None, None) => {
            tracing::warn!(
                "{wan} and {radio} are in no bridge: when the gateway ends, nothing joins them; make both ports of one \
                 bridge, and it fails open"
            );
            join(event_loop, [Filter::All, Filter::All])?;
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
    let mut mtu = 0;
    for name in distinct(wan, radio) {
        mtu = netlink.link(name).map_err(|_| no_interface(name))?.mtu.max(mtu);
    }
    let device =
        Tun::open(tun).map_err(|error| Error::io(format_args!("make the TUN device {tun}"), &error))?;
    // The way through it shall take whatever the interfaces take; what is too big for one of them is told there.
    netlink.set_mtu(tun, mtu.min(TUN_MTU_MAX)).map_err(system)?;
    netlink.set_queue_length(tun, TUN_QUEUE_PACKETS).map_err(system)?;
    event_loop
        .add(tun_device(device, args))
        .map_err(|error| Error::io(format_args!("use the TUN device {tun}"), &error))?;
    overhear(event_loop, args);
    let (ports, clients) = routed_places(tun, args)?;
    let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
    let config = FailOpenConfig::marking(&args.name()?, &ports, MARK);
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
    let routes = TunRoutesConfig { mark: rule.as_ref().map(|_| MARK), datagrams, ..routes };
    let routes = Routes::Waiting(routes);
    Ok(Attached::Routed(Box::new(Routed { rule, routes })))
}

/// Puts the gateway in the place of another process.
pub(super) fn adopted(
    event_loop: &mut EventLoop,
    inherited: &mut Inherited,
    args: &GatewayArgs,
) -> Result<Attached> {
    let (wan, radio) = args.interfaces()?;
    let failed = |error: io::Error| Error::io("take over the devices", &error);
    match &args.tun {
        Some(tun) => {
            let device = inherited.take(Role::Device).map_err(failed)?;
            let device = tun_device(Tun::adopt(device, tun), args);
            event_loop.add(device).map_err(failed)?;
            overhear(event_loop, args);
        }
        None => {
            for port in [WAN, RADIO] {
                let device = inherited.take(Role::Device).map_err(failed)?;
                let socket = PacketSocket::adopt(device, &PacketSocketConfig::default());
                event_loop.add(Device::Packet { port, socket }).map_err(failed)?;
            }
        }
    }
    let rule = |inherited: &mut Inherited, config: &FailOpenConfig| {
        let fresh_until = Instant::from_nanos(inherited.offer.fresh_until_ns);
        let socket = inherited.take(Role::Rule).ok();
        socket.map(|socket| FailOpen::adopt(config, socket, fresh_until)).transpose().map_err(system)
    };
    Ok(match inherited.offer.place {
        Place::Alone => Attached::Alone,
        Place::Bridged => {
            // The addresses are those that the rule has already.
            let config = FailOpenConfig::new(&args.name()?, &[wan, radio], Vec::new());
            let missing = || Error::failed("the other gateway has kept its rule");
            let rule = rule(inherited, &config)?.ok_or_else(missing)?;
            Attached::Bridged(Box::new(Bridged { rule, stale_before: None }))
        }
        Place::Routed => {
            let tun = args.tun.as_deref().unwrap_or_default();
            let (ports, clients) = routed_places(tun, args)?;
            let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
            let rule = rule(inherited, &FailOpenConfig::marking(&args.name()?, &ports, MARK))?;
            let routes = TunRoutesConfig::new(tun, &[wan], &[radio], clients);
            let routes = TunRoutesConfig { mark: rule.as_ref().map(|_| MARK), ..routes };
            let routes = Routes::Laid(TunRoutes::adopt(&routes).map_err(system)?);
            Attached::Routed(Box::new(Routed { rule, routes }))
        }
    })
}

fn tun_device(tun: Tun, args: &GatewayArgs) -> Device {
    Device::Tun { tun, clients: args.clients.clone(), wan: WAN, radio: RADIO }
}

/// Messages of a smaller path MTU pass a routed gateway by, and reach it as copies: of those that the host forwards, and of its own, as
/// both leave by the interface towards whom they are for. What it hears is no part of what a successor needs.
fn overhear(event_loop: &mut EventLoop, args: &GatewayArgs) {
    if args.forward_only {
        return;
    }
    let (Some(wan), Some(radio)) = (&args.wan, &args.radio) else { return };
    for name in distinct(wan, radio) {
        let added = Overheard::open(name)
            .and_then(|from| event_loop.add(Device::Overheard { port: OVERHEARD, from }));
        if let Err(error) = added {
            tracing::warn!(
                "cannot listen at {name} ({error}): split flows stand still where a packet is too big for its path"
            );
        }
    }
}

/// The interfaces of a routed gateway, and its clients.
fn routed_places(tun: &str, args: &GatewayArgs) -> Result<(Vec<String>, Vec<Prefix>)> {
    let (wan, radio) = args.interfaces()?;
    let mut ports: Vec<String> = distinct(wan, radio).into_iter().map(str::to_owned).collect();
    ports.push(tun.to_owned());
    let clients = args.clients.iter().map(|client| Prefix::new(client.network(), client.prefix_len()));
    Ok((ports, clients.collect()))
}

fn no_interface(name: &str) -> Error {
    Error::input(format!("there is no interface {name}; `ip link` lists them"))
}

/// One name, where a router has its servers and clients behind the same interface.
fn distinct<'a>(wan: &'a str, radio: &'a str) -> Vec<&'a str> {
    if wan == radio { vec![wan] } else { vec![wan, radio] }
}

impl Attached {
    /// To be called eight times a second. With flows that cannot go on without the gateway the kernel is given their packets later.
    pub(super) fn refresh(&mut self, housekeeping: &mut Housekeeping<'_>, is_needed: bool) -> io::Result<()> {
        let renew = |rule: &mut FailOpen| match is_needed {
            true => rule.hold(NEEDED),
            false => rule.refresh(),
        };
        if let Attached::Routed(routed) = self {
            // What the device holds after a lapse has gone nowhere else.
            routed.rule.as_mut().map(renew).transpose().map_err(io::Error::other)?;
            if let Routes::Waiting(config) = &routed.routes {
                routed.routes = Routes::Laid(TunRoutes::install(config).map_err(io::Error::other)?);
            }
        }
        if let Attached::Bridged(bridged) = self {
            if let Refreshed::AfterLapse(until) = renew(&mut bridged.rule).map_err(io::Error::other)? {
                tracing::warn!(
                    "stood still for so long that the kernel forwarded; split flows whose packets it forwarded may end"
                );
                bridged.stale_before = Some(until);
            }
            if let Some(until) = bridged.stale_before.take() {
                housekeeping.discard_before(until);
            }
        }
        Ok(())
    }

    /// Nobody will refresh for so long, and the kernel is not to forward yet.
    pub(super) fn hold(&mut self, time: Duration) -> io::Result<()> {
        let rule = match self {
            Attached::Bridged(bridged) => Some(&mut bridged.rule),
            Attached::Routed(routed) => routed.rule.as_mut(),
            Attached::Alone => None,
        };
        let held = rule.map(|rule| rule.hold(time)).transpose().map_err(io::Error::other)?;
        if let (Attached::Bridged(bridged), Some(Refreshed::AfterLapse(until))) = (self, held) {
            bridged.stale_before = Some(until);
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
        Ok(Some(RescaleConfig::new(&args.name()?, &distinct(wan, radio), mark)))
    }

    /// What a successor has to know and to have, besides the devices.
    pub(super) fn place(&self) -> io::Result<(Place, Option<(OwnedFd, Instant)>)> {
        Ok(match self {
            Attached::Bridged(bridged) => (Place::Bridged, Some(bridged.rule.descriptor()?)),
            Attached::Alone => (Place::Alone, None),
            Attached::Routed(routed) => {
                (Place::Routed, routed.rule.as_ref().map(FailOpen::descriptor).transpose()?)
            }
        })
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

/// How long the kernel leaves split flows alone when the gateway stands still. It cannot carry them on: an end that hears of the other
/// resets the flow, or takes for delivered what the gateway still waits for. Our choice: longer than a busy machine stands still, and
/// no longer than what is asked of a gateway that has died.
const NEEDED: Duration = Duration::from_secs(2);
/// What waits in the device while a successor takes over. Our choice: 50 ms of 1,500-byte packets at 1 Gbit/s; Linux has 500 packets.
const TUN_QUEUE_PACKETS: u32 = 4096;
/// Linux drivers/net/tun.c: MAX_MTU.
const TUN_MTU_MAX: u32 = 65_535;
/// Set in packets that go through the TUN device. Our choice: a bit that common programs leave alone.
const MARK: u32 = 0x0800_0000;
