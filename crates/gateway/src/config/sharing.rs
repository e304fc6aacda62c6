//! Rules about flows and subscribers, and their shares.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::RangeInclusive;

use paceline_wire::Duration;

use super::Prefer;
use crate::prefix::Prefix;
use crate::split::SenderConfig;

/// Which flows a rule is about. An absent field matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowMatch {
    /// The client's address.
    pub client: Option<Prefix>,
    /// The server's address.
    pub server: Option<Prefix>,
    /// The server's ports.
    pub server_ports: Option<RangeInclusive<u16>>,
    /// The code point of the SYN (RFC 2474).
    pub dscp: Option<u8>,
    /// The outer VLAN of the SYN.
    pub vlan: Option<u16>,
    /// The smallest round trip between client and server. If earlier flows showed none, the rule does not match.
    pub rtt_min_ms: Option<u64>,
    /// The largest round trip, likewise.
    pub rtt_max_ms: Option<u64>,
}

impl FlowMatch {
    /// True if the rule wants this round trip.
    pub(crate) fn has_rtt(&self, rtt: Option<Duration>) -> bool {
        if self.rtt_min_ms.is_none() && self.rtt_max_ms.is_none() {
            return true;
        }
        let wanted = |rtt: Duration| {
            self.rtt_min_ms.is_none_or(|least| rtt >= Duration::from_millis(least))
                && self.rtt_max_ms.is_none_or(|most| rtt <= Duration::from_millis(most))
        };
        rtt.is_some_and(wanted)
    }
}

/// What to do with a flow that a rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowAction {
    /// Accelerate it, in the gateway's mode.
    #[default]
    Accelerate,
    /// Accelerate it transparently.
    Transparent,
    /// Split it.
    Split,
    /// [`FlowMode::Auto`](crate::config::FlowMode::Auto) decides.
    Auto,
    /// Forward it unchanged.
    Pass,
}

/// One rule. The first that matches a new flow decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRule {
    /// Which flows.
    pub matches: FlowMatch,
    /// What happens to them.
    pub action: FlowAction,
    /// Their share of their subscriber's link.
    pub share: ShareConfig,
    /// The sender of these flows if they are split. Without it `split.sender`.
    pub sender: Option<SenderConfig>,
    /// The largest window shown to the server, if less than `virtual-window.max-bytes`.
    pub virtual_window_max_bytes: Option<u64>,
}

/// A flow's share of its subscriber's link, or a subscriber's share of the gateway. Downlink only; a rate counts bytes
/// of IP.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareConfig {
    /// Packets per round of the scheduler (Section 7.2), at least 1.
    pub weight: u32,
    /// 0 to 7. A higher priority always goes first (as in IEEE 802.1Q).
    pub priority: u8,
    /// A rate that comes before any priority, as far as there is data and the link can carry it, in Mbit/s.
    pub guaranteed_mbps: Option<f64>,
    /// A rate that is never exceeded, in Mbit/s.
    pub ceiling_mbps: Option<f64>,
}

impl ShareConfig {
    /// Number of priorities.
    pub const PRIORITIES: u8 = 8;

    /// Checks the values. The error is one line.
    ///
    /// # Errors
    /// The first value that the scheduler cannot work with.
    pub fn check(&self) -> Result<(), String> {
        let fail = |text: &str| Err(String::from(text));
        if self.weight == 0 || self.weight > 1000 {
            return fail("`weight` is 1 to 1000");
        }
        if self.priority >= ShareConfig::PRIORITIES {
            return fail("`priority` is 0 to 7; 7 goes first");
        }
        if !is_rate(self.guaranteed_mbps) || !is_rate(self.ceiling_mbps) {
            return fail("guaranteed rate and ceiling are 0.001 to 1000000 Mbit/s");
        }
        if let (Some(guaranteed), Some(ceiling)) = (self.guaranteed_mbps, self.ceiling_mbps)
            && guaranteed > ceiling
        {
            return fail("the guaranteed rate is above the ceiling; raise the ceiling or leave it out");
        }
        Ok(())
    }
}

impl Default for ShareConfig {
    fn default() -> Self {
        ShareConfig { weight: 1, priority: 0, guaranteed_mbps: None, ceiling_mbps: None }
    }
}

/// A subscriber's share against other subscribers, and what matters more on its link.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriberRule {
    /// An address inside the subscriber's prefix, or a prefix that holds the subscribers.
    pub address: Prefix,
    /// Its share.
    pub share: ShareConfig,
    /// Without it `queue-bound.prefer`.
    pub prefer: Option<Prefer>,
}

/// Rules for new flows and subscribers. Their text is `[[rule]]` and `[[subscriber]]` of the operator's file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Rules for flows.
    pub flows: Vec<FlowRule>,
    /// Shares of subscribers. Those not named have weight 1.
    pub subscribers: Vec<SubscriberRule>,
}

impl Rules {
    pub(super) fn check(&self) -> Result<(), String> {
        self.flows.iter().filter_map(|rule| rule.sender).try_for_each(|sender| sender.check())?;
        let flows = self.flows.iter().map(|rule| &rule.share);
        let subscribers = self.subscribers.iter().map(|rule| &rule.share);
        flows.chain(subscribers).try_for_each(ShareConfig::check)
    }
}

/// What happens to packets that are not TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OtherMode {
    /// They pass as they come.
    Passed,
    /// They share the subscriber's link with its TCP flows, and get no more than their share while TCP waits.
    #[default]
    Shared,
}

/// Sharing between flows of a subscriber and between subscribers.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SharingConfig {
    /// Bits of a client's IPv4 address that name a subscriber.
    pub subscriber_prefix_v4: u8,
    /// Bits of a client's IPv6 address that name a subscriber.
    pub subscriber_prefix_v6: u8,
    /// Rate of all subscribers together, in Mbit/s of IP, where a backhaul is narrower than their radio links.
    pub capacity_mbps: Option<f64>,
    /// Treatment of QUIC and everything else that is not TCP.
    pub other: OtherMode,
}

impl Default for SharingConfig {
    fn default() -> Self {
        // A handset is given one IPv4 address and one IPv6 /64 (RFC 6459, Section 5.2).
        SharingConfig {
            subscriber_prefix_v4: 32,
            subscriber_prefix_v6: 64,
            capacity_mbps: None,
            other: OtherMode::default(),
        }
    }
}

pub(super) fn is_rate(mbps: Option<f64>) -> bool {
    mbps.is_none_or(|mbps| (0.001..=1e6).contains(&mbps))
}

impl SharingConfig {
    /// Returns the address prefix that names a client's subscriber.
    pub(crate) fn subscriber(&self, client: IpAddr) -> IpAddr {
        match client {
            IpAddr::V4(address) => {
                let bits = u32::from(self.subscriber_prefix_v4.min(32));
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let bits = u32::from(self.subscriber_prefix_v6.min(128));
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handset_is_one_subscriber_whatever_its_ipv6_interface_identifier() {
        let config = SharingConfig::default();
        let of = |text: &str| config.subscriber(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        let everyone = SharingConfig { subscriber_prefix_v4: 0, ..config };
        assert_eq!(
            everyone.subscriber("10.0.0.1".parse().unwrap()),
            everyone.subscriber("192.0.2.1".parse().unwrap())
        );
    }
}
