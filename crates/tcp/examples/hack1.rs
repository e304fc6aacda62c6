//! Table 14 of OR, one run of 60 s a cell: CUBIC at 100 Mbit/s and 0.5 % loss, beside the published values.
//!
//! `cargo run --release -p paceline-tcp --example hack1`

#[path = "../tests/harness/mod.rs"]
mod harness;

use harness::{Duplex, client_config, mobile_path, ms};
use paceline_path::LossScope;
use paceline_tcp::{Config, DetectionName, ReductionName, SendBufferName, ValidationName};
use paceline_wire::Duration;

const RTTS: [u64; 4] = [50, 100, 150, 200];

/// Loss recovery, variant, published Mbit/s.
const PUBLISHED: [(ReductionName, &str, [f64; 4]); 8] = [
    (ReductionName::Qarr, "original", [54.5, 51.0, 47.4, 41.1]),
    (ReductionName::Barr, "original", [47.8, 34.9, 29.1, 26.2]),
    (ReductionName::Qarr, "optimised", [84.3, 52.7, 46.8, 46.2]),
    (ReductionName::Barr, "optimised", [82.7, 51.6, 35.8, 33.7]),
    (ReductionName::Qarr, "optimal", [95.2, 95.0, 94.4, 93.9]),
    (ReductionName::Barr, "optimal", [95.0, 94.4, 93.9, 93.5]),
    (ReductionName::Qarr, "hack1", [85.3, 80.6, 76.0, 72.9]),
    (ReductionName::Barr, "hack1", [85.7, 79.0, 74.1, 71.8]),
];

fn main() {
    for (reduction, variant, published) in PUBLISHED {
        let cells: Vec<String> = RTTS
            .iter()
            .zip(published)
            .map(|(&rtt, published)| format!("{} ({published})", run(reduction, variant, rtt)))
            .collect();
        println!("{:6}{:10} {}", reduction.as_str(), variant, cells.join("  "));
    }
}

fn run(reduction: ReductionName, variant: &str, rtt: u64) -> String {
    let (mut down, up) = mobile_path(100.0, ms(rtt), 5_000_000);
    if variant == "optimal" {
        down.loss_on = LossScope::Originals;
    }
    let optimised = variant != "original";
    let server = Config {
        reduction,
        opportunistic: optimised,
        hack1: variant == "hack1",
        detection: DetectionName::Fack,
        validation: ValidationName::Linux310,
        send_buffer: if optimised { SendBufferName::Refined } else { SendBufferName::Linux },
        ..Config::default()
    };
    let client = Config { sack_compression: false, ..client_config(900 * 1_448 * rtt as u32 / 100) };
    let mut duplex = Duplex::new(server, client, down, up, 4_711);
    duplex.checks = false;
    let start = duplex.now;
    duplex.run(start + Duration::from_secs(60), &mut ());
    let status = duplex.server_status();
    let (rto, hacks) = status.map_or((0, 0), |s| (s.total_rto, s.hack1));
    format!("{:5.1} rto {rto:3} h {hacks:3}", duplex.received as f64 * 8.0 / 60e6)
}
