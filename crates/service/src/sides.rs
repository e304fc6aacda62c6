//! Notices interfaces that are swapped: connections come from the side where servers should be.

use paceline_gateway::{RADIO, WAN};
use paceline_wire::{Flags, Packet, PortId};

/// Who opens connections, until that is clear.
#[derive(Debug, Default)]
pub(super) struct Sides {
    by_servers: u32,
    is_clear: bool,
}

impl Sides {
    /// Looks at a packet; true once, when the interfaces must be swapped.
    pub(super) fn are_swapped(&mut self, port: PortId, packet: &Packet) -> bool {
        if self.is_clear || !packet.tcp().is_some_and(|tcp| is_first(tcp.flags())) {
            return false;
        }
        match port {
            // A client.
            RADIO => self.is_clear = true,
            // A server that opens a connection to a client, as FTP's, or what is swapped.
            WAN => self.by_servers += 1,
            _ => {}
        }
        let are_swapped = self.by_servers >= OPENED_BY_SERVERS_MAX;
        self.is_clear |= are_swapped;
        are_swapped
    }
}

/// A SYN that answers none.
fn is_first(flags: Flags) -> bool {
    flags.contains(Flags::SYN) && !flags.contains(Flags::ACK)
}

/// Our choice: a network whose clients are opened connections to has some opened by them among the first twenty.
const OPENED_BY_SERVERS_MAX: u32 = 20;

#[cfg(test)]
mod tests {
    use paceline_wire::{FlowKey, Payload, TcpRepr};

    use super::*;

    fn packet(flags: Flags) -> Packet {
        let flow = FlowKey { src: "10.0.0.2:4000".parse().unwrap(), dst: "10.0.0.1:80".parse().unwrap() };
        Packet::build_tcp(flow, &TcpRepr { flags, ..TcpRepr::default() }, Payload::default())
    }

    #[test]
    fn only_servers_that_open_everything_are_clients() {
        let (opens, answers) = (packet(Flags::SYN), packet(Flags::SYN | Flags::ACK));
        let mut swapped = Sides::default();
        let told: Vec<usize> = (0..60).filter(|_| swapped.are_swapped(WAN, &opens)).collect();
        assert_eq!(told, [19]);
        let mut right = Sides::default();
        for round in 0..60 {
            assert!(!right.are_swapped(WAN, &answers));
            assert!(!right.are_swapped(if round == 10 { RADIO } else { WAN }, &opens));
        }
    }
}
