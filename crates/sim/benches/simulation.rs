//! Speed of the simulator in time: `cargo bench -p paceline-sim --bench simulation`
//!
//! - `single_flow`: 20 simulated seconds of the flow of scenarios/single-flow.toml, and events per second.
//! - `simulated_second`: the cost of one simulated second, by rate and number of flows that share the link. Opening and
//!   slow start are included.

#![expect(missing_docs, reason = "criterion's macros make functions without documentation")]

mod cases;

use std::hint::black_box;
use std::time::Instant as Clock;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use paceline_sim::run;

/// Simulated seconds of a run. The measured time is divided by it.
const SECONDS: u64 = 2;

fn single_flow(criterion: &mut Criterion) {
    let scenario = cases::single_flow(20);
    let Ok(result) = run(&scenario) else { return };
    let mut group = criterion.benchmark_group("single_flow");
    group.sample_size(20).throughput(Throughput::Elements(result.events));
    group.bench_function("20 s, 20 Mbit/s, 100 ms", |bencher| bencher.iter(|| run(black_box(&scenario))));
    group.finish();
}

fn simulated_second(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simulated_second");
    group.sample_size(10);
    for mbps in [20.0, 100.0, 1_000.0] {
        for flows in [1, 10, 100, 1_000] {
            let scenario = cases::shared_link(mbps, flows, SECONDS);
            let Ok(result) = run(&scenario) else { continue };
            group.throughput(Throughput::Elements(result.events / SECONDS));
            let id = BenchmarkId::from_parameter(format!("{mbps} Mbit/s, {flows} flows"));
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|iterations| {
                    let started = Clock::now();
                    for _ in 0..iterations {
                        let _ = black_box(run(black_box(&scenario)));
                    }
                    started.elapsed() / SECONDS as u32
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, single_flow, simulated_second);
criterion_main!(benches);
