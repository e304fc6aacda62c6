//! Copa: alone, with its own kind, and beside a flow that fills the buffer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::result::RunResult;
use paceline_sim::scenario::{Flow, PathLink, Scenario, TcpFlow, Transport};
use paceline_tcp::{Config, CongestionName, ReceiveBuffer};
use paceline_wire::{Duration, Rate};

use kit::checked;

use CongestionName::{Copa, Cubic, Vegas};

/// The payload's share of a packet of 1,500 bytes.
const PAYLOAD_SHARE: f64 = 1_448.0 / 1_500.0;

/// A link and its buffer, in bandwidth-delay products.
struct Link {
    mbps: f64,
    rtt_ms: u64,
    buffer: f64,
}

/// Runs flows for `seconds`. Each flow has a congestion control and a start in seconds.
fn transfer(link: &Link, seconds: u64, flows: &[(CongestionName, u64)]) -> RunResult {
    let delay = Delay::Constant(Duration::from_millis(link.rtt_ms) / 2);
    let bdp = link.mbps * 1e6 / 8.0 * link.rtt_ms as f64 / 1e3;
    let down = LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(link.mbps)),
        queue: QueueLimit::Bytes((bdp * link.buffer) as u64),
        delay: delay.clone(),
        ..LinkConfig::default()
    };
    let up = LinkConfig { delay, ..LinkConfig::default() };
    let flows = flows.iter().map(|&(congestion, start_s)| Flow {
        transport: Transport::Tcp(Box::new(TcpFlow {
            server: Config { congestion, ..Config::default() },
            client: Config { receive_buffer: ReceiveBuffer::Fixed(16 << 20), ..Config::default() },
            ..TcpFlow::default()
        })),
        start: Duration::from_secs(start_s),
        ..Flow::default()
    });
    checked(Scenario {
        duration: Duration::from_secs(seconds),
        path: vec![PathLink { name: "link".into(), down, up }],
        flows: flows.collect(),
        ..Scenario::default()
    })
}

/// Each flow's share of the link's payload rate.
fn shares(link: &Link, result: &RunResult) -> Vec<f64> {
    result.flows.iter().map(|flow| flow.goodput_mbps / (link.mbps * PAYLOAD_SHARE)).collect()
}

/// 1 / delta is two packets (Eq. (1)). In slow start and in an episode of competitive mode the queue may be longer.
#[test]
fn alone_it_fills_the_link_with_some_packets_of_queue() {
    for (mbps, rtt_ms) in [(1.0, 50), (5.0, 50), (20.0, 50), (20.0, 100), (100.0, 40)] {
        let link = Link { mbps, rtt_ms, buffer: 4.0 };
        let result = transfer(&link, 60, &[(Copa, 0)]);
        let share = shares(&link, &result)[0];
        let down = &result.links["link_down"];
        let packet_ms = 12.0 / mbps;
        let queue = down.queue_delay_ms.p50.unwrap() / packet_ms;
        let what = format!("{mbps} Mbit/s, {rtt_ms} ms: {share} of the link, {queue} packets, {down:?}");
        assert!(share > 0.97, "{what}");
        assert!((1.0..=4.0).contains(&queue) && down.drops == 0, "{what}");
    }
}

#[test]
fn two_flows_have_a_half_each() {
    for (mbps, rtt_ms) in [(20.0, 50), (100.0, 40)] {
        let link = Link { mbps, rtt_ms, buffer: 2.0 };
        let shares = shares(&link, &transfer(&link, 120, &[(Copa, 0), (Copa, 5)]));
        assert!(shares.iter().all(|share| (0.45..=0.56).contains(share)), "{mbps} Mbit/s: {shares:?}");
    }
}

/// Section 2.2: beside a flow that keeps the queue full, Copa enters competitive mode. Vegas has no such mode and shows
/// what is lost without it.
#[test]
fn beside_cubic_it_competes() {
    for buffer in [1.0, 2.0] {
        let link = Link { mbps: 20.0, rtt_ms: 50, buffer };
        let of = |flows: &[(CongestionName, u64)]| shares(&link, &transfer(&link, 120, flows));
        for flows in [[(Copa, 0), (Cubic, 5)], [(Cubic, 0), (Copa, 5)]] {
            let shares = of(&flows);
            assert!(shares.iter().all(|share| *share > 0.4), "{buffer} BDP, {flows:?}: {shares:?}");
        }
        let beside = of(&[(Cubic, 0), (Vegas, 5)])[1];
        assert!(beside < 0.15, "Vegas has {beside}");
    }
}
