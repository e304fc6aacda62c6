//! Ten thousand flows share a gateway's memory. Windows that follow each flow's rate are compared with the thesis's 10
//! MB for each flow. Section 9.1 of the thesis leaves the size of the virtual window open.

#![allow(clippy::unwrap_used)] // A test may panic.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::VirtualWindowMode;
use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::result::RunResult;
use paceline_sim::run;
use paceline_sim::scenario::{Flow, GatewayAt, PathLink, Scenario};
use paceline_wire::{Duration, Rate};

/// Number of flows. `MANY_FLOWS=10000` sets it to ten thousand.
const FLOWS: u32 = 300;
/// Memory for ten thousand flows.
const POOL_BYTES: usize = 1 << 30;

/// Downloads of one subscriber. The link has 100 kbit/s for each. The round trip is 40 ms from server to gateway, and
/// 60 ms from there to the client.
fn downloads(flows: u32, mode: VirtualWindowMode, max_bytes: u64, pool: usize) -> RunResult {
    let rate = Rate::from_mbps(0.1 * f64::from(flows));
    let link = |ms, mbps: Option<Rate>| {
        let delay = Delay::Constant(Duration::from_millis(ms));
        let rate = mbps.map_or(RateProcess::Unlimited, RateProcess::Constant);
        let queue = QueueLimit::Bytes(
            Rate::bytes_in(mbps.unwrap_or(Rate::ZERO), Duration::from_secs(1)).max(1 << 20),
        );
        LinkConfig { rate, delay, queue, ..LinkConfig::default() }
    };
    let path_link =
        |name: &str, ms, down| PathLink { name: name.into(), down: link(ms, down), up: link(ms, None) };
    let mut config = GatewayConfig::default();
    config.virtual_window.mode = mode;
    config.virtual_window.max_bytes = max_bytes;
    config.limits.max_buffer_bytes = pool;
    let download = Flow { count: flows, interval: Duration::from_millis(1), ..Flow::default() };
    run(&Scenario {
        // Long enough that the common start does not decide the result.
        duration: Duration::from_secs(120),
        path: vec![path_link("wired", 20, None), path_link("radio", 30, Some(rate))],
        gateway: Some(GatewayAt { links_before: 1, config }),
        flows: vec![download],
        patience: Duration::ZERO,
        ..Scenario::default()
    })
    .unwrap()
}

#[test]
fn many_flows_fit_in_a_gibibyte_and_lose_no_throughput() {
    let flows = std::env::var("MANY_FLOWS").ok().and_then(|text| text.parse().ok()).unwrap_or(FLOWS);
    let pool = POOL_BYTES / 10_000 * flows as usize;
    let sized = downloads(flows, VirtualWindowMode::Sized, 8_000_000, pool);
    let fixed = downloads(flows, VirtualWindowMode::Fixed, 10_000_000, usize::MAX >> 1);
    let [sized, fixed] = [sized, fixed].map(|result| {
        assert!(result.findings.is_empty(), "{:?}", result.findings);
        let mut bytes: Vec<u64> = result.flows.iter().map(|flow| flow.bytes).collect();
        bytes.sort_unstable();
        let peak = result.gateway.unwrap().counters.peak_buffered_bytes as usize;
        println!("{} bytes, least {}, at most {peak} kept", bytes.iter().sum::<u64>(), bytes[0]);
        (bytes, peak)
    });
    assert!(sized.1 <= pool, "{} of {pool} bytes", sized.1);
    let sum = |bytes: &[u64]| bytes.iter().sum::<u64>() as f64;
    assert!(sum(&sized.0) >= 0.98 * sum(&fixed.0));
    // Compares the flows from the slowest to the fastest.
    for (ours, theirs) in sized.0.iter().zip(&fixed.0) {
        assert!(*ours as f64 >= 0.9 * *theirs as f64, "{ours} bytes, {theirs} with 10 MB each");
    }
}
