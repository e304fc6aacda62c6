//! What becomes of a new flow: the one place where its SYN decides.

use paceline_wire::{FlowKey, Packet};

use crate::config::{FlowAction, FlowMode, FlowRule, GatewayConfig, ShareConfig};
use crate::counters::PassReason;
use crate::handshake::must_pass;
use crate::split::SenderConfig;

/// What becomes of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is forwarded unchanged.
    Pass(PassReason),
    /// It is accelerated; its ends keep talking to each other.
    Transparent,
    /// Each end talks to the gateway; this sends to the client.
    Split(SenderConfig),
}

/// All that is decided about a new flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What becomes of it.
    pub mode: Mode,
    /// What it may have of its subscriber's link.
    pub share: ShareConfig,
}

impl GatewayConfig {
    /// Decides about the flow (client to server) that begins with `syn`.
    pub fn choose(&self, client_to_server: &FlowKey, syn: &Packet) -> Choice {
        let rule = self.rule(client_to_server);
        let share = rule.map_or_else(ShareConfig::default, |rule| rule.share.clone());
        let Some(tcp) = syn.tcp() else {
            return Choice { mode: Mode::Pass(PassReason::NotTcp), share };
        };
        if let Some(reason) = must_pass(tcp) {
            return Choice { mode: Mode::Pass(reason), share };
        }
        let split = match tcp.fast_open() || tcp.payload_len() > 0 {
            // Data in a SYN is the server's to take or to refuse (RFC 7413).
            true => Mode::Transparent,
            false => Mode::Split(rule.and_then(|rule| rule.sender).unwrap_or(self.split.sender)),
        };
        let mode = match rule.map_or(FlowAction::Accelerate, |rule| rule.action) {
            FlowAction::Bypass => Mode::Pass(PassReason::Rule),
            FlowAction::Transparent => Mode::Transparent,
            FlowAction::Split => split,
            FlowAction::Accelerate if self.mode == FlowMode::Split => split,
            FlowAction::Accelerate => Mode::Transparent,
        };
        Choice { mode, share }
    }

    /// What a flow may have of its subscriber's link.
    pub(crate) fn share(&self, client_to_server: &FlowKey) -> ShareConfig {
        self.rule(client_to_server).map_or_else(ShareConfig::default, |rule| rule.share.clone())
    }

    /// The first rule that matches.
    fn rule(&self, key: &FlowKey) -> Option<&FlowRule> {
        self.sharing.flows.iter().find(|rule| {
            let wanted = &rule.matches;
            wanted.client.is_none_or(|a| a == key.src.ip())
                && wanted.server.is_none_or(|a| a == key.dst.ip())
                && wanted.server_port.is_none_or(|p| p == key.dst.port())
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use paceline_wire::{Flags, Payload, TcpOptionsRepr, TcpRepr};

    use super::*;
    use crate::config::FlowMatch;

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
        let matches = |port| FlowMatch { server_port: Some(port), ..Default::default() };
        let own = SenderConfig { initial_window: 3, ..SenderConfig::default() };
        config.sharing.flows = vec![
            FlowRule { matches: matches(22), action: FlowAction::Bypass, ..Default::default() },
            FlowRule {
                matches: matches(80),
                action: FlowAction::Transparent,
                share: ShareConfig { weight: 2, ..Default::default() },
                sender: None,
            },
            FlowRule { matches: matches(443), sender: Some(own), ..Default::default() },
        ];
        let mode = |port| config.choose(&key(port), &syn(port, &[])).mode;
        assert_eq!(mode(22), Mode::Pass(PassReason::Rule));
        assert_eq!(mode(80), Mode::Transparent);
        assert_eq!(mode(443), Mode::Split(own));
        assert_eq!(mode(8080), Mode::Split(config.split.sender));
        assert_eq!(config.choose(&key(80), &syn(80, &[])).share.weight, 2);
        assert_eq!(GatewayConfig::default().choose(&key(80), &syn(80, &[])).mode, Mode::Transparent);
    }

    #[test]
    fn what_must_not_be_edited_passes_whatever_the_rules_say() {
        let config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() };
        // Multipath TCP, MP_CAPABLE version 1 of a SYN (RFC 8684, Section 3.1).
        let multipath = syn(80, &[30, 4, 1, 1]);
        assert_eq!(config.choose(&key(80), &multipath).mode, Mode::Pass(PassReason::Mptcp));
        let fast_open = syn(80, &[34, 2, 1, 1]);
        assert_eq!(config.choose(&key(80), &fast_open).mode, Mode::Transparent);
    }
}
