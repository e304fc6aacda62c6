//! What the SYNs of both ends agreed on, and the window scale option that the gateway adds for a client.

use paceline_wire::{Flags, Packet, Tcp};

use crate::counters::{Counters, PassReason};

/// The window shifts of a flow (RFC 7323, Section 2). Only they must survive a restart of the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shifts {
    /// The unit of the client's window fields is `1 << client`.
    pub client: u8,
    /// The server reads the client's window fields in units of `1 << shown`.
    pub shown: u8,
    /// The unit of the server's window fields is `1 << server`.
    pub server: u8,
    /// The gateway added the option for a client that lacks it. The server's windows are rescaled, too.
    pub added: bool,
}

impl Shifts {
    /// True if without a gateway an end would misread the other's windows.
    pub fn rescaled(self) -> bool {
        self.added || self.shown != self.client
    }

    /// Returns the bits by which others must shift window fields in place of the gateway. The client's are shifted to
    /// the right, the server's to the left.
    pub fn corrections(self) -> (u8, u8) {
        (self.shown.saturating_sub(self.client), if self.added { self.server } else { 0 })
    }

    /// Converts a window field of the client to bytes.
    pub(crate) fn client_window(self, field: u16) -> u64 {
        u64::from(field) << self.client
    }

    /// Converts a window field of the server to the one that the client is shown.
    pub(crate) fn server_field(self, field: u16) -> u16 {
        if self.added { (u64::from(field) << self.server).min(u64::from(u16::MAX)) as u16 } else { field }
    }
}

/// Smallest shift of a client that is left alone. Our choice: 65,535 << 5 is 2 MB, or 20 Mbit/s for 0.8 s. Clients with
/// fixed buffers use smaller shifts, which cannot show the data in flight while a hole is repaired.
const SUFFICIENT_SHIFT: u8 = 5;

/// Contents of a flow's SYNs.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Handshake {
    client_offer: Option<u8>,
    server_offer: Option<u8>,
    server_seen: bool,
    /// The shift that the server was shown instead of the client's own.
    shown: Option<u8>,
    client_sack: bool,
    server_sack: bool,
    /// The segment size that the client accepts, or the default of RFC 9293.
    pub(crate) mss: u16,
}

impl Handshake {
    /// Handles a SYN or SYN-ACK of the client. If `wanted`, adds a missing window scale option, and raises a small
    /// shift.
    pub(crate) fn on_client_syn(&mut self, packet: &mut Packet, wanted: Option<u8>, counters: &mut Counters) {
        let Some(tcp) = packet.tcp() else { return };
        self.client_offer = tcp.window_scale();
        self.client_sack = tcp.sack_permitted();
        // RFC 9293, Section 3.7.1: 536 where the option is missing. The 1220 of IPv6 is larger, so 536 is safe.
        self.mss = tcp.mss().unwrap_or(536).max(64);
        let server_can = !self.server_seen || self.server_offer.is_some();
        let (Some(shift), Some(mut tcp)) = (wanted.filter(|_| server_can), packet.tcp_mut()) else { return };
        if self.client_offer.is_some_and(|own| own >= shift.min(SUFFICIENT_SHIFT)) {
            return;
        }
        match tcp.add_syn_option_window_scale(shift) {
            Ok(()) => self.shown = Some(shift),
            Err(_) => counters.pass(PassReason::NoOptionRoom),
        }
    }

    /// Handles a SYN or SYN-ACK of the server. Removes the window scale option if the client did not send one.
    pub(crate) fn on_server_syn(&mut self, packet: &mut Packet) {
        let Some(tcp) = packet.tcp() else { return };
        self.server_seen = true;
        self.server_offer = tcp.window_scale();
        self.server_sack = tcp.sack_permitted();
        if self.shown.is_some()
            && self.client_offer.is_none()
            && self.server_offer.is_some()
            && let Some(mut tcp) = packet.tcp_mut()
        {
            tcp.remove_window_scale();
        }
    }

    /// True if both ends offered SACK.
    pub(crate) fn sack(&self) -> bool {
        self.client_sack && self.server_sack
    }

    /// Notes that a SACK block passed, which means that both ends offered SACK. A resumed flow has no other evidence.
    pub(crate) fn note_sack(&mut self) {
        (self.client_sack, self.server_sack) = (true, true);
    }

    /// Returns the shifts of the flow after both SYNs. Scaling needs both offers.
    pub(crate) fn shifts(&self) -> Shifts {
        match (self.shown, self.client_offer, self.server_offer) {
            (Some(shown), None, Some(server)) => Shifts { client: 0, shown, server, added: true },
            (shown, Some(client), Some(server)) => {
                Shifts { client, shown: shown.unwrap_or(client), server, added: false }
            }
            _ => Shifts::default(),
        }
    }
}

/// Returns why a flow that starts with this SYN must not be edited, if so (design, the gateway, 5).
pub(crate) fn must_pass(tcp: Tcp<'_>) -> Option<PassReason> {
    if tcp.flags().intersects(Flags::RST | Flags::FIN) {
        // A listener ignores a RST (RFC 9293, Section 3.10.7.2). Our choice for a FIN: no connection begins with its
        // end.
        Some(PassReason::Unacceptable)
    } else if tcp.covers_headers() {
        Some(PassReason::Authenticated)
    } else if tcp.mptcp() {
        Some(PassReason::Mptcp)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_rescaled_both_ways() {
        let shifts = Shifts { client: 0, shown: 7, server: 7, added: true };
        assert_eq!(shifts.client_window(17_520), 17_520);
        assert_eq!(shifts.server_field(502), 64_256);
        assert_eq!(shifts.server_field(u16::MAX), u16::MAX);
    }

    #[test]
    fn a_small_shift_is_raised_and_a_sufficient_one_left() {
        for (own, shown) in [(Some(2), 7), (Some(5), 5), (Some(8), 8), (None, 7)] {
            let address: core::net::SocketAddr = "10.0.0.1:80".parse().unwrap();
            let options =
                paceline_wire::TcpOptionsRepr { window_scale: own, mss: Some(1460), ..Default::default() };
            let syn =
                paceline_wire::TcpRepr { flags: paceline_wire::Flags::SYN, options, ..Default::default() };
            let key = paceline_wire::FlowKey { src: address, dst: address };
            let mut syn = Packet::build_tcp(key, &syn, paceline_wire::Payload::Length(0));
            let mut handshake = Handshake::default();
            handshake.on_client_syn(&mut syn, Some(7), &mut Counters::default());
            assert_eq!(syn.tcp().unwrap().window_scale(), Some(shown));
            handshake.server_offer = Some(7);
            let shifts = handshake.shifts();
            assert_eq!((shifts.client, shifts.shown, shifts.added), (own.unwrap_or(0), shown, own.is_none()));
        }
    }

    #[test]
    fn others_may_correct_windows() {
        let added = Shifts { client: 0, shown: 7, server: 9, added: true };
        assert_eq!(added.corrections(), (7, 9));
        let raised = Shifts { client: 3, shown: 7, server: 9, added: false };
        assert_eq!(raised.corrections(), (4, 0));
        assert_eq!(Shifts::default().corrections(), (0, 0));
    }

    #[test]
    fn a_flow_with_its_own_scaling_is_left_as_it_is() {
        let shifts = Shifts { client: 8, shown: 8, server: 7, added: false };
        assert_eq!(shifts.client_window(1), 256);
        assert_eq!(shifts.server_field(502), 502);
    }
}
