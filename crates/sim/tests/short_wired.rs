//! A download past a transparent gateway, whose server has a short buffer before it and a radio link that loses packets behind it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use paceline_gateway::GatewayConfig;
use paceline_path::random::Probability;
use paceline_path::{Delay, LinkConfig, Loss, QueueLimit, RateProcess};
use paceline_sim::scenario::{Flow, GatewayAt, PathLink, Scenario, TcpFlow, Transport};
use paceline_tcp::{Config, CongestionName};
use paceline_wire::{Duration, Rate};

use kit::checked;

fn link(mbps: f64, queue_bytes: u64, rtt_ms: f64, loss: Loss) -> LinkConfig {
    LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Bytes(queue_bytes),
        delay: Delay::Constant(Duration::from_secs_f64(rtt_ms / 2_000.0)),
        loss,
        ..LinkConfig::default()
    }
}

fn goodput_mbps(seed: u64, gateway: Option<GatewayConfig>) -> f64 {
    let wired = link(14.7, 4_500, 1.5, Loss::None);
    let radio = |loss| link(7.8, 35_000, 16.0, loss);
    let server = Config { congestion: CongestionName::Cubic, ..Config::default() };
    let lossy = Loss::Independent(Probability::from_ppm(10_000));
    let result = checked(Scenario {
        duration: Duration::from_secs(20),
        seed,
        path: vec![
            PathLink { name: "wired".into(), down: wired.clone(), up: wired },
            PathLink { name: "radio".into(), down: radio(lossy), up: radio(Loss::None) },
        ],
        flows: vec![Flow {
            transport: Transport::Tcp(Box::new(TcpFlow { server, ..TcpFlow::default() })),
            ..Flow::default()
        }],
        gateway: gateway.map(|config| GatewayAt { links_before: 1, config }),
        ..Scenario::default()
    });
    result.flows[0].goodput_mbps
}

/// What the server does not hear of while the radio's losses are repaired it hears of in steps. Told at once it answered by a burst, of which three packets
/// fit into its buffer: it had .9 of what it has without a gateway.
#[test]
fn repairs_of_the_radios_losses_cost_the_server_no_burst() {
    for seed in 1..4 {
        let passing = goodput_mbps(seed, None);
        let full = goodput_mbps(seed, Some(GatewayConfig::default()));
        assert!(full >= 1.05 * passing, "seed {seed}: {full:.2}, without a gateway {passing:.2} Mbit/s");
    }
}
