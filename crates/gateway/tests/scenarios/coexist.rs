//! An accelerated flow beside one that bypasses the gateway, and beside datagrams.

use std::net::SocketAddr;

use paceline_gateway::config::{FlowAction, FlowMatch, FlowRule};
use paceline_gateway::{Gateway, GatewayConfig};
use paceline_path::QueueLimit;
use paceline_wire::{FlowKey, Rate};

use crate::kit::at_least;
use crate::kit::host::Datagrams;
use crate::kit::scenario::{FlowSpec, Path, at_ms, modern_client, world};

const MBPS: f64 = 20.0;

/// Returns the shares of the accelerated and the bypassing flow. The bypassing flow begins `later_ms` later.
fn shares(udp: bool, later_ms: u64) -> [f64; 2] {
    let mut config = GatewayConfig::default();
    config.sharing.flows = vec![FlowRule {
        matches: FlowMatch { server_port: Some(81), ..FlowMatch::default() },
        action: FlowAction::Bypass,
        ..FlowRule::default()
    }];
    let path = Path { queue: QueueLimit::Bytes(250_000), ..Path::new(MBPS, 40, 60) };
    let mut sim = world(Gateway::new(config), &path, 1);
    let spec = FlowSpec::download(modern_client(6 << 20));
    let accelerated = sim.add_flow(&spec);
    let bypassing = sim.add_flow(&FlowSpec { server_port: 81, ..spec }.starting(later_ms));
    if udp {
        let (from, to) = (sim.servers[0].address, sim.clients[0].address);
        sim.servers[0].host.send_datagrams(Datagrams {
            key: FlowKey::new(SocketAddr::new(from, 5_000), SocketAddr::new(to, 5_000)),
            rate: Rate::from_mbps(MBPS / 2.0),
            ip_len: 1_400,
            from: at_ms(0),
            to: at_ms(60_000),
        });
    }
    sim.run_until(at_ms(60_000));
    sim.checker.assert_clean();
    let link = if udp { MBPS / 2.0 } else { MBPS } * 1448.0 / 1500.0;
    [accelerated, bypassing].map(|flow| sim.goodput_between(flow, at_ms(10_000), at_ms(60_000)) / link)
}

/// In a single run the shares depend on chance: the losses of one more slow start decide them.
const STARTS_MS: [u64; 6] = [0, 10, 20, 30, 40, 50];

#[test]
fn each_gets_its_part() {
    for udp in [false, true] {
        let mut smaller = 0.0;
        for later_ms in STARTS_MS {
            let [accelerated, bypassing] = shares(udp, later_ms);
            println!(
                "datagrams {udp}, {later_ms} ms: accelerated {accelerated:.3}, bypassing {bypassing:.3}"
            );
            smaller += accelerated.min(bypassing) / STARTS_MS.len() as f64;
        }
        let name = if udp { "coexist with datagrams: the smaller part" } else { "coexist: the smaller part" };
        at_least(name, smaller, 0.4);
    }
}
