//! What a packet costs beside other flows: processor time per event of bulk downloads that share a link of 1 Gbit/s, 40 ms.
//!
//! `cargo run --release -p paceline-sim --example many_flows [FLOWS [SIMULATED_SECONDS]]`

use std::time::Instant as Clock;

use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::run;
use paceline_sim::scenario::{Flow, PathLink, Scenario};
use paceline_wire::{Duration, Rate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let flows: u32 = arguments.next().map_or(Ok(1_000), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let rate = Rate::from_mbps(1_000.0);
    let delay = Delay::Constant(Duration::from_millis(20));
    let queue = QueueLimit::Bytes(rate.bytes_in(Duration::from_millis(40)));
    let down = LinkConfig {
        rate: RateProcess::Constant(rate),
        queue,
        delay: delay.clone(),
        ..LinkConfig::default()
    };
    let up = LinkConfig { delay, ..LinkConfig::default() };
    let interval = Duration::from_micros(500);
    let scenario = Scenario {
        duration: Duration::from_secs(seconds),
        path: vec![PathLink { name: "radio".into(), down, up }],
        flows: vec![Flow { count: flows, interval, ..Flow::default() }],
        patience: Duration::ZERO,
        ..Scenario::default()
    };
    let started = Clock::now();
    let result = run(&scenario)?;
    let elapsed = started.elapsed();
    let goodput: f64 = result.flows.iter().map(|flow| flow.goodput_mbps).sum();
    println!("{flows} flows: {goodput:.0} Mbit/s together, {} events", result.events);
    println!("{:.0} ns an event", elapsed.as_nanos() as f64 / result.events as f64);
    Ok(())
}
