//! A split gateway between the host and what the script is: its connections as the wire sees them.

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{Instant, Node, Packet, PortId};

/// The gateway, and where the host is.
pub(crate) struct Middle {
    gateway: Gateway,
    host: PortId,
}

impl Middle {
    /// By what the host is: "server", behind the gateway's wired port, so that the script is its client, or "client"; none for anything else.
    pub(crate) fn beside(host: &str) -> Option<Middle> {
        let config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() };
        let host = match host {
            "server" => WAN,
            "client" => RADIO,
            _ => return None,
        };
        Some(Middle { gateway: Gateway::new(config), host })
    }

    /// The host sends.
    pub(crate) fn take_from_host(&mut self, now: Instant, packet: Packet) {
        self.gateway.handle_packet(now, self.host, packet);
    }

    /// The script sends.
    pub(crate) fn take_from_script(&mut self, now: Instant, packet: Packet) {
        self.gateway.handle_packet(now, if self.host == WAN { RADIO } else { WAN }, packet);
    }

    /// What leaves next, and whether for the host.
    pub(crate) fn next_packet(&mut self, now: Instant) -> Option<(bool, Packet)> {
        self.gateway.poll_transmit(now).map(|(port, packet)| (port == self.host, packet))
    }

    /// Timers that are due expire.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.gateway.handle_timeout(now);
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.gateway.poll_timeout()
    }
}
