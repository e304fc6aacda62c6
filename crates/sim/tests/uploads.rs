//! An upload of a CUBIC client through a transparent gateway to a server far away.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use paceline_gateway::GatewayConfig;
use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::result::Direction;
use paceline_sim::scenario::{Flow, GatewayAt, PathLink, Scenario, TcpFlow, Transport};
use paceline_tcp::{Config, CongestionName, ReceiveBuffer};
use paceline_wire::{Duration, Rate};

use kit::checked;

fn link(mbps: f64, queue_bytes: u64, rtt_ms: u64) -> LinkConfig {
    LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Bytes(queue_bytes),
        delay: Delay::Constant(Duration::from_millis(rtt_ms) / 2),
        ..LinkConfig::default()
    }
}

fn goodput_mbps(wired_ms: u64, gateway: Option<GatewayConfig>) -> f64 {
    let wired = link(116.0, 1_380_000, wired_ms);
    let radio = |mbps, queue| link(mbps, queue, 49);
    let tcp = TcpFlow {
        client: Config { congestion: CongestionName::Cubic, ..Config::default() },
        server: Config { receive_buffer: ReceiveBuffer::Fixed(6 << 20), ..Config::default() },
        ..TcpFlow::default()
    };
    let result = checked(Scenario {
        duration: Duration::from_secs(15),
        path: vec![
            PathLink { name: "wired".into(), down: wired.clone(), up: wired },
            PathLink { name: "radio".into(), down: radio(116.0, 5_280_000), up: radio(45.6, 474_000) },
        ],
        flows: vec![Flow {
            transport: Transport::Tcp(Box::new(tcp)),
            direction: Direction::Up,
            ..Flow::default()
        }],
        gateway: gateway.map(|config| GatewayAt { links_before: 1, config }),
        ..Scenario::default()
    });
    result.flows[0].goodput_mbps
}

/// Slow start overflows the uplink. Behind the first hole, the window moves on by the server's SACK reports. So no data
/// is held back. Held data would leave at once when the hole is filled, and be lost.
#[test]
fn the_first_recovery_is_not_held_by_the_window() {
    for wired_ms in [165, 170, 175] {
        let passing = goodput_mbps(wired_ms, None);
        let full = goodput_mbps(wired_ms, Some(GatewayConfig::default()));
        assert!(full >= 0.97 * passing, "{wired_ms} ms: {full:.1}, without a gateway {passing:.1}");
    }
}
