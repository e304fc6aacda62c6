//! Instructions that the simulator takes. The machine and its load do not matter.
//!
//! `cargo bench -p paceline-sim --bench instructions`
//!
//! Each case runs in its own process under valgrind's callgrind. The count of a run of half the simulated time is
//! subtracted, so start and slow start do not count. Without valgrind the bench says so and does nothing. We use no
//! library, because each needs an installed runner program of the very same version.

mod cases;

use std::process::Command;

use paceline_sim::run;
use paceline_sim::scenario::Scenario;

/// Name, function from seconds to scenario, seconds.
type Case = (&'static str, fn(u64) -> Scenario, u64);

const CASES: [Case; 5] = [
    ("20 Mbit/s, 100 ms, 1 flow", cases::single_flow, 20),
    ("1 Gbit/s, 40 ms, 1 flow", |seconds| cases::shared_link(1_000.0, 1, seconds), 4),
    ("1 Gbit/s, 40 ms, 10 flows", |seconds| cases::shared_link(1_000.0, 10, seconds), 4),
    ("1 Gbit/s, 40 ms, 100 flows", |seconds| cases::shared_link(1_000.0, 100, seconds), 4),
    ("1 Gbit/s, 40 ms, 1,000 flows", |seconds| cases::shared_link(1_000.0, 1_000, seconds), 4),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--case") {
        let number: Option<usize> = arguments.next().and_then(|text| text.parse().ok());
        let seconds: Option<u64> = arguments.next().and_then(|text| text.parse().ok());
        if let Some(((_, scenario, _), seconds)) = number.and_then(|n| CASES.get(n)).zip(seconds) {
            let _ = std::hint::black_box(run(&scenario(seconds)));
        }
        return;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("Left out: instruction counts need valgrind.");
        return;
    }
    println!("{:<30} {:>10} {:>12} {:>20}", "", "events", "instructions", "instructions/packet");
    for (number, (name, scenario, seconds)) in CASES.iter().enumerate() {
        let counted = |seconds: u64| {
            let result = run(&scenario(seconds)).ok()?;
            let packets: u64 = result.links.values().map(|link| link.delivered_packets).sum();
            Some((result.events, packets, instructions(number, seconds)?))
        };
        let (Some(whole), Some(half)) = (counted(*seconds), counted(seconds / 2)) else {
            println!("{name:<30} could not be counted");
            continue;
        };
        let (events, packets, count) = (whole.0 - half.0, whole.1 - half.1, whole.2 - half.2);
        println!("{name:<30} {events:>10} {count:>12} {:>20.0}", count as f64 / packets as f64);
    }
}

/// Instructions of one process that runs a case.
fn instructions(number: usize, seconds: u64) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--case", &number.to_string(), &seconds.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, count) = text.lines().find_map(|line| line.split_once("Collected :"))?;
    count.trim().parse().ok()
}
