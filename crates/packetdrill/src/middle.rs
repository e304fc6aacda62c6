//! A split gateway between the host and the script, whose connections appear on the wire.

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{Instant, Node, Packet, PortId};

/// The gateway, and the host's port.
pub(crate) struct Middle {
    gateway: Gateway,
    host: PortId,
}

impl Middle {
    /// Places the gateway beside the host. A "server" is behind the wired port, so that the script is its client. A
    /// "client" is behind the radio port. `None` for any other word.
    pub(crate) fn beside(host: &str) -> Option<Middle> {
        let config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() };
        let host = match host {
            "server" => WAN,
            "client" => RADIO,
            _ => return None,
        };
        Some(Middle { gateway: Gateway::new(config), host })
    }

    /// Takes a packet from the host.
    pub(crate) fn take_from_host(&mut self, now: Instant, packet: Packet) {
        self.gateway.handle_packet(now, self.host, packet);
    }

    /// Takes a packet from the script.
    pub(crate) fn take_from_script(&mut self, now: Instant, packet: Packet) {
        self.gateway.handle_packet(now, if self.host == WAN { RADIO } else { WAN }, packet);
    }

    /// The next leaving packet. True if it is for the host.
    pub(crate) fn next_packet(&mut self, now: Instant) -> Option<(bool, Packet)> {
        self.gateway.poll_transmit(now).map(|(port, packet)| (port == self.host, packet))
    }

    /// Handles expired timers.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.gateway.handle_timeout(now);
    }

    /// Time of the next timer.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.gateway.poll_timeout()
    }
}
