//! Reports that relevant interfaces or routing rules may have changed.
//!
//! The kernel's messages only wake the caller, which then queries the state
//! ([`Netlink::links`](super::Netlink::links)). A lost or unknown message costs a needless query, and never leaves a
//! wrong state.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::rule::{RuleAttribute, RuleMessage};
use netlink_sys::{Socket, SocketAddr};

use super::Netlink;
use crate::system_error::{Context, SystemError};

/// Listens to the kernel's messages.
pub struct LinkWatch {
    socket: Socket,
    interest: Interest,
    datagram: Vec<u8>,
}

/// The relevant interfaces and rules.
#[derive(Debug)]
pub(crate) struct Interest {
    pub(crate) names: Vec<String>,
    /// Last known interface numbers. The message about a renamed interface has only its new name.
    pub(crate) indices: Vec<u32>,
    /// Priority of the rules whose deletion is relevant.
    pub(crate) priority: Option<u32>,
}

impl std::fmt::Debug for LinkWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkWatch").field("interest", &self.interest).finish_non_exhaustive()
    }
}

impl LinkWatch {
    /// Watches interfaces with these names in the calling thread's network namespace, whether they exist or not. Also
    /// watches for deleted routing rules of this priority.
    pub fn open(names: &[&str], priority: Option<u32>) -> Result<LinkWatch, SystemError> {
        let socket = listen(priority.is_some()).context(|| "watch the interfaces".to_owned())?;
        let netlink = Netlink::open()?;
        let indices = names.iter().filter_map(|name| Some(netlink.link(name).ok()?.index)).collect();
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let interest = Interest { names, indices, priority };
        Ok(LinkWatch { socket, interest, datagram: Vec::with_capacity(DATAGRAM_MAX) })
    }

    /// Reads the waiting messages, at most 32 of them in a call. True if something relevant may have changed.
    pub fn has_changed(&mut self) -> bool {
        let mut changed = false;
        for _ in 0..DATAGRAMS_MAX {
            self.datagram.clear();
            match self.socket.recv_from(&mut self.datagram, 0) {
                Ok(_) => changed |= self.interest.is_met_by(&self.datagram),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // ENOBUFS: the kernel had more messages than the buffer holds.
                Err(_) => changed = true,
            }
        }
        changed
    }
}

impl Interest {
    /// True if any message of a datagram is about something relevant.
    pub(crate) fn is_met_by(&mut self, datagram: &[u8]) -> bool {
        let mut rest = datagram;
        let mut is_ours = false;
        while let Some(length) = rest.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes) as usize) {
            let Some(message) = rest.get(..length).filter(|message| message.len() >= HEADER_LENGTH) else {
                break;
            };
            is_ours |= match NetlinkMessage::<RouteNetlinkMessage>::deserialize(message).map(|m| m.payload) {
                Ok(NetlinkPayload::InnerMessage(
                    RouteNetlinkMessage::NewLink(link) | RouteNetlinkMessage::DelLink(link),
                )) => self.is_our_link(&link),
                Ok(NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelRule(rule))) => {
                    self.is_our_rule(&rule)
                }
                Ok(_) => false,
                // A message of a newer kernel: query the state.
                Err(_) => true,
            };
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        is_ours
    }

    fn is_our_link(&mut self, link: &LinkMessage) -> bool {
        let named = |attribute: &LinkAttribute| matches!(attribute, LinkAttribute::IfName(name) if self.names.contains(name));
        let index = link.header.index;
        if link.attributes.iter().any(named) {
            // One number for each name is enough: older interfaces are gone.
            self.indices.retain(|known| *known != index);
            self.indices.push(index);
            let too_many = self.indices.len().saturating_sub(INDICES_MAX);
            self.indices.drain(..too_many);
            return true;
        }
        self.indices.contains(&index)
    }

    fn is_our_rule(&self, rule: &RuleMessage) -> bool {
        let of_priority = |attribute: &RuleAttribute| matches!(attribute, RuleAttribute::Priority(priority) if Some(*priority) == self.priority);
        rule.attributes.iter().any(of_priority)
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn listen(rules: bool) -> io::Result<Socket> {
    let mut socket = Socket::new(netlink_sys::protocols::NETLINK_ROUTE)?;
    socket.set_non_blocking(true)?;
    socket.bind(&SocketAddr::new(0, 0))?;
    socket.add_membership(RTNLGRP_LINK)?;
    if rules {
        socket.add_membership(RTNLGRP_IPV4_RULE)?;
        socket.add_membership(RTNLGRP_IPV6_RULE)?;
    }
    Ok(socket)
}

/// `enum rtnetlink_groups`.
const RTNLGRP_LINK: u32 = 1;
const RTNLGRP_IPV4_RULE: u32 = 8;
const RTNLGRP_IPV6_RULE: u32 = 19;
const HEADER_LENGTH: usize = 16;
/// Linux limits messages to this size (NLMSG_GOODSIZE); a message about one interface has 2 KB.
const DATAGRAM_MAX: usize = 32 << 10;
/// Datagrams read in one turn. Our choice: this is well under a millisecond of work, and the rest waits for the next
/// turn.
const DATAGRAMS_MAX: usize = 32;
/// Our choice: two numbers for each interface of a gateway, one before and one after the interface was recreated.
/// Room for twice as many interfaces as a gateway has.
pub(crate) const INDICES_MAX: usize = 8;
