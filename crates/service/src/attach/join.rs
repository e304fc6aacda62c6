//! How the gateway takes its place between the interfaces, and gives it back to the kernel.

use std::io;
use std::os::fd::OwnedFd;

use paceline_gateway::{OVERHEARD, RADIO, WAN};
use paceline_linux::netlink::{Netlink, Prefix};
use paceline_linux::nft::{FailOpen, FailOpenConfig, Refreshed};
use paceline_linux::tun_routes::{TunRoutes, TunRoutesConfig};
use paceline_linux::{
    Device, EventLoop, Filter, Housekeeping, Overheard, PacketSocket, PacketSocketConfig, Side, Slice, Tun,
};
use paceline_wire::{Duration, Instant};

use super::super::handover::Inherited;
use super::super::place::{Place, Role};
use super::{MARK, distinct};
use crate::Options;
use crate::error::{Error, Result};

/// What a gateway has in its place besides the devices of its event loop.
#[derive(Debug)]
pub(super) enum Joined {
    /// Between two ports of a bridge: a rule keeps from the bridge what the gateway forwards.
    Bridged {
        rule: FailOpen,
        /// What arrived before was forwarded by the bridge, too.
        stale_before: Option<Instant>,
    },
    /// Between two interfaces that nothing else joins.
    Alone,
    /// Behind a TUN device, to which TCP and UDP of the clients are routed. With the device go the routes, and the kernel forwards.
    Routed {
        /// Marks the packets that the routes take; `None` where there is no nftables, and the routes take all.
        rule: Option<FailOpen>,
        routes: Routes,
        mtu: u32,
    },
}

/// The routes are laid when the loop runs.
#[derive(Debug)]
pub(super) enum Routes {
    Waiting(TunRoutesConfig),
    Laid(TunRoutes, TunRoutesConfig),
}

/// Which packets are this gateway's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Which {
    /// UDP passes it as well.
    pub(crate) datagrams: bool,
    /// Its part of the subscribers, if not all.
    pub(crate) slice: Option<Slice>,
}

/// Joins the interfaces, which are as `place` needs them.
pub(super) fn join(
    event_loop: &mut EventLoop,
    options: &Options,
    place: Place,
    which: Which,
    mtu: u32,
) -> Result<Joined> {
    match (place, &options.tun) {
        (Place::Bridged, _) => bridged(event_loop, options, which),
        (Place::Alone, _) => {
            open_ports(event_loop, options, [Filter::All, Filter::All])?;
            Ok(Joined::Alone)
        }
        (Place::Routed, tun) => {
            routed(event_loop, tun.as_deref().unwrap_or_default(), options, which.datagrams, mtu)
        }
    }
}

fn bridged(event_loop: &mut EventLoop, options: &Options, which: Which) -> Result<Joined> {
    let Which { datagrams, slice } = which;
    let (wan, radio) = options.interfaces()?;
    let own = Netlink::open().and_then(|netlink| netlink.host_addresses()).map_err(Error::system)?;
    let filters = [Side::Destination, Side::Source].map(|side| Filter::Tcp {
        except_destinations: own.clone(),
        datagrams,
        slice: slice.map(|slice| (slice, side)),
    });
    open_ports(event_loop, options, filters)?;
    let config = FailOpenConfig::new(&options.name()?, &[wan, radio], own);
    let config = FailOpenConfig { datagrams, slice, ..config };
    let (rule, since) = FailOpen::install(&config).map_err(Error::system)?;
    Ok(Joined::Bridged { rule, stale_before: Some(since) })
}

fn open_ports(event_loop: &mut EventLoop, options: &Options, filters: [Filter; 2]) -> Result<()> {
    let (wan, radio) = options.interfaces()?;
    for ((port, name), filter) in [(WAN, wan), (RADIO, radio)].into_iter().zip(filters) {
        let config = PacketSocketConfig { filter, ..PacketSocketConfig::default() };
        let socket = PacketSocket::open(name, &config)
            .map_err(|error| Error::io(format_args!("open interface {name}"), &error))?;
        event_loop
            .add(Device::Packet { port, socket })
            .map_err(|error| Error::io(format_args!("use interface {name}"), &error))?;
    }
    Ok(())
}

/// Puts the gateway behind a new TUN device.
fn routed(
    event_loop: &mut EventLoop,
    tun: &str,
    options: &Options,
    datagrams: bool,
    mtu: u32,
) -> Result<Joined> {
    let (wan, radio) = options.interfaces()?;
    let netlink = Netlink::open().map_err(Error::system)?;
    let device =
        Tun::open(tun).map_err(|error| Error::io(format_args!("make the TUN device {tun}"), &error))?;
    // The way through it shall take whatever the interfaces take; what is too big for one of them is told there.
    let mtu = mtu.min(TUN_MTU_MAX);
    netlink.set_mtu(tun, mtu).map_err(Error::system)?;
    netlink.set_queue_length(tun, TUN_QUEUE_PACKETS).map_err(Error::system)?;
    event_loop
        .add(tun_device(device, options))
        .map_err(|error| Error::io(format_args!("use the TUN device {tun}"), &error))?;
    overhear(event_loop, options);
    let (ports, clients) = routed_places(tun, options)?;
    let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
    let config = FailOpenConfig::marking(&options.name()?, &ports, MARK);
    let config = FailOpenConfig { datagrams, ..config };
    let rule = match FailOpen::install(&config) {
        Ok((rule, _)) => Some(rule),
        Err(error) => {
            tracing::warn!(
                "{error}; if the gateway hangs, packets stop; if it ends, flows whose windows it rescales become slow"
            );
            None
        }
    };
    let routes = TunRoutesConfig::new(tun, &[wan], &[radio], clients);
    let routes = TunRoutesConfig { mark: rule.as_ref().map(|_| MARK), datagrams, ..routes };
    Ok(Joined::Routed { rule, routes: Routes::Waiting(routes), mtu })
}

/// Puts the gateway in the place of another process.
pub(super) fn adopt(
    event_loop: &mut EventLoop,
    inherited: &mut Inherited,
    options: &Options,
    datagrams: bool,
    mtu: u32,
) -> Result<Joined> {
    let (wan, radio) = options.interfaces()?;
    let failed = |error: io::Error| Error::io("take over the devices", &error);
    match &options.tun {
        Some(tun) => {
            let device = inherited.take(Role::Device).map_err(failed)?;
            let device = tun_device(Tun::adopt(device, tun), options);
            event_loop.add(device).map_err(failed)?;
            overhear(event_loop, options);
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
        socket.map(|socket| FailOpen::adopt(config, socket, fresh_until)).transpose().map_err(Error::system)
    };
    Ok(match inherited.offer.place {
        Place::Alone => Joined::Alone,
        Place::Bridged => {
            // The addresses are those that the rule has already.
            let config = FailOpenConfig::new(&options.name()?, &[wan, radio], Vec::new());
            let missing = || Error::failed("the other gateway did not hand over its nftables rule");
            let rule = rule(inherited, &config)?.ok_or_else(missing)?;
            Joined::Bridged { rule, stale_before: None }
        }
        Place::Routed => {
            let tun = options.tun.as_deref().unwrap_or_default();
            let (ports, clients) = routed_places(tun, options)?;
            let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
            let rule = rule(inherited, &FailOpenConfig::marking(&options.name()?, &ports, MARK))?;
            let config = TunRoutesConfig::new(tun, &[wan], &[radio], clients);
            let config = TunRoutesConfig { mark: rule.as_ref().map(|_| MARK), datagrams, ..config };
            let routes = Routes::Laid(TunRoutes::adopt(&config).map_err(Error::system)?, config);
            Joined::Routed { rule, routes, mtu }
        }
    })
}

fn tun_device(tun: Tun, options: &Options) -> Device {
    Device::Tun { tun, clients: options.clients.clone(), wan: WAN, radio: RADIO }
}

/// Messages of a smaller path MTU pass a routed gateway by, and reach it as copies: of those that the host forwards, and of its own, as
/// both leave by the interface towards whom they are for. What it hears is no part of what a successor needs.
fn overhear(event_loop: &mut EventLoop, options: &Options) {
    if options.forward_only {
        return;
    }
    let (Some(wan), Some(radio)) = (&options.wan, &options.radio) else { return };
    for name in distinct(wan, radio) {
        let added = Overheard::open(name)
            .and_then(|from| event_loop.add(Device::Overheard { port: OVERHEARD, from }));
        if let Err(error) = added {
            tracing::warn!(
                "cannot listen on {name} ({error}): a split flow stalls when a packet is too big for its path"
            );
        }
    }
}

/// The interfaces of a routed gateway, and its clients.
fn routed_places(tun: &str, options: &Options) -> Result<(Vec<String>, Vec<Prefix>)> {
    let (wan, radio) = options.interfaces()?;
    let mut ports: Vec<String> = distinct(wan, radio).into_iter().map(str::to_owned).collect();
    ports.push(tun.to_owned());
    let clients = options.clients.iter().map(|client| Prefix::new(client.network(), client.prefix_len()));
    Ok((ports, clients.collect()))
}

impl Joined {
    fn rule(&mut self) -> Option<&mut FailOpen> {
        match self {
            Joined::Bridged { rule, .. } => Some(rule),
            Joined::Routed { rule, .. } => rule.as_mut(),
            Joined::Alone => None,
        }
    }

    /// Keeps the packets from the kernel for another `timeout`, or the usual time. What the kernel has forwarded meanwhile is discarded.
    pub(super) fn refresh(
        &mut self,
        housekeeping: &mut Housekeeping<'_>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let renew = |rule: &mut FailOpen| match timeout {
            Some(timeout) => rule.hold(timeout),
            None => rule.refresh(),
        };
        let refreshed = self.rule().map(renew).transpose().map_err(io::Error::other)?;
        match self {
            Joined::Bridged { stale_before, .. } => {
                if let Some(Refreshed::AfterLapse(until)) = refreshed {
                    tracing::warn!(
                        "the gateway was stopped for so long that the kernel forwarded its packets; some split flows may end"
                    );
                    *stale_before = Some(until);
                }
                if let Some(until) = stale_before.take() {
                    housekeeping.discard_before(until);
                }
            }
            // What the device holds after a lapse has gone nowhere else.
            Joined::Routed { routes, .. } => {
                if let Routes::Waiting(config) = routes {
                    let laid = TunRoutes::install(config).map_err(io::Error::other)?;
                    *routes = Routes::Laid(laid, config.clone());
                }
            }
            Joined::Alone => {}
        }
        Ok(())
    }

    /// Puts back what somebody has taken away of device and routes, for interfaces of this MTU.
    pub(super) fn repair(&mut self, interfaces_mtu: u32) -> io::Result<()> {
        let Joined::Routed { routes: Routes::Laid(routes, config), mtu, .. } = self else { return Ok(()) };
        let wanted = interfaces_mtu.min(TUN_MTU_MAX);
        if *mtu != wanted {
            let set = Netlink::open().and_then(|netlink| netlink.set_mtu(&config.tun, wanted));
            set.map_err(io::Error::other)?;
            *mtu = wanted;
        }
        routes.repair(config).map_err(io::Error::other)
    }

    /// Nobody will refresh for so long, and the kernel is not to forward yet.
    pub(super) fn hold(&mut self, time: Duration) -> io::Result<()> {
        let held = self.rule().map(|rule| rule.hold(time)).transpose().map_err(io::Error::other)?;
        if let (Joined::Bridged { stale_before, .. }, Some(Refreshed::AfterLapse(until))) = (self, held) {
            *stale_before = Some(until);
        }
        Ok(())
    }

    /// The netlink socket to which the rule belongs, and until when it is in force.
    pub(super) fn rule_descriptor(&self) -> io::Result<Option<(OwnedFd, Instant)>> {
        match self {
            Joined::Bridged { rule, .. } => rule.descriptor().map(Some),
            Joined::Routed { rule, .. } => rule.as_ref().map(FailOpen::descriptor).transpose(),
            Joined::Alone => Ok(None),
        }
    }

    /// Hands everything back to the kernel.
    pub(super) fn leave(self) -> Result<()> {
        match self {
            Joined::Bridged { rule, .. } => rule.remove().map_err(Error::system),
            Joined::Routed { rule, routes, .. } => {
                if let Some(rule) = rule {
                    rule.remove().map_err(Error::system)?;
                }
                match routes {
                    Routes::Laid(routes, _) => routes.remove().map_err(Error::system),
                    Routes::Waiting(_) => Ok(()),
                }
            }
            Joined::Alone => Ok(()),
        }
    }
}

/// What waits in the device while a successor takes over. Our choice: 50 ms of 1,500-byte packets at 1 Gbit/s; Linux has 500 packets.
const TUN_QUEUE_PACKETS: u32 = 4096;
/// Linux drivers/net/tun.c: MAX_MTU.
const TUN_MTU_MAX: u32 = 65_535;
