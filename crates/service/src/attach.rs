//! Where the gateway's packets come from, and what the kernel does with them while the gateway is not there.
//!
//! A gateway is in its place as long as its interfaces are what it needs. When one is gone, or is no longer where it was, the
//! gateway leaves at once, so that the kernel forwards; it joins anew when they are back.

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
pub(super) use join::Which;
use links::{Fit, Links};

/// The gateway's place in the network, and whether it is there.
#[derive(Debug)]
pub(super) struct Attached {
    options: Options,
    place: Place,
    which: Which,
    netlink: Netlink,
    links: Links,
    joined: Option<Joined>,
    /// Of the interfaces that it has joined, its TUN included.
    indices: Vec<u32>,
    absence: Option<Absence>,
    /// When to look although nothing has been told.
    look_at: Option<Instant>,
}

/// Why the gateway is not in its place; the kernel forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absence {
    pub(super) reason: String,
    /// The interfaces are as they should be: something else is wrong, and another process may do better.
    pub(super) is_failure: bool,
}

/// What a [refresh](Attached::refresh) has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refresh {
    AsBefore,
    /// The gateway has joined interfaces anew.
    Joined,
}

/// Finds out how a gateway with these options will stand between its interfaces, before it makes anything.
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

/// Two gateways at one interface would both forward what comes in there. That a second one has the same name is told when it installs
/// its rule; the other workers are no strangers.
fn refuse_others(options: &Options) -> Result<()> {
    let (wan, radio) = options.interfaces()?;
    let own = format!("paceline-{wan}-{radio}");
    let is_own =
        |table: &str| table == own || options.worker.is_some() && table.starts_with(&format!("{own}-"));
    // Without nftables there is nobody to be found.
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

/// One name, where a router has its servers and clients behind the same interface.
fn distinct<'a>(wan: &'a str, radio: &'a str) -> Vec<&'a str> {
    if wan == radio { vec![wan] } else { vec![wan, radio] }
}

impl Attached {
    /// Puts the gateway into its place, in that of another process where there is one.
    pub(super) fn new(
        event_loop: &mut EventLoop,
        options: &Options,
        which: Which,
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
            which,
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
            attached.joined = Some(join::adopt(event_loop, inherited, options, which.datagrams, mtu)?);
            attached.indices = attached.present().map_err(Error::system)?;
        } else {
            match attached.links.fit(place) {
                Fit::Fits => attached.join(event_loop)?,
                Fit::Stands(reason) | Fit::Unfit(reason) => attached.miss(reason, false),
            }
        }
        Ok(attached)
    }

    /// To be called eight times a second, and when interfaces change. With flows that cannot go on without the gateway the kernel is
    /// given their packets later.
    pub(super) fn refresh(
        &mut self,
        housekeeping: &mut Housekeeping<'_>,
        is_needed: bool,
    ) -> io::Result<Refresh> {
        let mut refresh = Refresh::AsBefore;
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

    /// Looks at the interfaces, and leaves or joins them as they are.
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
                    return Refresh::AsBefore;
                }
            };
        links.tell_changes_since(&self.links);
        self.links = links;
        let fit = self.links.fit(self.place);
        if let Some(joined) = &mut self.joined {
            // A flow that cannot go on without the gateway waits for a carrier as it would without one.
            let stays = matches!(fit, Fit::Fits) || is_needed && matches!(fit, Fit::Stands(_));
            if stays && present == self.indices {
                self.absence = None;
                if let Err(error) = joined.repair(self.links.mtu()) {
                    tracing::warn!("{error}");
                    self.look_at = Some(now + RETRY_AFTER);
                }
                return Refresh::AsBefore;
            }
            self.leave(housekeeping.event_loop());
        }
        match fit {
            Fit::Stands(reason) | Fit::Unfit(reason) => self.miss(reason, false),
            Fit::Fits => match self.join(housekeeping.event_loop()) {
                Ok(()) => return Refresh::Joined,
                Err(error) => {
                    housekeeping.event_loop().remove_devices();
                    self.miss(error.to_string(), true);
                    self.look_at = Some(now + RETRY_AFTER);
                }
            },
        }
        Refresh::AsBefore
    }

    fn join(&mut self, event_loop: &mut EventLoop) -> Result<()> {
        self.joined = Some(join::join(event_loop, &self.options, self.place, self.which, self.links.mtu())?);
        self.absence = None;
        self.indices = self.present().map_err(Error::system)?;
        let (wan, radio) = self.interfaces();
        tracing::info!("in place: packets between {wan} and {radio} go through the gateway");
        Ok(())
    }

    /// The rule goes first: what arrives from then on is the kernel's.
    fn leave(&mut self, event_loop: &mut EventLoop) {
        if let Some(Err(error)) = self.joined.take().map(Joined::leave) {
            // Most of it goes with the interface, and the rest is closed now.
            tracing::debug!("{error}");
        }
        event_loop.remove_devices();
    }

    /// Tells why it is absent, once.
    fn miss(&mut self, reason: String, is_failure: bool) {
        let absence = Absence { reason, is_failure };
        if self.absence.as_ref() != Some(&absence) {
            let who = if self.place == Place::Alone { "nobody" } else { "the kernel" };
            tracing::warn!("not in place; {who} forwards without the gateway: {}", absence.reason);
            self.absence = Some(absence);
        }
    }

    /// The numbers of the interfaces, and of the TUN.
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

    /// Why the gateway is not in its place, if it is not.
    pub(super) fn absence(&self) -> Option<&Absence> {
        self.absence.as_ref()
    }

    /// Nobody will refresh for so long, and the kernel is not to forward yet.
    pub(super) fn hold(&mut self, time: Duration) -> io::Result<()> {
        self.joined.as_mut().map_or(Ok(()), |joined| joined.hold(time))
    }

    /// How windows are to be rescaled in packets that do not pass the gateway, if they can pass elsewhere.
    pub(super) fn rescale_config(&self) -> Result<Option<RescaleConfig>> {
        let mark = match (self.place, &self.joined) {
            (Place::Bridged, _) => None,
            (Place::Routed, Some(Joined::Routed { rule: Some(_), .. }) | None) => Some(MARK),
            (Place::Routed | Place::Alone, _) => return Ok(None),
        };
        let (wan, radio) = self.interfaces();
        Ok(Some(RescaleConfig::new(&self.options.name()?, &distinct(wan, radio), mark)))
    }

    /// What a successor has to know and to have, besides the devices.
    pub(super) fn place(&self) -> io::Result<(Place, Option<(OwnedFd, Instant)>)> {
        let absent = || {
            let reason =
                self.absence.as_ref().map_or("it has left its interfaces", |absence| &absence.reason);
            io::Error::other(format!("the gateway is not in place: {reason}"))
        };
        Ok((self.place, self.joined.as_ref().ok_or_else(absent)?.rule_descriptor()?))
    }

    /// Hands everything back to the kernel.
    pub(super) fn detach(self) -> Result<()> {
        self.joined.map_or(Ok(()), Joined::leave)
    }
}

/// How long the kernel leaves split flows alone when the gateway stands still. It cannot carry them on: an end that hears of the other
/// resets the flow, or takes for delivered what the gateway still waits for. Our choice: longer than a busy machine stands still, and
/// no longer than what is asked of a gateway that has died.
const NEEDED: Duration = Duration::from_secs(2);
/// Our choice: often enough to be back a moment after what failed, seldom enough to cost nothing.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Set in packets that go through the TUN device. Our choice: a bit that common programs leave alone.
const MARK: u32 = 0x0800_0000;
