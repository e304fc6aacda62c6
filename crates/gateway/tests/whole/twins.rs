//! Two gateways that are told the same. One goes from process to process, so to speak, when its turn comes, and behaves to the bit
//! as the one that stays.

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, SplitTakenOver, TakenOver};
use paceline_wire::{Instant, Node, Packet, PortId};

use crate::exercise::check;
use crate::world::Middle;

pub(crate) struct Twins {
    config: GatewayConfig,
    stays: Gateway,
    moves: Gateway,
}

impl Twins {
    pub(crate) fn new(config: GatewayConfig) -> Twins {
        let (stays, moves) = (Gateway::new(config.clone()), Gateway::new(config.clone()));
        Twins { config, stays, moves }
    }
}

fn whole(packet: &Packet) -> impl PartialEq + std::fmt::Debug + use<> {
    (packet.to_vec(), packet.link().to_vec(), packet.gso_size(), packet.checksum(), packet.opaque_reason())
}

impl Middle for Twins {
    fn makes_acks(&self) -> bool {
        self.config.mode != FlowMode::Transparent
    }

    fn turn(&mut self, _: u8) {
        let written = rmp_serde::to_vec_named(&self.moves.state()).unwrap();
        let read: TakenOver = rmp_serde::from_slice(&written).unwrap();
        let split = self.moves.split_states().map(|flow| {
            let written = rmp_serde::to_vec_named(&flow).unwrap();
            rmp_serde::from_slice(&written).unwrap()
        });
        let split: Vec<SplitTakenOver> = split.collect();
        self.moves = Gateway::take_over(self.config.clone(), Box::new(()), read, split);
    }

    fn check(&self) {
        check(&self.moves, &self.config);
        assert_eq!(self.moves.buffered_bytes(), self.stays.buffered_bytes());
    }
}

impl Node for Twins {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        self.stays.handle_packet(arrival, port, packet.clone());
        self.moves.handle_packet(arrival, port, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.stays.handle_timeout(now);
        self.moves.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        let (one, other) = (self.stays.poll_transmit(now), self.moves.poll_transmit(now));
        let compared =
            |sent: &Option<(PortId, Packet)>| sent.as_ref().map(|(port, packet)| (*port, whole(packet)));
        assert_eq!(compared(&one), compared(&other), "at {now:?}");
        one
    }

    fn poll_timeout(&self) -> Option<Instant> {
        assert_eq!(self.stays.poll_timeout(), self.moves.poll_timeout());
        self.stays.poll_timeout()
    }
}
