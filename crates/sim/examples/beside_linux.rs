//! The flows of `published/linux-6.1.csv` here and there: `cargo run --release -p paceline-sim --example beside_linux [RUNS]`

use paceline_sim::reproduce::linux::LinuxRow;
use paceline_sim::run_all;
use paceline_sim::statistics::Sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs: u64 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    println!(
        "| congestion control | loss, % | ours, Mbit/s | Linux 6.1 | ours / Linux - 1 | difference, 95 % | holds |"
    );
    println!("|---|---|---|---|---|---|---|");
    for row in LinuxRow::all() {
        let scenarios: Vec<_> = (1..=runs).map(|seed| row.scenario(seed)).collect();
        let results = run_all(&scenarios)?;
        let ours: Sample = results.iter().map(|result| result.flows[0].goodput_mbps).collect();
        let (estimate, linux) = (ours.estimate(), row.goodput_mbps.mean());
        let difference = ours.minus(&row.goodput_mbps);
        let relative = ours.mean() / linux - 1.0;
        let holds = relative.abs() <= 0.1 || (difference.holds(0.0) && difference.half_width <= 0.1 * linux);
        println!(
            "| {} | {} | {:.2} ± {:.2} | {linux:.2} | {:+.1} % | {:+.2} ± {:.2} | {} |",
            row.congestion,
            row.loss_percent,
            estimate.mean,
            estimate.half_width,
            relative * 100.0,
            difference.mean,
            difference.half_width,
            if holds { "yes" } else { "no" },
        );
    }
    Ok(())
}
