//! Takes the gateway's place between the interfaces, and returns it to the kernel.

use std::io;
use std::os::fd::OwnedFd;

use paceline_gateway::{OVERHEARD, RADIO, WAN};
use paceline_linux::netlink::{Netlink, Prefix};
use paceline_linux::nft::{FailOpen, FailOpenConfig, Refreshed};
use paceline_linux::tun_routes::{TunRoutes, TunRoutesConfig};
use paceline_linux::{Device, EventLoop, Filter, Housekeeping, IcmpListener, PacketSocket, Side, Slice, Tun};
use paceline_wire::{Duration, Instant};

use super::super::handover::Inherited;
use super::super::place::{Place, Role};
use super::{MARK, distinct};
use crate::Options;
use crate::error::{Error, Result};

/// The gateway's state in its place, besides the devices of its event loop.
#[derive(Debug)]
pub(super) enum Joined {
    /// Between two ports of a bridge. A rule keeps the gateway's packets from the bridge.
    Bridged {
        rule: FailOpen,
        /// The bridge also forwarded the packets that arrived before this time.
        stale_before: Option<Instant>,
    },
    /// Between two interfaces that nothing else connects.
    Alone,
    /// Behind a TUN device, to which TCP and UDP of the clients are routed. The routes disappear with the device, and
    /// then the kernel forwards.
    Routed {
        /// Marks the packets that the routes select. `None` without nftables: then the routes select all packets.
        rule: Option<FailOpen>,
        routes: TunRouteState,
        mtu: u32,
    },
}

/// Routes through the TUN device. They are installed when the loop runs.
#[derive(Debug)]
pub(super) enum TunRouteState {
    Pending(TunRoutesConfig),
    Installed(TunRoutes, TunRoutesConfig),
}

/// The packets that belong to this gateway.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketScope {
    /// UDP belongs to the gateway as well.
    pub(crate) datagrams: bool,
    /// The gateway's part of the subscribers. `None` means all.
    pub(crate) slice: Option<Slice>,
}

/// Joins the interfaces, which already are as `place` requires.
pub(super) fn join(
    event_loop: &mut EventLoop,
    options: &Options,
    place: Place,
    scope: PacketScope,
    mtu: u32,
) -> Result<Joined> {
    match (place, &options.tun) {
        (Place::Bridged, _) => bridged(event_loop, options, scope),
        (Place::Alone, _) => {
            open_ports(event_loop, options, [Filter::All, Filter::All])?;
            Ok(Joined::Alone)
        }
        (Place::Routed, tun) => {
            routed(event_loop, tun.as_deref().unwrap_or_default(), options, scope.datagrams, mtu)
        }
    }
}

fn bridged(event_loop: &mut EventLoop, options: &Options, scope: PacketScope) -> Result<Joined> {
    let PacketScope { datagrams, slice } = scope;
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
        let socket = PacketSocket::open(name, &filter)
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
    // The TUN accepts packets of any size that the interfaces accept. An interface reports packets that are too large
    // for it.
    let mtu = mtu.min(TUN_MTU_MAX);
    netlink.set_mtu(tun, mtu).map_err(Error::system)?;
    netlink.set_queue_length(tun, TUN_QUEUE_PACKETS).map_err(Error::system)?;
    event_loop
        .add(tun_device(device, options))
        .map_err(|error| Error::io(format_args!("use the TUN device {tun}"), &error))?;
    listen_for_icmp(event_loop, options);
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
    Ok(Joined::Routed { rule, routes: TunRouteState::Pending(routes), mtu })
}

/// Takes the place of another process.
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
            listen_for_icmp(event_loop, options);
        }
        None => {
            for port in [WAN, RADIO] {
                let device = inherited.take(Role::Device).map_err(failed)?;
                let socket = PacketSocket::adopt(device);
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
            // The rule already has its addresses.
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
            let routes = TunRouteState::Installed(TunRoutes::adopt(&config).map_err(Error::system)?, config);
            Joined::Routed { rule, routes, mtu }
        }
    })
}

fn tun_device(tun: Tun, options: &Options) -> Device {
    Device::Tun { tun, clients: options.clients.clone(), wan: WAN, radio: RADIO }
}

/// A routed gateway gets copies of the messages about a smaller path MTU, because these messages do not pass through
/// it. The copies are of messages that the host forwards or sends, taken at the interface by which they leave. A
/// successor opens its own sockets for them.
fn listen_for_icmp(event_loop: &mut EventLoop, options: &Options) {
    if options.forward_only {
        return;
    }
    let (Some(wan), Some(radio)) = (&options.wan, &options.radio) else { return };
    for name in distinct(wan, radio) {
        let added = IcmpListener::open(name)
            .and_then(|from| event_loop.add(Device::IcmpListener { port: OVERHEARD, from }));
        if let Err(error) = added {
            tracing::warn!(
                "cannot listen on {name} ({error}): a split flow stalls when a packet is too big for its path"
            );
        }
    }
}

/// Returns the interfaces of a routed gateway, and its clients.
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

    /// Keeps the packets from the kernel for another `timeout`, or for the usual time. Discards packets that the
    /// kernel forwarded meanwhile.
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
            // Packets in the TUN device after a lapse have not gone elsewhere, so they are kept.
            Joined::Routed { routes, .. } => {
                if let TunRouteState::Pending(config) = routes {
                    let laid = TunRoutes::install(config).map_err(io::Error::other)?;
                    *routes = TunRouteState::Installed(laid, config.clone());
                }
            }
            Joined::Alone => {}
        }
        Ok(())
    }

    /// Restores missing parts of device and routes, for interfaces of this MTU.
    pub(super) fn repair(&mut self, interfaces_mtu: u32) -> io::Result<()> {
        let Joined::Routed { routes: TunRouteState::Installed(routes, config), mtu, .. } = self else {
            return Ok(());
        };
        let wanted = interfaces_mtu.min(TUN_MTU_MAX);
        if *mtu != wanted {
            let set = Netlink::open().and_then(|netlink| netlink.set_mtu(&config.tun, wanted));
            set.map_err(io::Error::other)?;
            *mtu = wanted;
        }
        routes.repair(config).map_err(io::Error::other)
    }

    /// Keeps the kernel from forwarding for this time, in which nobody refreshes.
    pub(super) fn hold(&mut self, time: Duration) -> io::Result<()> {
        let held = self.rule().map(|rule| rule.hold(time)).transpose().map_err(io::Error::other)?;
        if let (Joined::Bridged { stale_before, .. }, Some(Refreshed::AfterLapse(until))) = (self, held) {
            *stale_before = Some(until);
        }
        Ok(())
    }

    /// Returns the netlink socket that owns the rule, and the time until which the rule is in force.
    pub(super) fn rule_descriptor(&self) -> io::Result<Option<(OwnedFd, Instant)>> {
        match self {
            Joined::Bridged { rule, .. } => rule.descriptor().map(Some),
            Joined::Routed { rule, .. } => rule.as_ref().map(FailOpen::descriptor).transpose(),
            Joined::Alone => Ok(None),
        }
    }

    /// Returns everything to the kernel.
    pub(super) fn leave(self) -> Result<()> {
        match self {
            Joined::Bridged { rule, .. } => rule.remove().map_err(Error::system),
            Joined::Routed { rule, routes, .. } => {
                if let Some(rule) = rule {
                    rule.remove().map_err(Error::system)?;
                }
                match routes {
                    TunRouteState::Installed(routes, _) => routes.remove().map_err(Error::system),
                    TunRouteState::Pending(_) => Ok(()),
                }
            }
            Joined::Alone => Ok(()),
        }
    }
}

/// Queue of the TUN device while a successor takes over. Our choice: 50 ms of 1,500-byte packets at 1 Gbit/s. Linux's
/// default is 500 packets.
const TUN_QUEUE_PACKETS: u32 = 4096;
/// The limit of the Linux TUN driver (MAX_MTU).
const TUN_MTU_MAX: u32 = 65_535;
