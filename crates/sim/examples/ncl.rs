//! Explore.
use paceline_sim::reproduce::ncl::*;
use paceline_sim::wireless::*;
use paceline_tcp::NclConfig;
use paceline_wire::Duration;
use rayon::prelude::*;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let (mbps, rtt, seconds, queue): (f64, u64, u64, u32) =
        (a[0].parse().unwrap(), a[1].parse().unwrap(), a[2].parse().unwrap(), a[3].parse().unwrap());
    let only = a.get(4).cloned().unwrap_or_default();
    for scheme in Scheme::ALL {
        if !only.is_empty() && only != "all" && !only.split(',').any(|o| o == scheme.name()) {
            continue;
        }
        let mut line = format!("{:14}", scheme.name());
        for p in [0.0, 0.03, 0.06, 0.09, 0.12, 0.15] {
            let path = WirelessPath::LastHop(LastHop {
                mbps,
                rtt: Duration::from_millis(rtt),
                error: p,
                error_both_ways: false,
                queue_packets: queue,
            });
            let e = NclExperiment {
                scheme,
                ncl: NclConfig::default(),
                rto_min: Duration::from_millis(a[5].parse().unwrap()),
                path,
                seconds,
            };
            let runs: Vec<NclRun> = (1..=4u64).into_par_iter().map(|s| e.run(s, &mut ()).unwrap()).collect();
            let m = |f: &dyn Fn(&NclRun) -> f64| runs.iter().map(f).sum::<f64>() / runs.len() as f64;
            let limit = NclExperiment::payload_mbps(mbps) * (1.0 - p);
            line += &format!(
                " | {:.3} to{:3.0} an{:3.0} re{:4.1}",
                m(&|r| r.goodput_mbps[0]) / limit,
                m(&|r| r.timeouts as f64),
                m(&|r| r.answers as f64),
                m(&|r| r.retransmitted_share) * 100.0
            );
        }
        println!("{line}");
    }
}
