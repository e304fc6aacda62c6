//! TCP-NCL and what it is compared with over one path.
use paceline_sim::reproduce::ncl::*;
use paceline_tcp::NclConfig;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mbps: f64 = args[1].parse().unwrap();
    let rtt_ms: u64 = args[2].parse().unwrap();
    let seconds: u64 = args[3].parse().unwrap();
    let only = args.get(4).cloned().unwrap_or_default();
    for scheme in Scheme::ALL {
        if !only.is_empty() && !only.split(',').any(|o| o == scheme.name()) {
            continue;
        }
        for error_percent in [0.0, 5.0, 15.0] {
            let span = Span::LastHop(LastHop { mbps, rtt_ms, error_percent });
            let s = NclScenario { scheme, ncl: NclConfig::default(), span, seconds };
            let t = std::time::Instant::now();
            let r = s.run(1, &mut ()).unwrap();
            let limit = NclScenario::payload_mbps(mbps) * (1.0 - error_percent / 100.0);
            println!(
                "{:14} p {:4} share {:.3} rexmit {:.3} rto {} answers {} qdrop {:.4} srtt {:.0} cwnd {:.1} took {:.2}",
                scheme.name(),
                error_percent,
                r.goodput_mbps[0] / limit,
                r.retransmitted_share,
                r.timeouts,
                r.answers,
                r.queue_drop_share,
                r.srtt_ms,
                r.cwnd_mean,
                t.elapsed().as_secs_f64()
            );
        }
    }
}
