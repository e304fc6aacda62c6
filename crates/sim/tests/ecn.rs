//! ECN across a gateway: in transparent mode the two ends use it, in split mode nobody does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::FlowMode;
use paceline_path::{Aqm, CodelConfig, Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::result::{Direction, LinkResult, RunResult};
use paceline_sim::scenario::{Flow, GatewayAt, PathLink, Scenario, TcpFlow, Transport};
use paceline_tcp::Config;
use paceline_wire::{Duration, Rate};

use kit::checked;

fn link(mbps: f64, ms: u64) -> LinkConfig {
    LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Bytes(2_000_000),
        delay: Delay::Constant(Duration::from_millis(ms)),
        ..LinkConfig::default()
    }
}

fn marking(mbps: f64, ms: u64) -> LinkConfig {
    LinkConfig { aqm: Aqm::Codel(CodelConfig { ecn: true, ..CodelConfig::default() }), ..link(mbps, ms) }
}

/// 20 s over two links with a gateway between them. Both ends know ECN.
fn transfer(
    mode: Option<FlowMode>,
    direction: Direction,
    wired: [LinkConfig; 2],
    radio: [LinkConfig; 2],
) -> RunResult {
    let ecn = Config { ecn: true, ..Config::default() };
    let [down, up] = wired;
    let [radio_down, radio_up] = radio;
    checked(Scenario {
        duration: Duration::from_secs(20),
        path: vec![
            PathLink { name: "wired".into(), down, up },
            PathLink { name: "radio".into(), down: radio_down, up: radio_up },
        ],
        gateway: mode.map(|mode| GatewayAt {
            links_before: 1,
            config: GatewayConfig { mode, ..GatewayConfig::default() },
        }),
        flows: vec![Flow {
            transport: Transport::Tcp(Box::new(TcpFlow { server: ecn, client: ecn, ..TcpFlow::default() })),
            direction,
            ..Flow::default()
        }],
        ..Scenario::default()
    })
}

fn dropped_early(link: &LinkResult) -> u64 {
    link.drops_by_cause.get("aqm").copied().unwrap_or(0)
}

/// The bottleneck is before the gateway or behind it, towards the client or towards the server.
#[test]
fn marks_and_echoes_pass_a_transparent_gateway() {
    let fast = || link(100.0, 10);
    let cases = [
        ("wired_down", Direction::Down, [marking(10.0, 10), fast()], [fast(), fast()]),
        ("radio_down", Direction::Down, [fast(), fast()], [marking(10.0, 10), fast()]),
        ("radio_up", Direction::Up, [fast(), fast()], [fast(), marking(10.0, 10)]),
        ("wired_up", Direction::Up, [fast(), marking(10.0, 10)], [fast(), fast()]),
    ];
    for (name, direction, wired, radio) in cases {
        let with = transfer(Some(FlowMode::Transparent), direction, wired.clone(), radio.clone());
        let without = transfer(None, direction, wired, radio);
        for (result, gateway) in [(&with, true), (&without, false)] {
            let (flow, link) = (&result.flows[0], &result.links[name]);
            let what = format!("{name}, gateway {gateway}: {flow:?} {link:?}");
            assert_eq!((link.drops, flow.retransmitted_segments), (0, 0), "{what}");
            assert!(flow.goodput_mbps > 8.5, "{what}");
            // On the link that the gateway limits, its bound leaves nothing to mark.
            let held = gateway && name == "radio_down";
            assert!(held || link.marks > 3, "{what}");
            // Without an answer to the marks, the queue would be 1.6 s long.
            assert!(link.queue_delay_ms.p95.unwrap() < 60.0, "{what}");
        }
    }
}

/// Each end asks for ECN. The gateway does not tell it that the other end asks, too.
#[test]
fn a_split_gateway_agrees_to_nothing() {
    let fast = || link(100.0, 10);
    for direction in [Direction::Down, Direction::Up] {
        for name in ["wired", "radio"] {
            let slow = || [marking(10.0, 10), marking(10.0, 10)];
            let (wired, radio) = match name {
                "wired" => (slow(), [fast(), fast()]),
                _ => ([fast(), fast()], slow()),
            };
            let result = transfer(Some(FlowMode::Split), direction, wired, radio);
            let marks: u64 = result.links.values().map(|link| link.marks).sum();
            assert_eq!(marks, 0, "{name}: {:?}", result.links);
            assert!(result.flows[0].goodput_mbps > 8.0, "{name}: {:?}", result.flows);
            let early: u64 = result.links.values().map(dropped_early).sum();
            // If the gateway itself holds the queue, CoDel has nothing to do.
            let held = direction == Direction::Down && name == "radio";
            assert!(held || early > 0, "{name}: {:?}", result.links);
        }
    }
}
