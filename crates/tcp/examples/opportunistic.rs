//! Tables 6 to 9 of OR, one run a cell: goodput as found and optimised, beside the published values.
//!
//! `cargo run --release -p paceline-tcp --example opportunistic [-- CC [REDUCTION]]`

#[path = "../tests/harness/mod.rs"]
mod harness;

use harness::{Duplex, client_config, mobile_path, ms};
use paceline_tcp::{
    Config, CongestionName, DetectionName, ReductionName, SendBufferName, Status, ValidationName,
};
use paceline_wire::Duration;

/// Loss in percent and RTT in ms of the columns of Tables 6 and 8, 7 and 9.
const COLUMNS: [(f64, u64); 6] = [(0.01, 100), (0.05, 100), (0.1, 100), (0.1, 50), (0.1, 150), (0.1, 200)];

/// What of the optimisations is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Original,
    /// Opportunistic retransmission with the send buffer as found.
    Stalling,
    Optimised,
}

impl Variant {
    const ALL: [Variant; 3] = [Variant::Original, Variant::Stalling, Variant::Optimised];

    fn name(self) -> &'static str {
        match self {
            Variant::Original => "",
            Variant::Stalling => "or",
            Variant::Optimised => "opt",
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let congestion: Option<CongestionName> = arguments.next().and_then(|name| name.parse().ok());
    let reduction: Option<ReductionName> = arguments.next().and_then(|name| name.parse().ok());
    println!("{:22}  {}", "", COLUMNS.map(|(loss, rtt)| format!("{loss:>5}% {rtt:>3} ms")).join("  "));
    for &cc in CongestionName::ALL {
        for &rr in &[ReductionName::Rh, ReductionName::Prr, ReductionName::Qarr, ReductionName::Barr] {
            let skip = congestion
                .map_or(cc == CongestionName::Reno || cc == CongestionName::Bbr, |c| c != cc)
                || reduction.is_some_and(|r| r != rr);
            if !skip {
                for variant in Variant::ALL {
                    line(cc, rr, variant);
                }
            }
        }
    }
}

fn line(congestion: CongestionName, reduction: ReductionName, variant: Variant) {
    let cells = COLUMNS.map(|(loss, rtt)| {
        let (mbps, status) = run(congestion, reduction, variant, loss, rtt);
        let stalled = status.map_or(0, |s| s.stalled_recoveries * 100 / s.recoveries.max(1));
        format!("{mbps:>5.2} {stalled:>3}% {:>2}", status.map_or(0, |s| s.total_rto))
    });
    println!("{:10}{:6}{:6}  {}", congestion.as_str(), reduction.as_str(), variant.name(), cells.join("  "));
}

/// As the text's sender: Linux 3.10, FACK, no probes, a receiver that answers every segment out of order.
fn run(
    congestion: CongestionName,
    reduction: ReductionName,
    variant: Variant,
    loss: f64,
    rtt: u64,
) -> (f64, Option<Status>) {
    let (down, up) = mobile_path(20.0, ms(rtt), (loss * 1e7) as u64);
    let server = Config {
        congestion,
        reduction,
        opportunistic: variant != Variant::Original,
        detection: DetectionName::Fack,
        validation: ValidationName::Linux310,
        send_buffer: match variant {
            Variant::Optimised => SendBufferName::Refined,
            _ => SendBufferName::Linux,
        },
        ..Config::default()
    };
    let window = 180 * 1_448 * rtt as u32 / 100;
    let client = Config { sack_compression: false, ..client_config(window) };
    let mut duplex = Duplex::new(server, client, down, up, 4_711);
    duplex.checks = false;
    let start = duplex.now;
    duplex.run(start + Duration::from_secs(200), &mut ());
    (duplex.received as f64 * 8.0 / 200e6, duplex.server_status())
}
