use paceline_tcp::{CongestionName, DetectionName};

use super::*;
use crate::wireless::{Dumbbell, LastHop, VaryingDelay};

fn times(seconds: u64) -> Measurement {
    let [warm_up, duration] = [seconds / 2, seconds].map(Duration::from_secs);
    Measurement { seed: 1, warm_up, duration }
}

fn reno() -> Config {
    Config { congestion: CongestionName::Reno, ..Config::default() }
}

fn one(path: &WirelessPath, seconds: u64) -> FlowMeasure {
    measure(path, &reno(), times(seconds)).unwrap()[0]
}

#[test]
fn every_name_is_a_path() {
    for (name, value) in WirelessPath::NAMES.into_iter().zip([0.01, 0.01, 0.2, 2.0, 20.0]) {
        let path = WirelessPath::named(name, value).unwrap();
        assert_eq!(path.name(), name);
        let flows = measure(&path, &reno(), times(40)).unwrap();
        assert!(flows.iter().all(|flow| flow.goodput_mbps < path.mbps()), "{name}: {flows:?}");
        assert!(name == "ad-hoc" || flows.iter().all(|flow| flow.goodput_mbps > 0.1), "{name}: {flows:?}");
        assert_eq!(flows[0].ad_hoc.is_some(), name == "ad-hoc");
    }
    assert_eq!(WirelessPath::named("moon", 0.0), None);
}

#[test]
fn without_errors_the_last_hop_is_full_and_in_order() {
    let flow = one(&WirelessPath::LastHop(LastHop::default()), 60);
    // 1,448 of 1,500 bytes are payload.
    assert!(flow.goodput_mbps > 0.97 * 2.0 * 1_448.0 / 1_500.0, "{flow:?}");
    assert_eq!(flow.reordering.reordered, 0);
}

/// The link layer's repairs reorder packets. More errors mean more reordering.
#[test]
fn hops_reorder_what_they_repair() {
    let share = |error| one(&WirelessPath::named("hops", error).unwrap(), 40).reordering;
    let (none, few, many) = (share(0.0), share(0.02), share(0.15));
    assert_eq!(none.reordered, 0);
    assert!(few.share() > 0.02 && many.share() > 2.0 * few.share(), "{few:?} {many:?}");
    assert!(many.extent_max >= 4, "{many:?}");
}

#[test]
fn a_delay_that_falls_lets_packets_overtake_unless_told_otherwise() {
    let reordered = |overtake| {
        let path =
            VaryingDelay { delay_max: Duration::from_millis(500), overtake, ..VaryingDelay::default() };
        one(&WirelessPath::VaryingDelay(path), 200).reordering.reordered
    };
    assert!(reordered(true) > 10);
    assert_eq!(reordered(false), 0);
}

#[test]
fn flows_of_a_dumbbell_share_it() {
    let path = WirelessPath::Dumbbell(Dumbbell { flows: 4, ..Dumbbell::default() });
    let flows = measure(&path, &reno(), times(200)).unwrap();
    let sum: f64 = flows.iter().map(|flow| flow.goodput_mbps).sum();
    assert!(flows.len() == 4 && sum > 0.9 * 10.0 * 1_448.0 / 1_500.0, "{sum}");
    assert!(flows.iter().all(|flow| (flow.goodput_mbps / sum * 4.0 - 1.0).abs() < 0.4), "{flows:?}");
}

/// The checker finds no violation over stations that move.
#[test]
fn the_stream_over_an_ad_hoc_network_is_whole() {
    for (seed, detection) in
        [(1, DetectionName::RackTlp), (2, DetectionName::Rfc6675), (3, DetectionName::Fack)]
    {
        let config = Config { detection, ..reno() };
        let path = WirelessPath::named("ad-hoc", 20.0).unwrap();
        let mut scenario = path.scenario(&config, &config, seed, Duration::from_secs(60));
        scenario.checked = true;
        let result = crate::run(&scenario).unwrap();
        assert_eq!(result.findings, Vec::<String>::new(), "seed {seed}, {detection}");
        assert!(result.ad_hoc.is_some_and(|counters| counters.air.frames > 100));
    }
}
