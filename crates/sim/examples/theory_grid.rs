//! The formulas for whole flows beside the simulator: `cargo run --release -p paceline-sim --example theory_grid [RUNS]`

use paceline_sim::reproduce::or::grid::{GridPoint, compare};
use paceline_tcp::ReductionName;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs: u64 = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    let mut points = Vec::new();
    for (reduction, opportunistic) in [
        (ReductionName::Prr, false),
        (ReductionName::Qarr, false),
        (ReductionName::Barr, false),
        (ReductionName::Qarr, true),
    ] {
        for (mbps, rtt_ms) in [(20.0, 50), (20.0, 100), (20.0, 200), (100.0, 100)] {
            for loss_percent in [0.01, 0.05, 0.1, 0.5] {
                points.push(GridPoint { mbps, rtt_ms, loss_percent, reduction, opportunistic });
            }
        }
    }
    println!(
        "| loss recovery | opportunistic | Mbit/s | RTT, ms | loss, % | formula | simulator | difference |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let results = compare(&points, runs)?;
    for result in &results {
        let GridPoint { mbps, rtt_ms, loss_percent, reduction, opportunistic } = result.point;
        let (simulated, predicted) = (result.simulated.mean(), result.predicted);
        println!(
            "| {reduction} | {opportunistic} | {mbps} | {rtt_ms} | {loss_percent} | {predicted:.3} | {simulated:.3} | {:+.3} |",
            simulated - predicted
        );
    }
    let errors = results.iter().map(|result| (result.simulated.mean() - result.predicted).abs());
    let worst = errors.clone().fold(0.0, f64::max);
    println!(
        "\nmean absolute difference {:.3}, largest {worst:.3}",
        errors.sum::<f64>() / results.len() as f64
    );
    Ok(())
}
