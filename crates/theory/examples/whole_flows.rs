//! Whole flows by formula beside the published ones: `cargo run -p paceline-theory --example whole_flows`.

use paceline_theory::or::flow::{FlowPath, FlowPolicy, Growth, LostRepair, least_bdp_packets, utilization};
use paceline_theory::or::{DomainError, RateReduction};

fn main() -> Result<(), DomainError> {
    println!("Utilisation of the link, CUBIC, a window of 1.09 C x U, repairs found by loss detection\n");
    println!(
        "{:>9} {:>7} {:>7} {:>8} {:>10} {:>14}",
        "Mbit/s", "U, ms", "p, %", "", "as found", "opportunistic"
    );
    for (mbps, u_s, loss) in
        [(20.0, 0.1, 1e-4), (20.0, 0.1, 1e-3), (100.0, 0.1, 1e-3), (10_000.0, 0.05, 1e-5)]
    {
        let c_packets_per_s = mbps * 1e6 / 8.0 / 1_515.0;
        let path = FlowPath { c_packets_per_s, u_s, aw_packets: 1.09 * c_packets_per_s * u_s, loss };
        for reduction in RateReduction::ALL {
            let eta = |opportunistic| utilization(&path, &policy(reduction, opportunistic));
            let (found, extended) = (eta(false)?, eta(true)?);
            let ms = u_s * 1e3;
            println!(
                "{mbps:>9} {ms:>7} {:>7} {:>8} {found:>10.3} {extended:>14.3}",
                loss * 100.0,
                reduction.name()
            );
        }
    }
    println!("\nSmallest C x U, in packets, at which 80 % is lost (U = 100 ms)\n");
    for loss in [1e-4, 5e-4, 1e-3, 5e-3] {
        for reduction in [RateReduction::Prr, RateReduction::Qarr] {
            for opportunistic in [false, true] {
                let least = least_bdp_packets(loss, 0.8, 0.1, 1.09, &policy(reduction, opportunistic))?;
                let least = least.map_or("none".into(), |bdp| format!("{bdp:.0}"));
                let name = reduction.name();
                println!("p = {:>5} %  {name:>5}  opportunistic: {opportunistic:>5}  {least}", loss * 100.0);
            }
        }
    }
    Ok(())
}

fn policy(reduction: RateReduction, opportunistic: bool) -> FlowPolicy {
    FlowPolicy { reduction, opportunistic, growth: Growth::Cubic, lost_repair: LostRepair::Detected }
}
