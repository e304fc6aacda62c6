//! Short objects, alone and beside a download. Nobody may notice the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_gateway::{Event, Gateway, GatewayConfig, Observer};
use paceline_wire::{FlowKey, Instant, Node};

use crate::kit::record::Samples;
use crate::kit::scenario::{FlowSpec, Path, at_ms, modern_client, world};
use crate::kit::sim::Direct;

const OBJECTS: u64 = 25;

/// Returns the completion times in ms of objects that start every 1.5 s.
fn objects<G: Node>(gateway: G, bytes: u64, beside_download: bool) -> Samples {
    let mut sim = world(gateway, &Path::new(20.0, 40, 60), 1);
    if beside_download {
        sim.add_flow(&FlowSpec::download(modern_client(6 << 20)));
    }
    let every = if beside_download { 2_000 } else { 1_500 };
    let flows: Vec<_> = (0..OBJECTS)
        .map(|i| {
            let spec = FlowSpec::download(modern_client(6 << 20)).bytes(bytes);
            // The distances are odd, so that the objects meet the download in all its phases.
            sim.add_flow(&spec.starting(2_000 + i * every + i * i % 97))
        })
        .collect();
    sim.run_until(at_ms(2_000 + OBJECTS * every + 10_000));
    sim.checker.assert_clean();
    let mut times = Samples::default();
    for flow in flows {
        let report = sim.download(flow);
        times.push(report.completion.expect("an object does not complete").as_secs_f64() * 1e3);
    }
    times
}

#[test]
fn completion_is_no_later_than_without() {
    let rtt_ms = 100.0;
    for beside_download in [false, true] {
        for bytes in [10_000, 100_000, 1_000_000] {
            let without = objects(Direct::default(), bytes, beside_download);
            let with = objects(Gateway::new(GatewayConfig::default()), bytes, beside_download);
            let case = format!("{bytes} bytes, beside a download: {beside_download}");
            let (a, b) = (without.quantile(0.5), with.quantile(0.5));
            assert!(b <= a * 1.02, "{case}: median {a:.1} ms without, {b:.1} ms with");
            let (a, b) = (without.quantile(0.99), with.quantile(0.99));
            assert!(b <= a + rtt_ms, "{case}: p99 {a:.1} ms without, {b:.1} ms with");
        }
    }
}

/// The sum of the bytes that are new to clients.
struct Sum(Arc<AtomicU64>);

impl Observer for Sum {
    fn on_event(&mut self, _now: Instant, _flow: &FlowKey, event: &Event) {
        if let Event::NewData { bytes } = event {
            self.0.fetch_add(*bytes, Ordering::Relaxed);
        }
    }
}

/// The FIN has a position in the stream, but it is no payload.
#[test]
fn payload_is_counted_without_the_fin() {
    let sum = Arc::new(AtomicU64::new(0));
    objects(Gateway::with_observer(GatewayConfig::default(), Box::new(Sum(sum.clone()))), 10_000, false);
    assert_eq!(sum.load(Ordering::Relaxed), OBJECTS * 10_000);
}
