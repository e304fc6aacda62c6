//! The present state of the interfaces: what keeps a gateway from its place, and messages about changes.

use paceline_linux::SystemError;
use paceline_linux::netlink::{LinkInfo, Netlink};

use super::super::place::Place;

/// The interfaces by name. `None` for one that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Links(Vec<(String, Option<LinkInfo>)>);

/// Whether a gateway can be in place between the interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkReadiness {
    Ready,
    /// The interfaces are in their places, but one of them passes no packets.
    Down(String),
    /// The interfaces are not in their places.
    Misplaced(String),
}

impl Links {
    /// Queries the kernel.
    pub(super) fn look(netlink: &Netlink, names: &[&str]) -> Result<Links, SystemError> {
        let mut links = Vec::with_capacity(names.len());
        for &name in names {
            let link = match netlink.link(name) {
                Err(error) if error.errno() == Some(nix::libc::ENODEV) => None,
                link => Some(link?),
            };
            links.push((name.to_owned(), link));
        }
        Ok(Links(links))
    }

    /// Returns the numbers of the interfaces. A new interface with an old name has another number.
    pub(super) fn indices(&self) -> Vec<u32> {
        self.0.iter().filter_map(|(_, link)| Some(link.as_ref()?.index)).collect()
    }

    /// The largest MTU.
    pub(super) fn mtu(&self) -> u32 {
        self.0.iter().filter_map(|(_, link)| Some(link.as_ref()?.mtu)).max().unwrap_or(0)
    }

    /// Returns the first interface that does not exist.
    pub(super) fn missing(&self) -> Option<&str> {
        self.0.iter().find(|(_, link)| link.is_none()).map(|(name, _)| name.as_str())
    }

    /// Returns whether the interfaces are in one bridge or in none. `None` if they differ.
    pub(super) fn place(&self) -> Option<Place> {
        let mut masters = self.0.iter().map(|(_, link)| link.as_ref().and_then(|link| link.master));
        let first = masters.next()?;
        if masters.any(|master| master != first) {
            return None;
        }
        Some(if first.is_some() { Place::Bridged } else { Place::Alone })
    }

    /// Judges the interfaces for `place`. A bridge forwards only between working ports, and so does a gateway in its
    /// place. In other places nobody else would forward, so the gateway stays.
    pub(super) fn fit(&self, place: Place) -> LinkReadiness {
        if let Some(name) = self.missing() {
            return LinkReadiness::Misplaced(format!("there is no interface {name}"));
        }
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(" and ");
        match (place, self.place()) {
            (Place::Bridged, found) if found != Some(Place::Bridged) => {
                return LinkReadiness::Misplaced(format!("{names} are not ports of one bridge"));
            }
            (Place::Alone, found) if found != Some(Place::Alone) => {
                return LinkReadiness::Misplaced(format!("{names} are ports of a bridge"));
            }
            _ => {}
        }
        let stands = |(_, link): &&(String, Option<LinkInfo>)| link.as_ref().is_some_and(|link| !link.ready);
        match self.0.iter().find(stands).filter(|_| place == Place::Bridged) {
            Some((name, link)) => LinkReadiness::Down(format!("{name} is {}", state(link.as_ref()))),
            None => LinkReadiness::Ready,
        }
    }

    /// Logs one line for each interface that has changed.
    pub(super) fn tell_changes_since(&self, before: &Links) {
        for (now, before) in self.0.iter().zip(&before.0).filter(|(now, before)| now != before) {
            tracing::info!("{}", change(&now.0, before.1.as_ref(), now.1.as_ref()));
        }
    }
}

fn change(name: &str, before: Option<&LinkInfo>, now: Option<&LinkInfo>) -> String {
    match (before, now) {
        (None, Some(_)) => format!("interface {name} is back: {}", state(now)),
        (Some(before), Some(link)) if before.index != link.index => {
            format!("interface {name} was created again: {}", state(now))
        }
        (Some(before), Some(link)) if before.master != link.master => match link.master {
            Some(_) => format!("interface {name} is a port of another bridge: {}", state(now)),
            None => format!("interface {name} is in no bridge: {}", state(now)),
        },
        (Some(before), Some(link)) if before.mtu != link.mtu => {
            format!(
                "the MTU of interface {name} is {} bytes now, was {}: {}",
                link.mtu,
                before.mtu,
                state(now)
            )
        }
        _ => format!("interface {name} is {}", state(now)),
    }
}

fn state(link: Option<&LinkInfo>) -> &'static str {
    match link {
        None => "gone",
        Some(link) if link.ready => "up",
        Some(link) if link.up => {
            "up, but passes no packets: no carrier, or its bridge port is not forwarding"
        }
        Some(_) => "down",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, master: Option<u32>, ready: bool) -> LinkInfo {
        LinkInfo { name: String::new(), index, mac: vec![], mtu: 1500, master, up: true, ready }
    }

    fn links(wan: Option<LinkInfo>, radio: Option<LinkInfo>) -> Links {
        Links(vec![("w".to_owned(), wan), ("r".to_owned(), radio)])
    }

    #[test]
    fn a_gateway_stands_only_where_it_belongs() {
        let bridged = links(Some(link(1, Some(9), true)), Some(link(2, Some(9), true)));
        assert_eq!(
            (bridged.place(), bridged.fit(Place::Bridged)),
            (Some(Place::Bridged), LinkReadiness::Ready)
        );
        assert!(matches!(bridged.fit(Place::Alone), LinkReadiness::Misplaced(_)));
        let apart = links(Some(link(1, Some(9), true)), Some(link(2, Some(8), true)));
        assert_eq!(apart.place(), None);
        for place in [Place::Bridged, Place::Alone] {
            assert!(matches!(apart.fit(place), LinkReadiness::Misplaced(_)));
        }
        assert_eq!(apart.fit(Place::Routed), LinkReadiness::Ready);
        let dark = links(Some(link(1, Some(9), true)), Some(link(2, Some(9), false)));
        assert!(matches!(dark.fit(Place::Bridged), LinkReadiness::Down(_)));
        let gone = links(Some(link(1, None, true)), None);
        for place in [Place::Bridged, Place::Alone, Place::Routed] {
            assert_eq!(gone.fit(place), LinkReadiness::Misplaced("there is no interface r".to_owned()));
        }
    }

    #[test]
    fn each_change_has_its_words() {
        let (one, two) = (link(1, Some(9), true), link(2, Some(9), true));
        for (before, now, words) in [
            (Some(&one), None, "is gone"),
            (None, Some(&one), "is back: up"),
            (Some(&one), Some(&two), "was created again"),
            (Some(&one), Some(&link(1, Some(8), true)), "another bridge"),
            (Some(&one), Some(&link(1, None, true)), "in no bridge"),
            (Some(&one), Some(&link(1, Some(9), false)), "no carrier"),
            (Some(&one), Some(&LinkInfo { mtu: 1400, ..one.clone() }), "is 1400 bytes now, was 1500"),
            (Some(&one), Some(&LinkInfo { up: false, ready: false, ..one.clone() }), "is down"),
        ] {
            let line = change("r", before, now);
            assert!(line.contains(words), "{line}");
        }
    }
}
