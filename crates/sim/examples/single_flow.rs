//! The flow whose speed we report: one bulk download, 20 Mbit/s, 100 ms, 200 s. The queue has 3,000 packets, the
//! receive window 180 segments. There is no loss, unless a probability in percent is given.
//!
//! `cargo run --release -p paceline-sim --example single_flow [LOSS_PERCENT] [SEED]`

use std::time::Instant as Clock;

use paceline_sim::reproduce::or::{SenderSetup, Setup, SetupLoss};
use paceline_sim::run;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |n| std::env::args().nth(n);
    let loss_percent: f64 = argument(1).map_or(Ok(0.0), |text| text.parse())?;
    let seed: u64 = argument(2).map_or(Ok(1), |text| text.parse())?;
    let setup = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(loss_percent) };
    let scenario = setup.scenario(&SenderSetup::default(), seed);
    let started = Clock::now();
    let result = run(&scenario)?;
    let elapsed_s = started.elapsed().as_secs_f64();
    let flow = &result.flows[0];
    println!("goodput      {:.3} Mbit/s", flow.goodput_mbps);
    println!("retransmitted {}, timeouts {}", flow.retransmitted_segments, flow.timeouts);
    println!("RTT          {:?} ms", flow.rtt_ms);
    println!(
        "events       {}, {:.2} million per second",
        result.events,
        result.events as f64 / elapsed_s / 1e6
    );
    println!(
        "took         {elapsed_s:.3} s, {:.0} times as fast as the clock",
        result.duration_s / elapsed_s
    );
    Ok(())
}
