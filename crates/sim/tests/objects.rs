//! A short transfer is no slower through the gateway than without it, on any path. Slow start must not meet a limit of
//! the gateway.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::FlowMode;
use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::run;
use paceline_sim::scenario::{Flow, GatewayAt, Load, PathLink, Scenario, TcpFlow, Transport};
use paceline_sim::workload::SizeRange;
use paceline_wire::{Duration, Rate};

/// A path: rate of the radio link in Mbit/s, round trips of the wired part and of the radio link in ms.
type Path = (f64, u64, u64);

const PATHS: [Path; 6] =
    [(20.0, 20, 80), (20.0, 40, 60), (100.0, 30, 50), (300.0, 30, 50), (50.0, 150, 20), (50.0, 0, 100)];

fn scenario((mbps, wired_ms, radio_ms): Path, bytes: u64, gateway: Option<FlowMode>) -> Scenario {
    let link = |mbps, rtt_ms| LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        delay: Delay::Constant(Duration::from_micros(rtt_ms * 500)),
        queue: QueueLimit::Packets(1_000),
        ..LinkConfig::default()
    };
    let gateway = gateway.map(|mode| GatewayAt {
        links_before: 1,
        config: GatewayConfig { mode, ..GatewayConfig::default() },
    });
    let load = Load::Size(SizeRange { min: bytes, max: bytes });
    let objects = Flow {
        transport: Transport::Tcp(Box::new(TcpFlow { load, ..TcpFlow::default() })),
        count: 3,
        sequential: true,
        interval: Duration::from_millis(300),
        ..Flow::default()
    };
    Scenario {
        duration: Duration::from_secs(20),
        seed: 1,
        path: vec![
            PathLink { name: "wired".into(), down: link(1_000.0, wired_ms), up: link(1_000.0, wired_ms) },
            PathLink { name: "radio".into(), down: link(mbps, radio_ms), up: link(mbps, radio_ms) },
        ],
        gateway,
        flows: vec![objects],
        checked: true,
        ..Scenario::default()
    }
}

fn completions(path: Path, bytes: u64, gateway: Option<FlowMode>) -> Vec<f64> {
    let result = run(&scenario(path, bytes, gateway)).unwrap();
    assert_eq!(result.findings, Vec::<String>::new());
    result.flows.iter().map(|flow| flow.completion_s.unwrap()).collect()
}

#[test]
fn an_object_alone_is_no_later_than_without() {
    let mut later = String::new();
    for path in PATHS {
        for bytes in [10_000, 100_000, 300_000, 1_000_000, 3_000_000] {
            let without = completions(path, bytes, None);
            for mode in [FlowMode::Transparent, FlowMode::Auto] {
                let with = completions(path, bytes, Some(mode));
                if with.iter().zip(&without).any(|(with, without)| *with > without * 1.02) {
                    later +=
                        &format!("{path:?}, {bytes} bytes, {mode:?}: {with:.3?} s, without {without:.3?}\n");
                }
            }
        }
    }
    assert!(later.is_empty(), "\n{later}");
}
