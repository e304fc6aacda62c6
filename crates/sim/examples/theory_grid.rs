//! The formulas for whole flows beside the simulator: `cargo run --release -p paceline-sim --example theory_grid [RUNS]`

use paceline_sim::reproduce::or::grid::{GridPoint, compare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs: u64 = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    println!(
        "| loss recovery | opportunistic | Mbit/s | RTT, ms | loss, % | formula | simulator | difference |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let results = compare(&GridPoint::all(), runs)?;
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
