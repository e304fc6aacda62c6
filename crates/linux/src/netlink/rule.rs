//! Policy routing rules: they select the routing table for a packet.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};

use super::address::family_of;
use super::{Netlink, Prefix};
use crate::system_error::{Context, SystemError};

/// A rule that sends packets from one interface to a routing table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule is for IPv6, not for IPv4.
    pub ipv6: bool,
    /// The rule with the smaller priority comes first; the main table's rule has 32766.
    pub priority: u32,
    /// The interface at which the packet arrived.
    pub input_interface: String,
    /// Only packets of this protocol.
    pub protocol: Option<Protocol>,
    /// Only packets from this prefix.
    pub source: Option<Prefix>,
    /// Only packets to this prefix.
    pub destination: Option<Prefix>,
    /// Only packets with all of these bits in their marks.
    pub mark: Option<u32>,
    /// The routing table to look into.
    pub table: u32,
}

/// Transport protocol that a rule may select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Netlink {
    /// Adds a rule. If the same rule exists, this is no error.
    pub fn add_rule(&self, rule: &Rule) -> Result<(), SystemError> {
        match self.request(RouteNetlinkMessage::NewRule(rule_message(rule)), NLM_F_CREATE | NLM_F_EXCL) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            result => result.context(|| format!("add the rule for packets from {}", rule.input_interface)),
        }
    }

    /// Deletes every rule of one priority for packets from one interface. Returns the number of deleted rules.
    pub fn delete_rules(
        &self,
        ipv6: bool,
        priority: u32,
        input_interface: &str,
    ) -> Result<usize, SystemError> {
        let mut message = RuleMessage::default();
        message.header.family = if ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        message.attributes.push(RuleAttribute::Priority(priority));
        message.attributes.push(RuleAttribute::Iifname(input_interface.to_owned()));
        for deleted in 0..RULES_MAX {
            match self.request(RouteNetlinkMessage::DelRule(message.clone()), 0) {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(deleted),
                Err(error) => return Err(SystemError::new("delete a routing rule", error)),
            }
        }
        Ok(RULES_MAX)
    }
}

fn rule_message(rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = if rule.ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    message.header.action = RuleAction::ToTable;
    message.attributes.push(RuleAttribute::Priority(rule.priority));
    message.attributes.push(RuleAttribute::Table(rule.table));
    message.attributes.push(RuleAttribute::Iifname(rule.input_interface.clone()));
    let protocol = rule.protocol.map(|protocol| match protocol {
        Protocol::Tcp => IpProtocol::Tcp,
        Protocol::Udp => IpProtocol::Udp,
    });
    message.attributes.extend(protocol.map(RuleAttribute::IpProtocol));
    if let Some(mark) = rule.mark {
        message.attributes.extend([RuleAttribute::FwMark(mark), RuleAttribute::FwMask(mark)]);
    }
    let in_family = |prefix: &Prefix| family_of(prefix.address) == message.header.family;
    if let Some(source) = rule.source.map(Prefix::network).filter(in_family) {
        message.header.src_len = source.length;
        message.attributes.push(RuleAttribute::Source(source.address));
    }
    if let Some(destination) =
        rule.destination.map(Prefix::network).filter(|p| p.address.is_ipv6() == rule.ipv6)
    {
        message.header.dst_len = destination.length;
        message.attributes.push(RuleAttribute::Destination(destination.address));
    }
    message
}

/// Bounds the deletion: more rules of one kind than anybody has.
const RULES_MAX: usize = 1000;
