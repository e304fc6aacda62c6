//! Priorities, guaranteed rates and ceilings (Section 9.3), of flows and of subscribers.

use paceline_gateway::config::{FlowMatch, FlowMode, FlowRule, ShareConfig, SubscriberRule};
use paceline_gateway::{Gateway, GatewayConfig};

use crate::kit::scenario::{Flow, FlowSpec, Path, address, at_ms, modern_client, world};
use crate::kit::sim::Sim;

/// IP rate of the radio link, and payload's share of it.
const LINK_MBPS: f64 = 8.64;
const PAYLOAD: f64 = 1_448.0 / 1_500.0;

const MODES: [FlowMode; 2] = [FlowMode::Transparent, FlowMode::Split];

/// Returns flows of one client to ports 81, 82, ..., with one of `shares` each. `work` has the start of each flow in
/// milliseconds and its bytes.
fn flows(mode: FlowMode, shares: &[ShareConfig], work: &[(u64, Option<u64>)]) -> (Sim<Gateway>, Vec<Flow>) {
    let rules = shares.iter().enumerate().map(|(n, share)| FlowRule {
        matches: FlowMatch { server_port: Some(81 + n as u16), ..FlowMatch::default() },
        share: share.clone(),
        ..FlowRule::default()
    });
    let mut config = GatewayConfig { mode, ..GatewayConfig::default() };
    config.sharing.flows = rules.collect();
    config.check().unwrap();
    let mut sim = world(Gateway::new(config), &Path::new(LINK_MBPS, 20, 80), 1);
    let added = work.iter().enumerate().map(|(n, &(start, bytes))| {
        let spec = FlowSpec { server_port: 81 + n as u16, ..FlowSpec::download(modern_client(256 << 10)) };
        sim.add_flow(&bytes.map_or(spec.clone(), |bytes| spec.bytes(bytes)).starting(start))
    });
    let added = added.collect();
    (sim, added)
}

fn share(priority: u8) -> ShareConfig {
    ShareConfig { priority, ..ShareConfig::default() }
}

#[test]
fn the_higher_priority_goes_first_and_the_lower_takes_what_is_left() {
    MODES.into_iter().for_each(the_higher_priority_goes_first_and_the_lower_takes_what_is_left_in);
}

fn the_higher_priority_goes_first_and_the_lower_takes_what_is_left_in(mode: FlowMode) {
    // The first flow sends for some seconds in the middle.
    let (mut sim, flows) = flows(mode, &[share(7), share(0)], &[(5_000, Some(8_000_000)), (0, None)]);
    sim.run_until(at_ms(40_000));
    if mode == FlowMode::Transparent {
        sim.checker.assert_clean();
    }
    let [high, low] = [(7_000, 11_000), (20_000, 40_000)]
        .map(|(from, to)| sim.goodput_between(flows[1], at_ms(from), at_ms(to)));
    let report = sim.download(flows[0]);
    assert!(report.goodput_mbps > 0.9 * LINK_MBPS * PAYLOAD, "the first alone: {report:?}");
    assert!(high < 0.05 * LINK_MBPS, "beside the first: {high}");
    assert!(low > 0.95 * LINK_MBPS * PAYLOAD, "alone again: {low}");
}

#[test]
fn a_guarantee_holds_against_any_priority() {
    MODES.into_iter().for_each(a_guarantee_holds_against_any_priority_in);
}

fn a_guarantee_holds_against_any_priority_in(mode: FlowMode) {
    let guaranteed = ShareConfig { guaranteed_mbps: Some(2.0), ..share(0) };
    let (mut sim, flows) = flows(mode, &[share(7), guaranteed], &[(0, None), (0, None)]);
    sim.run_until(at_ms(40_000));
    if mode == FlowMode::Transparent {
        sim.checker.assert_clean();
    }
    let [first, second] = [0, 1].map(|n| sim.goodput_between(flows[n], at_ms(10_000), at_ms(40_000)));
    assert!((second / (2.0 * PAYLOAD) - 1.0).abs() < 0.03, "guaranteed 2 Mbit/s of IP: {second}");
    assert!(first + second > 0.95 * LINK_MBPS * PAYLOAD, "{first} {second}");
}

#[test]
fn a_ceiling_is_kept_and_the_rest_goes_to_others() {
    MODES.into_iter().for_each(a_ceiling_is_kept_and_the_rest_goes_to_others_in);
}

fn a_ceiling_is_kept_and_the_rest_goes_to_others_in(mode: FlowMode) {
    let ceiling = ShareConfig { ceiling_mbps: Some(1.5), ..share(7) };
    let (mut sim, flows) = flows(mode, &[ceiling, share(0)], &[(0, None), (0, None)]);
    sim.run_until(at_ms(40_000));
    if mode == FlowMode::Transparent {
        sim.checker.assert_clean();
    }
    let [first, second] = [0, 1].map(|n| sim.goodput_between(flows[n], at_ms(10_000), at_ms(40_000)));
    assert!((0.97..=1.01).contains(&(first / (1.5 * PAYLOAD))), "1.5 Mbit/s of IP: {first}");
    assert!(first + second > 0.95 * LINK_MBPS * PAYLOAD, "{first} {second}");
}

/// Two clients with their own links, behind a backhaul that is narrower than both.
#[test]
fn subscribers_share_a_backhaul_by_weight_guarantee_and_ceiling() {
    let goodputs = |first: ShareConfig, second: ShareConfig| {
        let mut config = GatewayConfig::default();
        config.sharing.capacity_mbps = Some(6.0);
        let rule = |n, share| SubscriberRule { address: address(false, 1, n).into(), share, prefer: None };
        config.sharing.subscribers = vec![rule(1, first), rule(2, second)];
        config.check().unwrap();
        let path = Path::new(LINK_MBPS, 20, 80);
        let mut sim = world(Gateway::new(config), &path, 1);
        let radio = sim.add_radio(path.radio_down(), path.radio_up());
        sim.add_client(address(false, 1, 2), radio);
        let flows = [0, 1].map(|client| {
            sim.add_flow(&FlowSpec { hosts: (client, 0), ..FlowSpec::download(modern_client(256 << 10)) })
        });
        sim.run_until(at_ms(40_000));
        sim.checker.assert_clean();
        flows.map(|flow| sim.goodput_between(flow, at_ms(10_000), at_ms(40_000)) / PAYLOAD)
    };
    let plain = ShareConfig::default();
    let near = |got: [f64; 2], wanted: [f64; 2]| {
        let fits = |n: usize| (got[n] / wanted[n] - 1.0).abs() < 0.03;
        assert!(fits(0) && fits(1), "{got:?} for {wanted:?}");
    };
    near(goodputs(plain.clone(), plain.clone()), [3.0, 3.0]);
    near(goodputs(ShareConfig { weight: 3, ..plain.clone() }, plain.clone()), [4.5, 1.5]);
    near(goodputs(ShareConfig { guaranteed_mbps: Some(1.0), ..share(0) }, share(5)), [1.0, 5.0]);
    near(goodputs(ShareConfig { ceiling_mbps: Some(2.0), ..share(5) }, plain), [2.0, 4.0]);
}
