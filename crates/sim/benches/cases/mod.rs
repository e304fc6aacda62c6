//! The scenarios of all benches: time, instructions and memory.

use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::reproduce::or::{SenderSetup, Setup, SetupLoss};
use paceline_sim::scenario::{Flow, PathLink, Scenario};
use paceline_wire::{Duration, Rate};

/// The flow of scenarios/single-flow.toml: 20 Mbit/s, 100 ms, no loss.
#[allow(dead_code, reason = "each bench uses some of this")]
pub(crate) fn single_flow(seconds: u64) -> Scenario {
    let setup = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(0.0) };
    Scenario { duration: Duration::from_secs(seconds), ..setup.scenario(&SenderSetup::default(), 1) }
}

/// Bulk downloads that share a link. The round trip is 40 ms, and the queue holds another 40 ms.
#[allow(dead_code, reason = "each bench uses some of this")]
pub(crate) fn shared_link(mbps: f64, flows: u32, seconds: u64) -> Scenario {
    let rate = Rate::from_mbps(mbps);
    let delay = Delay::Constant(Duration::from_millis(20));
    let queue = QueueLimit::Bytes(rate.bytes_in(Duration::from_millis(40)).max(30_000));
    let down = LinkConfig {
        rate: RateProcess::Constant(rate),
        queue,
        delay: delay.clone(),
        ..LinkConfig::default()
    };
    let up = LinkConfig { delay, ..LinkConfig::default() };
    let interval = Duration::from_micros(500);
    Scenario {
        duration: Duration::from_secs(seconds),
        path: vec![PathLink { name: "radio".into(), down, up }],
        flows: vec![Flow { count: flows, interval, ..Flow::default() }],
        patience: Duration::ZERO,
        ..Scenario::default()
    }
}
