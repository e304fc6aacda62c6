//! Notices swapped interfaces: connections are opened from the side of the servers.

use paceline_gateway::{RADIO, WAN};
use paceline_wire::{Flags, Packet, PortId};

/// Observes which side opens connections, until that is clear.
#[derive(Debug, Default)]
pub(super) struct SideDetector {
    by_servers: u32,
    is_clear: bool,
}

impl SideDetector {
    /// Examines a packet. True once, when the interfaces are found to be swapped.
    pub(super) fn are_swapped(&mut self, port: PortId, packet: &Packet) -> bool {
        if self.is_clear || !packet.tcp().is_some_and(|tcp| is_first(tcp.flags())) {
            return false;
        }
        match port {
            // A client opens a connection.
            RADIO => self.is_clear = true,
            // Either a server opens a connection to a client, as in FTP, or the interfaces are swapped.
            WAN => self.by_servers += 1,
            _ => {}
        }
        let are_swapped = self.by_servers >= OPENED_BY_SERVERS_MAX;
        self.is_clear |= are_swapped;
        are_swapped
    }
}

/// True for a SYN that is not an answer.
fn is_first(flags: Flags) -> bool {
    flags.contains(Flags::SYN) && !flags.contains(Flags::ACK)
}

/// Our choice: where servers open connections to clients, the clients also open some among the first twenty.
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
        let mut swapped = SideDetector::default();
        let told: Vec<usize> = (0..60).filter(|_| swapped.are_swapped(WAN, &opens)).collect();
        assert_eq!(told, [19]);
        let mut right = SideDetector::default();
        for round in 0..60 {
            assert!(!right.are_swapped(WAN, &answers));
            assert!(!right.are_swapped(if round == 10 { RADIO } else { WAN }, &opens));
        }
    }
}
