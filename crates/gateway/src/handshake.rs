//! The SYNs: what the two ends agreed on, and the window scale option that a client lacks.

use paceline_wire::{Flags, Packet, Tcp};

use crate::counters::{Counters, PassReason};

/// The window shifts of a flow (RFC 7323, Section 2): all that must survive a restart of the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shifts {
    /// The client's windows are in units of `1 << client`.
    pub client: u8,
    /// The server takes the client's windows to be in units of `1 << shown`.
    pub shown: u8,
    /// The server's windows are in units of `1 << server`.
    pub server: u8,
    /// The option was added for a client that lacks it: the server's windows are rescaled, too.
    pub added: bool,
}

impl Shifts {
    /// The server takes the client's windows for something else than the client: without a gateway they are misread.
    pub fn rescaled(self) -> bool {
        self.added || self.shown != self.client
    }

    /// How far others have to shift the window fields where the gateway cannot: those of the client to the right, those of the
    /// server to the left.
    pub fn corrections(self) -> (u8, u8) {
        (self.shown.saturating_sub(self.client), if self.added { self.server } else { 0 })
    }

    /// A window field of the client, in bytes.
    pub(crate) fn client_window(self, field: u16) -> u64 {
        u64::from(field) << self.client
    }

    /// The field that shows the client the server's window.
    pub(crate) fn server_field(self, field: u16) -> u16 {
        if self.added { (u64::from(field) << self.server).min(u64::from(u16::MAX)) as u16 } else { field }
    }
}

/// A client's own shift is left alone from here on: 65,535 << 5 is 2 MB, or 20 Mbit/s for 0.8 s. Our choice; a smaller one, as
/// clients with fixed buffers have, cannot show what is in flight while a hole is repaired.
const SUFFICIENT_SHIFT: u8 = 5;

/// What has been seen of a flow's SYNs.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Handshake {
    client_offer: Option<u8>,
    server_offer: Option<u8>,
    server_seen: bool,
    /// The shift that the server was shown instead of the client's own.
    shown: Option<u8>,
    client_sack: bool,
    server_sack: bool,
    /// Segment size that the client accepts, or the default of RFC 9293.
    pub(crate) mss: u16,
}

impl Handshake {
    /// A SYN or SYN-ACK of the client passes: adds the window scale option if it is missing, and raises a small shift, where
    /// `wanted`.
    pub(crate) fn on_client_syn(&mut self, packet: &mut Packet, wanted: Option<u8>, counters: &mut Counters) {
        let Some(tcp) = packet.tcp() else { return };
        self.client_offer = tcp.window_scale();
        self.client_sack = tcp.sack_permitted();
        // RFC 9293, Section 3.7.1: 536 where the option is missing (1220 for IPv6 is larger, so this is safe).
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

    /// A SYN or SYN-ACK of the server passes: takes the option off if the client did not send it.
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

    /// Both sides offered SACK.
    pub(crate) fn sack(&self) -> bool {
        self.client_sack && self.server_sack
    }

    /// A SACK block passed, so both sides did: all that a resumed flow has to go by.
    pub(crate) fn note_sack(&mut self) {
        (self.client_sack, self.server_sack) = (true, true);
    }

    /// What holds once both SYNs are through. Scaling needs both offers.
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

/// Why a flow that starts with this SYN must not be edited (design, the gateway, 5).
pub(crate) fn must_pass(tcp: Tcp<'_>) -> Option<PassReason> {
    if tcp.flags().intersects(Flags::RST | Flags::FIN) {
        // A listener ignores a RST (RFC 9293, Section 3.10.7.2). Our choice for a FIN: nobody begins with the end.
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
