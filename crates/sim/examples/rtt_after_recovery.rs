//! Figs. 4 and 5 in numbers: `cargo run --release -p paceline-sim --example rtt_after_recovery`

use paceline_sim::reproduce::or::{RttAfter, SenderSetup, Variant};
use paceline_tcp::{DetectionName, ReductionName};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("| loss recovery | variant | longest RTT before, ms | after, ms | growth |");
    println!("|---|---|---|---|---|");
    for reduction in [ReductionName::Rh, ReductionName::Prr, ReductionName::Qarr, ReductionName::Barr] {
        for variant in [Variant::Original, Variant::Optimized] {
            let sender =
                SenderSetup { reduction, variant, detection: DetectionName::Fack, ..SenderSetup::default() };
            let rtt = RttAfter::measure(&sender)?;
            let (before, after, growth) = (rtt.before_ms, rtt.after_ms, rtt.growth() * 100.0);
            println!("| {reduction} | {} | {before:.1} | {after:.1} | {growth:+.0} % |", variant.name());
        }
    }
    Ok(())
}
