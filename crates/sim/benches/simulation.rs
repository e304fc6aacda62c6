//! How fast the simulator is: `cargo bench -p paceline-sim`
//!
//! Time per run of five simulated seconds, and elements per second, which are packets given to nodes and timers that were due;
//! with a growing rate, and with a growing number of flows that share a link.

#![expect(missing_docs, reason = "criterion's macros make functions without documentation")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::run;
use paceline_sim::scenario::{Flow, PathLink, Scenario};
use paceline_wire::{Duration, Rate};

const SIMULATED: Duration = Duration::from_secs(5);

/// Bulk downloads over one link with a round trip of 40 ms and a queue of as much.
fn scenario(mbps: f64, flows: u32) -> Scenario {
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
        duration: SIMULATED,
        path: vec![PathLink { name: "radio".into(), down, up }],
        flows: vec![Flow { count: flows, interval, ..Flow::default() }],
        patience: Duration::ZERO,
        ..Scenario::default()
    }
}

fn simulation(criterion: &mut Criterion) {
    let cases =
        [(20.0, 1), (100.0, 1), (1_000.0, 1), (100.0, 10), (100.0, 100), (1_000.0, 100), (1_000.0, 1_000)];
    let mut group = criterion.benchmark_group("five_seconds");
    group.sample_size(10);
    for (mbps, flows) in cases {
        let scenario = scenario(mbps, flows);
        let Ok(result) = run(&scenario) else { continue };
        group.throughput(Throughput::Elements(result.events));
        group.bench_function(
            BenchmarkId::from_parameter(format!("{mbps} Mbit/s, {flows} flows")),
            |bencher| {
                bencher.iter(|| run(black_box(&scenario)));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, simulation);
criterion_main!(benches);
