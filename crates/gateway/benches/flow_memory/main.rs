//! Measures the memory of a flow in the gateway without I/O. Payload bytes are not included: the event loop keeps them.

#[path = "../packet_path/traffic.rs"]
mod traffic;

use allocation_counter::measure;
use traffic::{Downloads, MSS, Subscribers};

/// Prints the bytes allocated for a flow: when open, and in a download with a round trip of packets kept.
fn main() {
    for flows in [1, 100, 1_000, 10_000] {
        let Some((open, _)) = held(|| Downloads::open(flows, Subscribers::Many)) else { return };
        let Some((running, downloads)) = held(|| Downloads::start(flows, Subscribers::Many, 0)) else {
            return;
        };
        let (open, running) = (open / u64::from(flows), running / u64::from(flows));
        let packets = downloads.kept() / u64::from(MSS) / u64::from(flows);
        println!(
            "{flows} flows: {open} bytes each when open, {running} bytes while {packets} packets of it are kept"
        );
    }
}

/// Returns the bytes that `make` leaves allocated, without those of the traffic generator, and the downloads.
fn held(make: impl FnOnce() -> Downloads) -> Option<(u64, Downloads)> {
    let mut downloads = None;
    let change = measure(|| downloads = Some(make()));
    downloads.map(|made: Downloads| ((change.bytes_current as u64).saturating_sub(made.bytes() as u64), made))
}
