//! Goodput of one bulk flow at 20 Mbit/s and 100 ms, beside Linux 6.1's: one line for each congestion control and loss.
//!
//! `cargo run --release -p paceline-tcp --example goodput [-- RUNS [CC]]`

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::time::Instant as Clock;

use harness::{Duplex, client_config, mobile_path, ms};
use paceline_tcp::{Config, CongestionName};
use paceline_wire::Duration;

/// Means of three runs each (Mbit/s of payload).
const LINUX: [(CongestionName, [f64; 3]); 5] = [
    (CongestionName::Cubic, [16.34, 7.93, 5.12]),
    (CongestionName::Vegas, [13.90, 6.77, 4.71]),
    (CongestionName::Veno, [15.65, 10.15, 7.34]),
    (CongestionName::Westwood, [18.71, 15.98, 12.25]),
    (CongestionName::Bbr, [18.36, 17.40, 16.42]),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let runs: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(3);
    let only: Option<CongestionName> = arguments.next().and_then(|name| name.parse().ok());
    println!(
        "{:10} {:>6} {:>8} {:>8} {:>6}  retrans  rto  srtt_ms  rwnd_s  seconds",
        "cc", "loss%", "mbps", "linux", "ratio"
    );
    for (congestion, linux) in LINUX {
        if only.is_some_and(|name| name != congestion) {
            continue;
        }
        for (loss_ppb, linux) in [(0, 19.2), (100_000, linux[0]), (500_000, linux[1]), (1_000_000, linux[2])]
        {
            line(congestion, loss_ppb, linux, runs);
        }
    }
}

fn line(congestion: CongestionName, loss_ppb: u64, linux: f64, runs: u64) {
    let (mut sum, mut retrans, mut rto, mut srtt, mut rwnd) = (0.0, 0, 0, 0.0, 0.0);
    let clock = Clock::now();
    for run in 0..runs {
        let (down, up) = mobile_path(20.0, ms(100), loss_ppb);
        let server = Config { congestion, ..Config::default() };
        let mut duplex = Duplex::new(server, client_config(180 * 1_448), down, up, 1_000 + run * 17);
        duplex.checks = false;
        let start = duplex.now;
        duplex.run(start + Duration::from_secs(200), &mut ());
        sum += duplex.received as f64 * 8.0 / 200e6;
        if let Some(status) = duplex.server_status() {
            retrans += status.total_retrans;
            rto += status.total_rto;
            srtt += status.rtt as f64 / 1e3;
            rwnd += status.rwnd_limited as f64 / 1e6;
        }
    }
    let n = runs as f64;
    println!(
        "{:10} {:>6} {:>8.2} {:>8.2} {:>6.3} {:>8} {:>4} {:>8.1} {:>7.1} {:>8.2}",
        congestion.as_str(),
        loss_ppb as f64 / 1e7,
        sum / n,
        linux,
        sum / n / linux,
        retrans / runs,
        rto / runs,
        srtt / n,
        rwnd / n,
        clock.elapsed().as_secs_f64() / n,
    );
}
