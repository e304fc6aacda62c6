//! Flows over a wireless path, by name: `cargo run --release --example wireless -- ad-hoc 20 reno rack-tlp 4 2000`.
//!
//! Arguments: path, its value (see `WirelessPath::named`), congestion control, loss detection, runs, seconds. The
//! second half of the time counts.

use paceline_adhoc::Connectivity;
use paceline_judge::Sample;
use paceline_sim::seed_of;
use paceline_sim::wireless::{AdHocPath, FlowMeasure, Measurement, WirelessPath, measure};
use paceline_tcp::Config;
use paceline_wire::{Duration, Instant};
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, value, congestion, detection, runs, seconds] = arguments.as_slice() else {
        return Err("give path, value, congestion control, loss detection, runs, seconds".into());
    };
    let path = WirelessPath::named(name, value.parse()?).ok_or("no such path")?;
    let config =
        Config { congestion: congestion.parse()?, detection: detection.parse()?, ..Config::default() };
    let duration = Duration::from_secs(seconds.parse()?);
    let seeds: Vec<u64> = (1..=runs.parse()?).collect();
    let run = |seed: &u64| {
        let times = Measurement { seed: *seed, warm_up: duration / 2, duration };
        measure(&path, &config, times)
    };
    let all = seeds.par_iter().map(run).collect::<Result<Vec<_>, _>>()?;
    let flows: Vec<&FlowMeasure> = all.iter().flatten().collect();
    let goodput = flows.iter().map(|flow| flow.goodput_mbps).collect::<Sample>().estimate();
    let mean =
        |of: &dyn Fn(&FlowMeasure) -> f64| flows.iter().map(|flow| of(flow)).collect::<Sample>().mean();
    println!(
        "{name} {value} {congestion} {detection}: goodput {:.3} +- {:.3} Mbit/s ({:.1} % of the rate), {:.1} timeouts, {:.2} % sent \
         again, {:.2} % reordered by {:.1} places, SRTT {:.0} ms, cwnd {:.1}",
        goodput.mean,
        goodput.half_width,
        goodput.mean / path.mbps() * 100.0,
        mean(&|flow| flow.timeouts as f64),
        mean(&|flow| flow.retransmitted as f64 / flow.segments.max(1) as f64 * 100.0),
        mean(&|flow| flow.reordering.share() * 100.0),
        mean(&|flow| flow.reordering.extent_mean()),
        mean(&|flow| flow.srtt_ms),
        mean(&|flow| flow.cwnd),
    );
    if let WirelessPath::AdHoc(network) = &path {
        let (connected, hops) = connectivity(network, &seeds, duration);
        println!("{connected:.1} % of the time there is a way, then of {hops:.2} hops");
    }
    if let Some(counters) = flows.first().and_then(|flow| flow.ad_hoc) {
        println!("first run: {counters:?}");
    }
    Ok(())
}

/// Over the second half of all runs: share of the time with a route, in percent, and the mean number of hops.
fn connectivity(network: &AdHocPath, seeds: &[u64], duration: Duration) -> (f64, f64) {
    let (mut looks, mut connected, mut hops) = (0.0, 0.0, 0.0);
    for seed in seeds {
        let mut ways = Connectivity::new(&network.config, seed_of(*seed, "ad-hoc"));
        let seconds = duration.as_millis() / 1_000;
        for second in seconds / 2..seconds {
            looks += 1.0;
            if let Some(count) = ways.hops(Instant::ZERO + Duration::from_secs(second)) {
                connected += 1.0;
                hops += f64::from(count);
            }
        }
    }
    (connected / looks * 100.0, hops / connected)
}
