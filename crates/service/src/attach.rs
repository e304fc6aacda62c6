//! The devices from which the gateway gets its packets, and what the kernel does with packets while the gateway is
//! absent.
//!
//! A gateway is in place while its interfaces are as it needs them. If an interface disappears or moves, the gateway
//! leaves at once, so that the kernel forwards. When the interfaces are back, it joins them again.

mod join;
mod links;

use std::io;
use std::os::fd::OwnedFd;

use paceline_linux::netlink::{LinkWatch, Netlink};
use paceline_linux::nft::{RescaleConfig, base_chains};
use paceline_linux::tun_routes;
use paceline_linux::{EventLoop, Housekeeping};
use paceline_wire::{Duration, Instant};

use super::handover::Inherited;
use super::place::Place;
use crate::Options;
use crate::error::{Error, Result};
use join::Joined;
pub(super) use join::PacketScope;
use links::{LinkReadiness, Links};

/// The gateway's place in the network, and whether it is in place.
#[derive(Debug)]
pub(super) struct Attached {
    options: Options,
    place: Place,
    scope: PacketScope,
    netlink: Netlink,
    links: Links,
    joined: Option<Joined>,
    /// Numbers of the joined interfaces, the TUN included.
    indices: Vec<u32>,
    absence: Option<Absence>,
    /// Time of the next look at the interfaces, even without a message.
    look_at: Option<Instant>,
}

/// Why the gateway is not in place. The kernel forwards meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absence {
    pub(super) reason: String,
    /// The interfaces are right, so something else is wrong. Another process may do better.
    pub(super) is_failure: bool,
}

/// Result of a [refresh](Attached::refresh).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refresh {
    Unchanged,
    /// The gateway has joined its interfaces again.
    Joined,
}

/// Finds out how a gateway with these options will stand between its interfaces. Creates nothing.
pub(super) fn place(options: &Options) -> Result<Place> {
    let netlink = Netlink::open().map_err(Error::system)?;
    let (wan, radio) = options.interfaces()?;
    if wan == radio && options.tun.is_none() {
        return Err(Error::input(format!(
            "--wan and --radio are both {wan}; a gateway stands between two interfaces, or behind a TUN device (--tun)"
        )));
    }
    let links = Links::look(&netlink, &distinct(wan, radio)).map_err(Error::system)?;
    if let Some(name) = links.missing() {
        return Err(Error::input(format!("there is no interface {name}; `ip link` lists them")));
    }
    refuse_others(options)?;
    match links.place() {
        _ if options.tun.is_some() => Ok(Place::Routed),
        Some(Place::Alone) if options.worker.is_some() => {
            Err(Error::input(format!("several workers need {wan} and {radio} to be ports of one bridge")))
        }
        Some(place) => Ok(place),
        None => Err(Error::input(format!(
            "{wan} and {radio} must both be ports of one bridge, or neither of any; `bridge link` shows their bridges"
        ))),
    }
}

/// Refuses to start beside another gateway: at one interface, both would forward the same packets. A second gateway
/// of the same name fails later, when it installs its rule. Other workers of this gateway are allowed.
fn refuse_others(options: &Options) -> Result<()> {
    let (wan, radio) = options.interfaces()?;
    let own = format!("paceline-{wan}-{radio}");
    let is_own =
        |table: &str| table == own || options.worker.is_some() && table.starts_with(&format!("{own}-"));
    // Without nftables no other gateway can be found.
    let chains = base_chains().unwrap_or_default();
    let other = chains.iter().find(|chain| {
        let is_gateway = chain.table.starts_with("paceline-") && !chain.table.ends_with("-windows");
        let is_here = chain.interfaces.iter().any(|name| name == wan || name == radio);
        is_gateway && is_here && !is_own(&chain.table)
    });
    match other {
        None => Ok(()),
        Some(chain) => Err(Error::input(format!(
            "another gateway already uses {} (nftables has its table {}); stop it first",
            chain.interfaces.join(" and "),
            chain.table
        ))),
    }
}

/// Returns one name if a router has servers and clients behind the same interface.
fn distinct<'a>(wan: &'a str, radio: &'a str) -> Vec<&'a str> {
    if wan == radio { vec![wan] } else { vec![wan, radio] }
}

impl Attached {
    /// Puts the gateway into its place. With `inherited`, it takes the place of another process.
    pub(super) fn new(
        event_loop: &mut EventLoop,
        options: &Options,
        scope: PacketScope,
        inherited: Option<&mut Inherited>,
    ) -> Result<Attached> {
        let (wan, radio) = options.interfaces()?;
        let place =
            inherited.as_ref().map_or_else(|| place(options), |inherited| Ok(inherited.offer.place))?;
        let names = distinct(wan, radio).into_iter().chain(options.tun.as_deref());
        let priority = options.tun.is_some().then_some(tun_routes::PRIORITY);
        let watch = LinkWatch::open(&names.collect::<Vec<_>>(), priority).map_err(Error::system)?;
        event_loop.watch(watch).map_err(|error| Error::io("watch the interfaces", &error))?;
        let netlink = Netlink::open().map_err(Error::system)?;
        let links = Links::look(&netlink, &distinct(wan, radio)).map_err(Error::system)?;
        let mut attached = Attached {
            options: options.clone(),
            place,
            scope,
            netlink,
            links,
            joined: None,
            indices: Vec::new(),
            absence: None,
            look_at: None,
        };
        if place == Place::Alone {
            tracing::warn!(
                "{wan} and {radio} are not in a bridge: when the gateway ends, nothing forwards between them; make both ports of one \
                 bridge, and it fails open"
            );
        }
        if let Some(inherited) = inherited {
            let mtu = attached.links.mtu();
            attached.joined = Some(join::adopt(event_loop, inherited, options, scope.datagrams, mtu)?);
            attached.indices = attached.present().map_err(Error::system)?;
        } else {
            match attached.links.fit(place) {
                LinkReadiness::Ready => attached.join(event_loop)?,
                LinkReadiness::Down(reason) | LinkReadiness::Misplaced(reason) => {
                    attached.miss(reason, false)
                }
            }
        }
        Ok(attached)
    }

    /// Renews the place of the gateway. Called eight times a second, and when interfaces change. With `is_needed`,
    /// some flows cannot go on without the gateway, and the kernel gets their packets later.
    pub(super) fn refresh(
        &mut self,
        housekeeping: &mut Housekeeping<'_>,
        is_needed: bool,
    ) -> io::Result<Refresh> {
        let mut refresh = Refresh::Unchanged;
        if housekeeping.links_changed() || self.look_at.is_some_and(|time| time <= housekeeping.now) {
            self.look_at = None;
            refresh = self.look(housekeeping, is_needed);
        }
        if let Some(joined) = &mut self.joined
            && let Err(error) = joined.refresh(housekeeping, is_needed.then_some(NEEDED))
        {
            self.leave(housekeeping.event_loop());
            self.miss(error.to_string(), true);
            self.look_at = Some(housekeeping.now + RETRY_AFTER);
        }
        Ok(refresh)
    }

    /// Looks at the interfaces, and leaves or joins them accordingly.
    fn look(&mut self, housekeeping: &mut Housekeeping<'_>, is_needed: bool) -> Refresh {
        let now = housekeeping.now;
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (links, present) =
            match Links::look(&self.netlink, &names).and_then(|links| Ok((links, self.present()?))) {
                Ok(found) => found,
                Err(error) => {
                    self.miss(error.to_string(), true);
                    self.look_at = Some(now + RETRY_AFTER);
                    return Refresh::Unchanged;
                }
            };
        links.tell_changes_since(&self.links);
        self.links = links;
        let fit = self.links.fit(self.place);
        if let Some(joined) = &mut self.joined {
            // Flows that cannot go on without the gateway wait for a carrier, as they would without a gateway.
            let stays =
                matches!(fit, LinkReadiness::Ready) || is_needed && matches!(fit, LinkReadiness::Down(_));
            if stays && present == self.indices {
                self.absence = None;
                if let Err(error) = joined.repair(self.links.mtu()) {
                    tracing::warn!("{error}");
                    self.look_at = Some(now + RETRY_AFTER);
                }
                return Refresh::Unchanged;
            }
            self.leave(housekeeping.event_loop());
        }
        match fit {
            LinkReadiness::Down(reason) | LinkReadiness::Misplaced(reason) => self.miss(reason, false),
            LinkReadiness::Ready => match self.join(housekeeping.event_loop()) {
                Ok(()) => return Refresh::Joined,
                Err(error) => {
                    housekeeping.event_loop().remove_devices();
                    self.miss(error.to_string(), true);
                    self.look_at = Some(now + RETRY_AFTER);
                }
            },
        }
        Refresh::Unchanged
    }

    fn join(&mut self, event_loop: &mut EventLoop) -> Result<()> {
        self.joined = Some(join::join(event_loop, &self.options, self.place, self.scope, self.links.mtu())?);
        self.absence = None;
        self.indices = self.present().map_err(Error::system)?;
        let (wan, radio) = self.interfaces();
        tracing::info!("in place: packets between {wan} and {radio} go through the gateway");
        Ok(())
    }

    /// Removes the rule first: from then on the kernel forwards what arrives.
    fn leave(&mut self, event_loop: &mut EventLoop) {
        if let Some(Err(error)) = self.joined.take().map(Joined::leave) {
            // Most of the rest disappears with the interface, and what remains is closed here.
            tracing::debug!("{error}");
        }
        event_loop.remove_devices();
    }

    /// Logs the reason of the absence, once.
    fn miss(&mut self, reason: String, is_failure: bool) {
        let absence = Absence { reason, is_failure };
        if self.absence.as_ref() != Some(&absence) {
            let who = if self.place == Place::Alone { "nobody" } else { "the kernel" };
            tracing::warn!("not in place; {who} forwards without the gateway: {}", absence.reason);
            self.absence = Some(absence);
        }
    }

    /// Returns the numbers of the interfaces and of the TUN.
    fn present(&self) -> std::result::Result<Vec<u32>, paceline_linux::SystemError> {
        let names = self.names();
        let names = names.iter().map(String::as_str).chain(self.options.tun.as_deref()).collect::<Vec<_>>();
        Ok(Links::look(&self.netlink, &names)?.indices())
    }

    fn interfaces(&self) -> (&str, &str) {
        (self.options.wan.as_deref().unwrap_or_default(), self.options.radio.as_deref().unwrap_or_default())
    }

    fn names(&self) -> Vec<String> {
        let (wan, radio) = self.interfaces();
        distinct(wan, radio).into_iter().map(str::to_owned).collect()
    }

    /// Returns why the gateway is not in place, or `None` if it is.
    pub(super) fn absence(&self) -> Option<&Absence> {
        self.absence.as_ref()
    }

    /// Keeps the kernel from forwarding for this time, in which nobody refreshes.
    pub(super) fn hold(&mut self, time: Duration) -> io::Result<()> {
        self.joined.as_mut().map_or(Ok(()), |joined| joined.hold(time))
    }

    /// Returns how the kernel rescales windows in packets that bypass the gateway. `None` if packets cannot bypass it.
    pub(super) fn rescale_config(&self) -> Result<Option<RescaleConfig>> {
        let mark = match (self.place, &self.joined) {
            (Place::Bridged, _) => None,
            (Place::Routed, Some(Joined::Routed { rule: Some(_), .. }) | None) => Some(MARK),
            (Place::Routed | Place::Alone, _) => return Ok(None),
        };
        let (wan, radio) = self.interfaces();
        Ok(Some(RescaleConfig::new(&self.options.name()?, &distinct(wan, radio), mark)))
    }

    /// Returns what a successor needs besides the devices: the place, and the rule.
    pub(super) fn place(&self) -> io::Result<(Place, Option<(OwnedFd, Instant)>)> {
        let absent = || {
            let reason =
                self.absence.as_ref().map_or("it has left its interfaces", |absence| &absence.reason);
            io::Error::other(format!("the gateway is not in place: {reason}"))
        };
        Ok((self.place, self.joined.as_ref().ok_or_else(absent)?.rule_descriptor()?))
    }

    /// Returns everything to the kernel.
    pub(super) fn detach(self) -> Result<()> {
        self.joined.map_or(Ok(()), Joined::leave)
    }
}

/// How long the kernel does not forward split flows when the gateway stands still. The kernel cannot continue them.
/// An end that hears from the other end resets the flow, or takes data for delivered that the gateway still waits
/// for. Our choice: longer than a busy machine stands still, but no longer than a dead gateway may keep the kernel
/// from forwarding.
const NEEDED: Duration = Duration::from_secs(2);
/// Our choice: the gateway is back soon after a failure, and the retries cost almost nothing.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Mark of packets that go through the TUN device. Our choice: a bit that common programs do not use.
const MARK: u32 = 0x0800_0000;
