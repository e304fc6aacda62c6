//! QUIC and other datagrams beside TCP, through a gateway. Each has its share, no matter who sends more.

#![allow(clippy::unwrap_used)] // A test may panic.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::OtherMode;
use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::result::{Direction, RunResult};
use paceline_sim::run;
use paceline_sim::scenario::{Flow, GatewayAt, PathLink, Scenario, Transport};
use paceline_wire::{Duration, Rate};

/// A radio link of 10 Mbit/s and 40 ms with a deep queue. One client has TCP downloads, and datagrams at these rates.
fn beside(tcp: u32, datagrams: &[(f64, u32)], other: OtherMode) -> RunResult {
    let link = |name: &str, rate: RateProcess, ms| {
        let down = LinkConfig {
            rate,
            delay: Delay::Constant(Duration::from_millis(ms)),
            queue: QueueLimit::Bytes(300_000),
            ..LinkConfig::default()
        };
        let up = LinkConfig { rate: RateProcess::Unlimited, ..down.clone() };
        PathLink { name: name.into(), down, up }
    };
    let mut config = GatewayConfig::default();
    config.sharing.other = other;
    let udp = |&(mbps, ip_bytes): &(f64, u32)| Flow {
        direction: Direction::Down,
        // Datagrams start after TCP. A flood of twice the link's rate that never gives way would let no connection
        // open.
        start: Duration::from_secs(2),
        transport: Transport::Udp { rate: Rate::from_mbps(mbps), ip_bytes },
        ..Flow::default()
    };
    let downloads = Flow { count: tcp, ..Flow::default() };
    run(&Scenario {
        duration: Duration::from_secs(20),
        path: vec![
            link("wired", RateProcess::Unlimited, 10),
            link("radio", RateProcess::Constant(Rate::from_mbps(10.0)), 20),
        ],
        gateway: Some(GatewayAt { links_before: 1, config }),
        flows: std::iter::once(downloads).chain(datagrams.iter().map(udp)).collect(),
        patience: Duration::ZERO,
        ..Scenario::default()
    })
    .unwrap()
}

/// Goodput of each flow in Mbit/s.
fn goodputs(result: &RunResult) -> Vec<f64> {
    assert!(result.findings.is_empty(), "{:?}", result.findings);
    result.flows.iter().map(|flow| flow.goodput_mbps).collect()
}

#[test]
fn a_flood_of_datagrams_has_the_share_of_a_flow() {
    let result = beside(1, &[(9.0, 1_200)], OtherMode::Shared);
    let shares = goodputs(&result);
    println!("{shares:?}, queue {:?}", result.links["radio_down"].queue_delay_ms);
    assert!(shares[0] >= 4.3, "TCP has {} of 10 Mbit/s", shares[0]);
    assert!(shares[1] >= 4.3, "datagrams have {}", shares[1]);
    assert!(result.links["radio_down"].queue_delay_ms.p95.unwrap() <= 30.0);
    assert!(result.links["radio_down"].utilization.unwrap() >= 0.97);
    assert!(result.gateway.unwrap().counters.other_dropped > 1_000);

    let passed = goodputs(&beside(1, &[(9.0, 1_200)], OtherMode::Passed));
    println!("as they come: {passed:?}");
    assert!(passed[0] < 2.0, "without sharing TCP has {}", passed[0]);
}

#[test]
fn each_busy_flow_of_datagrams_has_a_share() {
    let shares = goodputs(&beside(2, &[(9.0, 1_200), (9.0, 1_200)], OtherMode::Shared));
    println!("{shares:?}");
    let datagrams = shares[2] + shares[3];
    assert!((4.2..5.6).contains(&datagrams), "two of four shares are {datagrams} Mbit/s");
}

#[test]
fn a_call_beside_a_download_loses_nothing_and_hardly_waits() {
    let result = beside(3, &[(0.08, 200)], OtherMode::Shared);
    let shares = goodputs(&result);
    println!("{shares:?}");
    // 172 of 200 bytes are payload. Packets in flight at the end have not arrived.
    assert!(shares[3] >= 0.08 * 172.0 / 200.0 * 0.985, "{}", shares[3]);
    let counters = result.gateway.unwrap().counters;
    assert!(counters.other_dropped == 0 && counters.other_queued <= 5, "{} waited", counters.other_queued);
}

#[test]
fn datagrams_alone_pass_as_they_come() {
    let result = beside(0, &[(9.0, 1_200)], OtherMode::Shared);
    let counters = result.gateway.as_ref().unwrap().counters;
    assert_eq!((counters.other_dropped, counters.other_queued), (0, 0));
    assert!(counters.other_downlink_packets > 13_000);
    assert!(goodputs(&result)[0] >= 8.6);
}
