//! Interfaces: create, move, look up, bring up.

use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    BridgePortState, BridgeStpState, InfoBridge, InfoBridgePort, InfoData, InfoKind, InfoPortData, InfoVeth,
    LinkAttribute, LinkFlags, LinkInfo as LinkInfoNla, LinkMessage, State,
};

use super::Netlink;
use crate::system_error::{Context, SystemError};

/// The kernel's description of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// The interface's name.
    pub name: String,
    /// The interface's number.
    pub index: u32,
    /// The hardware address; empty where there is none, as on TUN.
    pub mac: Vec<u8>,
    /// The largest IP packet, in bytes.
    pub mtu: u32,
    /// The bridge that the interface is a port of.
    pub master: Option<u32>,
    /// Administratively up.
    pub up: bool,
    /// Packets get through: the other end is up, the transmit queue works, and a bridge port forwards.
    pub ready: bool,
}

impl Netlink {
    /// Creates a pair of veth interfaces: `name` here, `peer` in another namespace. Both are down.
    pub fn add_veth(&self, name: &str, peer: &str, peer_namespace: impl AsFd) -> Result<(), SystemError> {
        let mut far = LinkMessage::default();
        far.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        far.attributes.push(LinkAttribute::NetNsFd(peer_namespace.as_fd().as_raw_fd()));
        let info =
            vec![LinkInfoNla::Kind(InfoKind::Veth), LinkInfoNla::Data(InfoData::Veth(InfoVeth::Peer(far)))];
        self.add_link(name, info)
    }

    /// Creates a bridge. It has no spanning tree and no multicast snooping, so it forwards everything at once.
    pub fn add_bridge(&self, name: &str) -> Result<(), SystemError> {
        let options =
            vec![InfoBridge::StpState(BridgeStpState::Disabled), InfoBridge::MulticastSnooping(false)];
        self.add_link(
            name,
            vec![LinkInfoNla::Kind(InfoKind::Bridge), LinkInfoNla::Data(InfoData::Bridge(options))],
        )
    }

    /// Deletes an interface. With a veth, its peer is deleted too.
    pub fn delete_link(&self, name: &str) -> Result<(), SystemError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.request(RouteNetlinkMessage::DelLink(message), 0).context(|| format!("delete interface {name}"))
    }

    /// Brings an interface up or down.
    pub fn set_up(&self, name: &str, up: bool) -> Result<(), SystemError> {
        let mut message = LinkMessage::default();
        message.header.change_mask = LinkFlags::Up;
        message.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
        self.change(name, message, &format!("set interface {name} {}", if up { "up" } else { "down" }))
    }

    /// Gives an interface another name.
    pub fn rename(&self, name: &str, to: &str) -> Result<(), SystemError> {
        let mut message = LinkMessage::default();
        message.header.index = self.link(name)?.index;
        message.attributes.push(LinkAttribute::IfName(to.to_owned()));
        self.request(RouteNetlinkMessage::NewLink(message), 0).context(|| format!("rename {name} to {to}"))
    }

    /// Sets the largest IP packet, in bytes.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<(), SystemError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.change(name, message, &format!("set the MTU of {name} to {mtu} bytes"))
    }

    /// Sets the length of the interface's own transmit queue, in packets.
    pub fn set_queue_length(&self, name: &str, packets: u32) -> Result<(), SystemError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::TxQueueLen(packets));
        self.change(name, message, &format!("set the queue length of {name}"))
    }

    /// Makes an interface a port of a bridge, or removes it from its bridge.
    pub fn set_master(&self, name: &str, bridge: Option<&str>) -> Result<(), SystemError> {
        let index = bridge.map_or(Ok(0), |bridge| self.link(bridge).map(|link| link.index))?;
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::Controller(index));
        self.change(name, message, &format!("make {name} a port of {}", bridge.unwrap_or("no bridge")))
    }

    /// Looks an interface up by name.
    pub fn link(&self, name: &str) -> Result<LinkInfo, SystemError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let answers = self
            .query(RouteNetlinkMessage::GetLink(message), false)
            .context(|| format!("find interface {name}"))?;
        answers
            .into_iter()
            .find_map(link_info)
            .ok_or_else(|| SystemError::new(format!("find interface {name}"), nix::errno::Errno::ENODEV))
    }

    /// Returns all interfaces of the namespace.
    pub fn links(&self) -> Result<Vec<LinkInfo>, SystemError> {
        let answers = self
            .query(RouteNetlinkMessage::GetLink(LinkMessage::default()), true)
            .context(|| "list the interfaces".to_owned())?;
        Ok(answers.into_iter().filter_map(link_info).collect())
    }

    /// Waits until packets get through all of these interfaces. The kernel activates an interface some time after the
    /// other end came up (linkwatch, up to a second or two). It drops packets that are sent before.
    pub fn wait_until_ready(&self, names: &[&str]) -> Result<(), SystemError> {
        let begin = std::time::Instant::now();
        loop {
            let links = self.links()?;
            let waits = |name: &&&str| !links.iter().any(|link| link.name == ***name && link.ready);
            match names.iter().find(waits) {
                // The kernel shows the state a moment before it switches the transmit queue on. It does both under
                // the lock that every change takes, even one that changes nothing.
                None => return names.iter().try_for_each(|name| self.set_up(name, true)),
                Some(name) if begin.elapsed() > READY_PATIENCE => {
                    let source = std::io::Error::from(std::io::ErrorKind::TimedOut);
                    return Err(SystemError::new(format!("send through interface {name}"), source));
                }
                Some(_) => std::thread::sleep(std::time::Duration::from_millis(2)),
            }
        }
    }

    fn add_link(&self, name: &str, info: Vec<LinkInfoNla>) -> Result<(), SystemError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::LinkInfo(info));
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
            .context(|| format!("create interface {name}"))
    }

    fn change(&self, name: &str, mut message: LinkMessage, action: &str) -> Result<(), SystemError> {
        message.attributes.insert(0, LinkAttribute::IfName(name.to_owned()));
        self.request(RouteNetlinkMessage::NewLink(message), 0).context(|| action.to_owned())
    }
}

fn link_info(message: RouteNetlinkMessage) -> Option<LinkInfo> {
    let RouteNetlinkMessage::NewLink(message) = message else { return None };
    let up = message.header.flags.contains(LinkFlags::Up);
    let mut info = LinkInfo {
        name: String::new(),
        index: message.header.index,
        mac: Vec::new(),
        mtu: 0,
        master: None,
        up,
        ready: up,
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => info.name = name,
            LinkAttribute::Address(mac) => info.mac = mac,
            LinkAttribute::Mtu(mtu) => info.mtu = mtu,
            LinkAttribute::Controller(index) => info.master = Some(index),
            LinkAttribute::OperState(state) => info.ready &= matches!(state, State::Up | State::Unknown),
            LinkAttribute::Qdisc(name) => info.ready &= name != "noop",
            LinkAttribute::LinkInfo(details) => info.ready &= !details.iter().any(is_blocked_port),
            _ => {}
        }
    }
    Some(info)
}

fn is_blocked_port(detail: &LinkInfoNla) -> bool {
    let LinkInfoNla::PortData(InfoPortData::BridgePort(port)) = detail else { return false };
    let forwards = InfoBridgePort::State(BridgePortState::Forwarding);
    port.iter().any(|attribute| matches!(attribute, InfoBridgePort::State(_)) && *attribute != forwards)
}

/// Longer than the kernel's worst delay on a busy machine.
const READY_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
