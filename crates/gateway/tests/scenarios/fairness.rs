//! Sharing between the flows of a subscriber (Chapter 7).

use std::collections::BTreeMap;

use paceline_gateway::Gateway;
use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{FlowMatch, FlowRule, ShareConfig};

use crate::kit::missed;
use crate::kit::record::mean_jain;
use crate::kit::scenario::{FlowSpec, Path, XP_WINDOW, at_ms, lossy, modern_client, world, xp_client};

/// The BDP is 108 KB at 100 ms.
fn path() -> Path {
    Path::new(8.64, 0, 100)
}

#[test]
fn two_flows_share_evenly_down_to_ten_milliseconds() {
    let mut sim = world(Gateway::new(GatewayConfig::default()), &path(), 1);
    let first = sim.add_flow(&FlowSpec::download(modern_client(128 << 10)).bytes(16 << 20));
    let second = sim.add_flow(&FlowSpec::download(modern_client(128 << 10)).bytes(16 << 20).starting(5_000));
    sim.run_until(at_ms(22_000));
    sim.checker.assert_clean();
    let flows = [sim.bins(first), sim.bins(second)];
    let figures: BTreeMap<usize, f64> =
        [100, 10, 1].map(|bins| (bins * 10, mean_jain(&flows, bins, 600, 2_200))).into();
    assert!(figures[&1000] >= 0.99 && figures[&100] >= 0.99 && figures[&10] >= 0.98, "{figures:?}");
}

#[test]
fn the_measured_path_is_shared_evenly_too() {
    let path = Path { loss: lossy(0.006), ..Path::new(5.4, 0, 85) };
    let mut sim = world(Gateway::new(GatewayConfig::default()), &path, 1);
    let first = sim.add_flow(&FlowSpec::download(xp_client(XP_WINDOW)));
    let second = sim.add_flow(&FlowSpec::download(xp_client(XP_WINDOW)));
    sim.run_until(at_ms(40_000));
    sim.checker.assert_clean();
    let index = mean_jain(&[sim.bins(first), sim.bins(second)], 10, 200, 4_000);
    // Bytes count in order at the client, where an open hole of one flow stands out. The lab counts what leaves the
    // link.
    missed("fairness on the measured path, in-order bytes in 100 ms", index, 0.99, 0.95);
}

#[test]
fn weights_give_their_ratios() {
    let rule = |port, weight| FlowRule {
        matches: FlowMatch { server_port: Some(port), ..FlowMatch::default() },
        share: ShareConfig { weight, ..ShareConfig::default() },
        ..FlowRule::default()
    };
    let mut config = GatewayConfig::default();
    config.sharing.flows = vec![rule(81, 1), rule(82, 2), rule(83, 3)];
    let mut sim = world(Gateway::new(config), &path(), 1);
    let flows = [81, 82, 83].map(|server_port| {
        sim.add_flow(&FlowSpec { server_port, ..FlowSpec::download(modern_client(128 << 10)) })
    });
    sim.run_until(at_ms(40_000));
    sim.checker.assert_clean();
    let [one, two, three] = flows.map(|flow| sim.goodput_between(flow, at_ms(10_000), at_ms(40_000)));
    assert!(
        (two / one / 2.0 - 1.0).abs() < 0.01 && (three / one / 3.0 - 1.0).abs() < 0.01,
        "{one} {two} {three}"
    );
    assert!(one + two + three > 0.95 * 8.64 * 1448.0 / 1500.0, "{one} {two} {three}");
}
