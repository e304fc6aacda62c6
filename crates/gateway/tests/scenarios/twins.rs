//! A gateway that moves from process to process, beside one that stays.

use paceline_gateway::{Gateway, GatewayConfig, RestoredGateway, RestoredSplitFlow};
use paceline_wire::{Instant, Node, Packet, PortId};

/// Two gateways that get the same input. One moves from process to process, so to speak, whenever its turn comes.
pub struct Twins {
    pub config: GatewayConfig,
    pub stays: Gateway,
    pub moves: Gateway,
    /// Number of events between two moves that it makes by itself.
    every: u32,
    events: u32,
    pub moved: u32,
}

impl Twins {
    pub fn new(config: GatewayConfig, every: u32) -> Twins {
        let (stays, moves) = (Gateway::new(config.clone()), Gateway::new(config.clone()));
        Twins { config, stays, moves, every, events: 0, moved: 0 }
    }

    /// Moves one of the two to another process.
    pub fn move_now(&mut self) {
        let written = rmp_serde::to_vec_named(&self.moves.state()).unwrap();
        let read: RestoredGateway = rmp_serde::from_slice(&written).unwrap();
        let split = self.moves.split_states().map(|flow| {
            let written = rmp_serde::to_vec_named(&flow).unwrap();
            rmp_serde::from_slice(&written).unwrap()
        });
        let split: Vec<RestoredSplitFlow> = split.collect();
        self.moves = Gateway::take_over(self.config.clone(), Box::new(()), read, split);
        self.moved += 1;
    }

    fn moves_on(&mut self) {
        self.events += 1;
        if self.events.is_multiple_of(self.every) {
            self.move_now();
        }
    }
}

fn whole(packet: &Packet) -> impl PartialEq + std::fmt::Debug + use<> {
    (packet.to_vec(), packet.link().to_vec(), packet.gso_size(), packet.checksum(), packet.opaque_reason())
}

impl Node for Twins {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        self.stays.handle_packet(arrival, port, packet.clone());
        self.moves.handle_packet(arrival, port, packet);
        self.moves_on();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.stays.handle_timeout(now);
        self.moves.handle_timeout(now);
        self.moves_on();
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        let (one, other) = (self.stays.poll_transmit(now), self.moves.poll_transmit(now));
        let compared =
            |sent: &Option<(PortId, Packet)>| sent.as_ref().map(|(port, packet)| (*port, whole(packet)));
        assert_eq!(compared(&one), compared(&other), "at {now:?}, after {} moves", self.moved);
        one
    }

    fn poll_timeout(&self) -> Option<Instant> {
        assert_eq!(self.stays.poll_timeout(), self.moves.poll_timeout(), "after {} moves", self.moved);
        self.stays.poll_timeout()
    }
}
