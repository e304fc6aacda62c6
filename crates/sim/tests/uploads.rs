//! Uploads of CUBIC clients through a gateway.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::Profile;
use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::result::Direction;
use paceline_sim::scenario::{Flow, GatewayAt, PathLink, Scenario, TcpFlow, Transport};
use paceline_tcp::{Config, CongestionName, ReceiveBuffer};
use paceline_wire::{Duration, Instant, Rate};

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

/// The bound on an upload counts clock drift from the flow's first packet, not from the machine's start. So a machine that
/// has been up for weeks takes no download's queue for the upload's.
#[test]
fn a_bound_upload_beside_a_download_has_the_same_after_weeks_of_uptime() {
    for profile in [Profile::Full, Profile::Split] {
        let config = profile.config();
        let [soon, late] = [60, 40 * 24 * 3_600].map(|begins_s| {
            let radio = |mbps| link(mbps, 1_000_000, 50);
            let wired = link(1_000.0, 10_000_000, 10);
            checked(Scenario {
                begins: Instant::ZERO + Duration::from_secs(begins_s),
                duration: Duration::from_secs(10),
                path: vec![
                    PathLink { name: "wired".into(), down: wired.clone(), up: wired },
                    PathLink { name: "radio".into(), down: radio(4.0), up: radio(1.0) },
                ],
                flows: vec![Flow { direction: Direction::Up, ..Flow::default() }, Flow::default()],
                gateway: Some(GatewayAt { links_before: 1, config: config.clone() }),
                ..Scenario::default()
            })
        });
        assert_eq!(soon, late, "{}", profile.name());
    }
}
