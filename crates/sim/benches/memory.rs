//! Memory that a flow costs: `cargo bench -p paceline-sim --bench memory`
//!
//! Bulk downloads share a link of 1 Gbit/s and 40 ms. Every 100 ms of simulated time the bench looks at the memory that
//! the simulator holds. The maximum counts: hosts, connections with their data in flight, results, and the link's
//! packets. The link holds as much in every run. So two runs with different numbers of flows differ by the memory of
//! the flows.

mod cases;

use std::alloc::System;

use paceline_sim::{RunObserver, run_watched};
use paceline_wire::Instant;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The maximum held since the region began, and the allocations up to each look.
struct Most<'a> {
    region: Region<'a, System>,
    bytes: usize,
    allocations: Vec<usize>,
}

impl RunObserver for Most<'_> {
    fn goes_on(&mut self, _now: Instant) -> bool {
        let change = self.region.change();
        self.bytes = self.bytes.max(change.bytes_allocated.saturating_sub(change.bytes_deallocated));
        self.allocations.push(change.allocations + change.reallocations);
        true
    }
}

/// Maximum in bytes, allocations in the second half of the run, and events.
fn most(flows: u32) -> Option<(usize, usize, u64)> {
    let scenario = cases::shared_link(1_000.0, flows, 4);
    let mut most = Most { region: Region::new(ALLOCATOR), bytes: 0, allocations: Vec::with_capacity(100) };
    let result = run_watched(&scenario, Vec::new(), &mut most).ok()?;
    let half = most.allocations.get(most.allocations.len() / 2).copied()?;
    Some((most.bytes, most.allocations.last()? - half, result.events))
}

fn main() {
    let Some((one, ..)) = most(1) else { return };
    println!("{:>6} {:>12} {:>16} {:>30}", "flows", "bytes", "bytes per flow", "allocations from 2 s to 4 s");
    for flows in [1, 10, 100, 1_000] {
        let Some((bytes, allocations, events)) = most(flows) else { return };
        let each = bytes.saturating_sub(one) / (flows as usize - 1).max(1);
        println!("{flows:>6} {bytes:>12} {each:>16} {allocations:>18} of {events} events");
    }
}
