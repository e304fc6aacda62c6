//! Decides from the SYN what becomes of a new flow. No other place decides this.

use paceline_wire::{FlowKey, Packet, Tcp};

use crate::auto::{self, KnownPath, Reason};
use crate::config::{FlowAction, FlowMatch, FlowMode, FlowRule, GatewayConfig, ShareConfig};
use crate::counters::PassReason;
use crate::handshake::must_pass;
use crate::mode::{Decision, DecisionKind, Mode};

/// The decision about a new flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Whether it passes, is transparent or is split.
    pub mode: Mode,
    /// Its share of its subscriber's link.
    pub share: ShareConfig,
    /// The largest window shown to the server, if a rule sets one.
    pub window_max_bytes: Option<u64>,
    /// The reason, if `auto` decided.
    pub reason: Option<Reason>,
}

impl GatewayConfig {
    /// Decides about the flow (client to server) that begins with `syn`, by the rules and by what earlier flows showed.
    pub fn choose(&self, client_to_server: &FlowKey, syn: &Packet, known: &KnownPath) -> Choice {
        let rule = self.rule(client_to_server, Some(syn), known);
        let window_max_bytes = rule.and_then(|rule| rule.virtual_window_max_bytes);
        let share = rule.map_or_else(ShareConfig::default, |rule| rule.share.clone());
        let (mode, reason) = match syn.tcp() {
            None => (Mode::Pass(PassReason::NotTcp), None),
            Some(tcp) => match must_pass(tcp) {
                Some(reason) => (Mode::Pass(reason), None),
                None => self.mode_of(rule, tcp, known),
            },
        };
        Choice { mode, share, window_max_bytes, reason }
    }

    fn mode_of(&self, rule: Option<&FlowRule>, tcp: Tcp<'_>, known: &KnownPath) -> (Mode, Option<Reason>) {
        // Only the server may accept or refuse data in a SYN (RFC 7413).
        let may_split = !tcp.fast_open() && tcp.payload_len() == 0;
        let split = match may_split {
            false => Mode::Transparent,
            true => Mode::Split(rule.and_then(|rule| rule.sender).unwrap_or(self.split.sender)),
        };
        let auto = || {
            let Decision { what, reason } = auto::decide(known, may_split);
            let mode = if let DecisionKind::Mode(mode) = what { mode } else { Mode::Transparent };
            (mode, Some(reason))
        };
        match rule.map_or(FlowAction::Accelerate, |rule| rule.action) {
            FlowAction::Pass => (Mode::Pass(PassReason::Rule), None),
            FlowAction::Transparent => (Mode::Transparent, None),
            FlowAction::Split => (split, None),
            FlowAction::Auto => auto(),
            FlowAction::Accelerate => match self.mode {
                FlowMode::Transparent => (Mode::Transparent, None),
                FlowMode::Split => (split, None),
                FlowMode::Auto => auto(),
            },
        }
    }

    /// Returns share and largest window of a flow whose SYN was not seen. Rules about DSCP, VLAN or round trip do not
    /// match.
    pub(crate) fn known_without_syn(&self, client_to_server: &FlowKey) -> (ShareConfig, Option<u64>) {
        match self.rule(client_to_server, None, &KnownPath::default()) {
            Some(rule) => (rule.share.clone(), rule.virtual_window_max_bytes),
            None => (ShareConfig::default(), None),
        }
    }

    /// Returns the first rule that matches.
    fn rule(&self, key: &FlowKey, syn: Option<&Packet>, known: &KnownPath) -> Option<&FlowRule> {
        self.rules.flows.iter().find(|rule| {
            // Every key is named, so that the compiler reports a new one that is missing here.
            let FlowMatch { client, server, server_ports, dscp, vlan, rtt_min_ms: _, rtt_max_ms: _ } =
                &rule.matches;
            client.is_none_or(|prefix| prefix.contains(key.src.ip()))
                && server.is_none_or(|prefix| prefix.contains(key.dst.ip()))
                && server_ports.as_ref().is_none_or(|ports| ports.contains(&key.dst.port()))
                && dscp.is_none_or(|dscp| syn.and_then(dscp_of) == Some(dscp))
                && vlan.is_none_or(|vlan| syn.and_then(vlan_of) == Some(vlan))
                && rule.matches.has_rtt(known.rtt())
        })
    }
}

/// The differentiated services code point (RFC 2474, Section 3).
fn dscp_of(packet: &Packet) -> Option<u8> {
    match *packet.header().first_chunk::<2>()? {
        [a, b] if a >> 4 == 6 => Some((a << 4 | b >> 4) >> 2),
        [_, tos] => Some(tos >> 2),
    }
}

/// The number of the outer VLAN (IEEE 802.1Q, 802.1ad).
fn vlan_of(packet: &Packet) -> Option<u16> {
    match *packet.link().get(12..)?.first_chunk::<4>()? {
        [0x81, 0x00, a, b] | [0x88, 0xa8, a, b] => Some(u16::from_be_bytes([a, b]) & 0x0fff),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use paceline_wire::{Duration, Flags, Instant, Payload, TcpOptionsRepr, TcpRepr};

    use super::*;
    use crate::auto::ClientRecord;
    use crate::split::SenderConfig;

    fn key(port: u16) -> FlowKey {
        FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: ([10, 0, 0, 1], port).into() }
    }

    fn syn(port: u16, extra: &'static [u8]) -> Packet {
        let options = TcpOptionsRepr { mss: Some(1_460), extra, ..Default::default() };
        let repr = TcpRepr { flags: Flags::SYN, options, ..Default::default() };
        Packet::build_tcp(key(port), &repr, Payload::Length(0))
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let mut config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() };
        let matches = |port| FlowMatch { server_ports: Some(port..=port), ..Default::default() };
        let own = SenderConfig { initial_window: 3, ..SenderConfig::default() };
        config.rules.flows = vec![
            FlowRule { matches: matches(22), action: FlowAction::Pass, ..Default::default() },
            FlowRule {
                matches: matches(80),
                action: FlowAction::Transparent,
                share: ShareConfig { weight: 2, ..Default::default() },
                ..Default::default()
            },
            FlowRule { matches: matches(443), sender: Some(own), ..Default::default() },
        ];
        let mode = |port| config.choose(&key(port), &syn(port, &[]), &KnownPath::default()).mode;
        assert_eq!(mode(22), Mode::Pass(PassReason::Rule));
        assert_eq!(mode(80), Mode::Transparent);
        assert_eq!(mode(443), Mode::Split(own));
        assert_eq!(mode(8080), Mode::Split(config.split.sender));
        assert_eq!(config.choose(&key(80), &syn(80, &[]), &KnownPath::default()).share.weight, 2);
        let choice = GatewayConfig::default().choose(&key(80), &syn(80, &[]), &KnownPath::default());
        assert_eq!((choice.mode, choice.reason), (Mode::Transparent, Some(Reason::Unknown)));
    }

    #[test]
    fn prefixes_port_ranges_and_marks_of_the_syn_match() {
        let only = |matches: FlowMatch| {
            let rule = FlowRule {
                matches,
                share: ShareConfig { weight: 7, ..ShareConfig::default() },
                ..FlowRule::default()
            };
            let mut config = GatewayConfig::default();
            config.rules.flows = vec![rule];
            config
        };
        let weight = |config: &GatewayConfig, packet: &Packet| {
            config.choose(&key(443), packet, &KnownPath::default()).share.weight
        };
        let plain = syn(443, &[]);
        let prefix = |text: &str| Some(text.parse().unwrap());
        for (matches, expected) in [
            (FlowMatch { client: prefix("10.0.0.0/8"), ..Default::default() }, 7),
            (FlowMatch { server: prefix("10.1.0.0/16"), ..Default::default() }, 1),
            (FlowMatch { server_ports: Some(400..=443), ..Default::default() }, 7),
            (FlowMatch { server_ports: Some(444..=500), ..Default::default() }, 1),
            (FlowMatch { dscp: Some(0), ..Default::default() }, 7),
            (FlowMatch { dscp: Some(46), ..Default::default() }, 1),
            (FlowMatch { vlan: Some(5), ..Default::default() }, 1),
        ] {
            assert_eq!(weight(&only(matches.clone()), &plain), expected, "{matches:?}");
        }
        let mut tagged = syn(443, &[]);
        let mut link = [0; 18];
        link[12..].copy_from_slice(&[0x81, 0x00, 0x20, 0x05, 0x08, 0x00]);
        tagged.set_link(&link);
        let vlan = only(FlowMatch { vlan: Some(5), ..Default::default() });
        assert_eq!(weight(&vlan, &tagged), 7);
        // After a restart the marks of a flow's SYN are unknown.
        assert_eq!(vlan.known_without_syn(&key(443)), (ShareConfig::default(), None));
    }

    #[test]
    fn a_rule_about_round_trips_matches_what_earlier_flows_showed() {
        let far = FlowMatch { rtt_min_ms: Some(200), ..Default::default() };
        let near = FlowMatch { rtt_max_ms: Some(50), ..Default::default() };
        let mut config = GatewayConfig::default();
        config.rules.flows = vec![
            FlowRule { matches: far, action: FlowAction::Split, ..Default::default() },
            FlowRule { matches: near, action: FlowAction::Pass, ..Default::default() },
        ];
        let mode = |client_ms: Option<u64>, server_ms: Option<u64>| {
            let rtt = client_ms.map(Duration::from_millis);
            let client = Some(ClientRecord { rtt, ..ClientRecord::default() });
            let known = KnownPath {
                client,
                server_rtt: server_ms.map(Duration::from_millis),
                ..KnownPath::default()
            };
            config.choose(&key(80), &syn(80, &[]), &known).mode
        };
        assert_eq!(mode(Some(150), Some(60)), Mode::Split(config.split.sender));
        assert_eq!(mode(Some(30), Some(10)), Mode::Pass(PassReason::Rule));
        assert_eq!(mode(Some(60), Some(60)), Mode::Transparent);
        // Only one of the two round trips is known.
        assert_eq!(mode(Some(300), None), Mode::Transparent);
        assert_eq!(mode(None, Some(300)), Mode::Transparent);
    }

    #[test]
    fn auto_decides_by_mode_and_by_rule_and_says_why() {
        let mut config = GatewayConfig { mode: FlowMode::Auto, ..GatewayConfig::default() };
        let matches = FlowMatch { server_ports: Some(22..=22), ..Default::default() };
        config.rules.flows = vec![FlowRule { matches, action: FlowAction::Pass, ..Default::default() }];
        let choose = |config: &GatewayConfig, port, known: &KnownPath| {
            let choice = config.choose(&key(port), &syn(port, &[]), known);
            (choice.mode, choice.reason)
        };
        let unknown = KnownPath::default();
        assert_eq!(choose(&config, 80, &unknown), (Mode::Transparent, Some(Reason::Unknown)));
        assert_eq!(choose(&config, 22, &unknown), (Mode::Pass(PassReason::Rule), None));
        let client = Some(ClientRecord { late_acks: Some(Instant::ZERO), ..ClientRecord::default() });
        let late = KnownPath { client, ..KnownPath::default() };
        assert!(matches!(choose(&config, 80, &late), (Mode::Split(_), Some(Reason::LateAcks))));
        config.mode = FlowMode::Transparent;
        assert_eq!(choose(&config, 80, &late), (Mode::Transparent, None));
        config.rules.flows[0].action = FlowAction::Auto;
        assert_eq!(choose(&config, 22, &late).1, Some(Reason::LateAcks));
    }

    #[test]
    fn what_must_not_be_edited_passes_whatever_the_rules_say() {
        let config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() };
        // Multipath TCP, MP_CAPABLE version 1 of a SYN (RFC 8684, Section 3.1).
        let multipath = syn(80, &[30, 4, 1, 1]);
        assert_eq!(
            config.choose(&key(80), &multipath, &KnownPath::default()).mode,
            Mode::Pass(PassReason::Mptcp)
        );
        let fast_open = syn(80, &[34, 2, 1, 1]);
        assert_eq!(config.choose(&key(80), &fast_open, &KnownPath::default()).mode, Mode::Transparent);
    }
}
