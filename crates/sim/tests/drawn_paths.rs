//! Downloads past a transparent gateway, over paths like those on which the drawn map found them worse off than without.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use paceline_gateway::GatewayConfig;
use paceline_path::random::Probability;
use paceline_path::{Delay, Jitter, LinkConfig, Loss, QueueLimit, RateProcess};
use paceline_sim::scenario::{Flow, GatewayAt, PathLink, Scenario, TcpFlow, Transport};
use paceline_tcp::{Config, CongestionName};
use paceline_wire::{Duration, Rate};

use kit::checked;

fn link(mbps: f64, queue_bytes: u64, rtt_ms: f64) -> LinkConfig {
    LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Bytes(queue_bytes),
        delay: Delay::Constant(Duration::from_secs_f64(rtt_ms / 2_000.0)),
        ..LinkConfig::default()
    }
}

/// A server, the link before the gateway, and what the radio link brings downwards.
struct Path {
    congestion: CongestionName,
    wired: LinkConfig,
    radio: LinkConfig,
}

impl Path {
    fn goodput_mbps(&self, seed: u64, gateway: Option<GatewayConfig>) -> f64 {
        let server = Config { congestion: self.congestion, ..Config::default() };
        let up = LinkConfig { loss: Loss::None, jitter: None, ..self.radio.clone() };
        let result = checked(Scenario {
            duration: Duration::from_secs(20),
            seed,
            path: vec![
                PathLink { name: "wired".into(), down: self.wired.clone(), up: self.wired.clone() },
                PathLink { name: "radio".into(), down: self.radio.clone(), up },
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

    /// Nobody is worse off.
    #[track_caller]
    fn gains(&self) {
        for seed in 1..4 {
            let passing = self.goodput_mbps(seed, None);
            let full = self.goodput_mbps(seed, Some(GatewayConfig::default()));
            assert!(full >= passing, "seed {seed}: {full:.2}, without a gateway {passing:.2} Mbit/s");
        }
    }
}

/// What the server does not hear of while the radio's losses are repaired it hears of in steps. Told at once it answered by a burst, of which three packets
/// fit into its buffer: it had .9 of what it has without a gateway.
#[test]
fn repairs_of_the_radios_losses_cost_the_server_no_burst() {
    let loss = Loss::Independent(Probability::from_ppm(10_000));
    Path {
        congestion: CongestionName::Cubic,
        wired: link(14.7, 4_500, 1.5),
        radio: LinkConfig { loss, ..link(7.8, 35_000, 16.0) },
    }
    .gains();
}

/// What a radio scheduler holds is on the path, and in no queue. A loss test by the shortest round trip left a third of the rate here: .5 to .9 of what
/// there is without a gateway.
#[test]
fn a_loss_test_over_radio_jitter_leaves_the_rate() {
    let loss = Loss::Independent(Probability::from_ppm(420));
    let jitter = Some(Jitter { up_to: Duration::from_millis(46), keep_order: true });
    Path {
        congestion: CongestionName::Reno,
        wired: link(1_000.0, 2_100_000, 10.8),
        radio: LinkConfig { loss, jitter, ..link(28.1, 19_600, 11.2) },
    }
    .gains();
}
