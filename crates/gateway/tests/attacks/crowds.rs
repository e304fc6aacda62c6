//! Many events at the same moment.

use std::net::Ipv4Addr;

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Node, TcpOptionsRepr, TcpRepr};

use crate::world::{conspirators, header, open, segment, withstands};

/// Flows that time out together are removed over several turns. Packets are served between the turns.
#[test]
fn a_turn_of_timeouts_is_bounded() {
    const FLOWS: u32 = 5_000;
    for mode in [FlowMode::Transparent, FlowMode::Split] {
        let mut gateway = Gateway::new(GatewayConfig { mode, ..GatewayConfig::default() });
        let mut now = Instant::ZERO;
        let options = TcpOptionsRepr { mss: Some(1_460), ..Default::default() };
        for n in 0..FLOWS {
            let server = (Ipv4Addr::from(0x2000_0000 + (n << 8)), 443).into();
            let key = FlowKey { src: (Ipv4Addr::from(0x0a00_0000 + n), 1_024).into(), dst: server };
            gateway.handle_packet(
                now,
                RADIO,
                segment(key, TcpRepr { options, ..header(1, 0, Flags::SYN) }, &[]),
            );
        }
        while gateway.poll_transmit(now).is_some() {}
        assert_eq!(gateway.flows(), FLOWS as usize);
        now += Duration::from_secs(4 * 3_600);
        let mut turns = 0;
        while gateway.poll_timeout().is_some_and(|at| at <= now) {
            let before = gateway.flows();
            gateway.handle_timeout(now);
            while gateway.poll_transmit(now).is_some() {}
            assert!(before - gateway.flows() <= 512, "{mode:?}: {} of a turn", before - gateway.flows());
            turns += 1;
            assert!(turns < FLOWS, "{mode:?}");
        }
        assert_eq!(gateway.flows(), 0, "{mode:?}");
    }
}

/// A thousand clients open one flow each. The flows stand still, and were shown windows of 60 kB, which together are
/// all of the memory. The victim's window must not shrink.
#[test]
fn flows_that_stand_still_are_promised_little() {
    withstands(|world| {
        let options = TcpOptionsRepr { mss: Some(1_460), ..TcpOptionsRepr::default() };
        for n in world.gateway.flows() as u32..1_100 {
            let client = (Ipv4Addr::from(0x0a10_0000 + n), 1_024).into();
            open(world, FlowKey { src: client, ..conspirators(0) }, options);
        }
    });
}
