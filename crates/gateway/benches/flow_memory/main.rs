//! The memory of a flow in the gateway without I/O; payload bytes, which the event loop keeps, come on top.

#[path = "../packet_path/traffic.rs"]
mod traffic;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use traffic::{Downloads, MSS, Subscribers};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that a flow has allocated: opened, and in the middle of a download with a round trip of packets kept.
fn main() {
    for flows in [1, 100, 1_000, 10_000] {
        let region = Region::new(ALLOCATOR);
        let downloads = Downloads::open(flows, Subscribers::Many);
        let open = held(&region, &downloads) / flows as usize;
        drop(downloads);
        let region = Region::new(ALLOCATOR);
        let downloads = Downloads::start(flows, Subscribers::Many, 0);
        let running = held(&region, &downloads) / flows as usize;
        let packets = downloads.kept() / u64::from(MSS) / u64::from(flows);
        println!(
            "{flows} flows: {open} bytes each when open, {running} bytes while {packets} packets of it are kept"
        );
    }
}

fn held(region: &Region<'_, System>, downloads: &Downloads) -> usize {
    let change = region.change();
    (change.bytes_allocated - change.bytes_deallocated).saturating_sub(downloads.bytes())
}
