//! What came as super-packets leaves as super-packets, however many flows of a client take turns. Packets cost more
//! than bytes.

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_path::Delay;
use paceline_wire::{Duration, Instant, Node, Packet, PortId};

use crate::world::{FlowSpec, Path, World, at_ms, modern_client};

/// A gateway that counts the packets of data towards the clients.
struct Counted {
    gateway: Gateway,
    came: (u64, u64),
    left: (u64, u64),
    since: Instant,
}

fn count(counted: &mut (u64, u64), packet: &Packet) {
    counted.0 += 1;
    counted.1 += packet.payload().len() as u64;
}

impl Node for Counted {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        if port == WAN && !packet.payload().is_empty() && arrival >= self.since {
            count(&mut self.came, &packet);
        }
        self.gateway.handle_packet(arrival, port, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.gateway.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        let (port, packet) = self.gateway.poll_transmit(now)?;
        if port == RADIO && !packet.payload().is_empty() && now >= self.since {
            count(&mut self.left, &packet);
        }
        Some((port, packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.gateway.poll_timeout()
    }
}

/// Returns the mean payload of a packet from the servers, and of one to the client. There are eight flows, and the
/// last two of four seconds count.
fn mean_payloads(mode: FlowMode) -> (u64, u64) {
    let gateway = Gateway::new(GatewayConfig { mode, ..GatewayConfig::default() });
    let counted = Counted { gateway, came: (0, 0), left: (0, 0), since: at_ms(2_000) };
    // In a millisecond the link carries 25,000 bytes.
    let mut world = World::new(counted, &Path::new(200.0, 2, 10), 1);
    let mut spec = FlowSpec::download(modern_client(4 << 20));
    spec.server.gso_segments = 20;
    (0..8).for_each(|_| _ = world.add_flow(&spec));
    world.run_until(at_ms(4_000));
    let &Counted { came, left, .. } = world.gateway();
    assert!(left.1 * 8 > 2 * 180_000_000, "{mode:?}: the link is busy, {left:?}");
    (came.1 / came.0, left.1 / left.0)
}

#[test]
fn super_packets_stay_whole_where_flows_take_turns() {
    for mode in [FlowMode::Transparent, FlowMode::Split] {
        let (came, left) = mean_payloads(mode);
        assert!(left * 10 > came * 9, "{mode:?}: {left} bytes a packet of {came}");
    }
}

/// Returns the goodput of one flow over a short path, in Mbit/s.
fn over_a_short_path(mode: FlowMode) -> f64 {
    let mut path = Path::new(50.0, 2, 0);
    path.down.delay = Delay::Constant(Duration::from_micros(150));
    path.up.delay = path.down.delay.clone();
    let gateway = Gateway::new(GatewayConfig { mode, ..GatewayConfig::default() });
    let mut world = World::new(gateway, &path, 1);
    let mut spec = FlowSpec::download(modern_client(4 << 20));
    spec.server.gso_segments = 40;
    world.add_flow(&spec);
    world.goodputs_between(at_ms(2_000), at_ms(4_000))[0]
}

#[test]
fn a_super_packet_is_no_reason_for_a_short_link_to_run_dry() {
    for mode in [FlowMode::Transparent, FlowMode::Split] {
        let mbps = over_a_short_path(mode);
        assert!(mbps > 0.95 * 50.0 * 1_448.0 / 1_500.0, "{mode:?}: {mbps} Mbit/s");
    }
}
