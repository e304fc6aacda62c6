//! What a flow's totals say of the download. Each byte counts once, whatever was lost, held or passed on the way. And
//! what is counted as kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_gateway::config::QueueBoundMode;
use paceline_gateway::{Event, Gateway, GatewayConfig, Observer};
use paceline_path::{LinkConfig, QueueLimit, RateProcess};
use paceline_sim::workload::Workload;
use paceline_wire::{FlowKey, Instant, Rate};
use proptest::prelude::*;

use crate::world::{FlowSpec, Path, World, XP_WINDOW, at_ms, lossy, modern_client, run, xp_client};

const BYTES: u64 = 1_500_000;

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
    let gateway = Gateway::with_observer(GatewayConfig::default(), Box::new(Sum(sum.clone())));
    let mut world = World::new(gateway, &Path::thesis(), 1);
    for n in 0..5 {
        world.add_flow(&FlowSpec::download(modern_client(1 << 20)).starting(n * 1_000).bytes(10_000));
    }
    world.run_until(at_ms(20_000));
    assert_eq!(sum.load(Ordering::Relaxed), 50_000);
}

#[test]
fn what_is_kept_of_an_upload_is_charged_and_without_memory_it_is_left_alone() {
    let mut path = Path::new(20.0, 30, 50);
    path.up.rate = RateProcess::Constant(Rate::from_mbps(1.0));
    path.up.queue = QueueLimit::Bytes(1_000_000);
    let mut spec = FlowSpec::download(modern_client(1_000_000)).sending(Workload::Bulk);
    spec.server = modern_client(3_000_000);
    let kept = |config: GatewayConfig| {
        let (world, flow) = run(Gateway::new(config), &path, &spec, 30);
        (world.gateway().buffered_bytes(), world.read(flow.server))
    };
    let (mut unbounded, mut full) = (GatewayConfig::default(), GatewayConfig::default());
    unbounded.queue_bound.uploads = QueueBoundMode::None;
    full.limits.max_buffer_bytes = 1_000;
    let (before, after, full) = (kept(unbounded), kept(GatewayConfig::default()), kept(full));
    assert!(after.0 >= before.0 + 1_000, "{after:?} {before:?}");
    assert_eq!(full, before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn each_byte_counts_once(
        seed: u64,
        wired_loss in prop::sample::select(vec![0.0, 0.002, 0.02]),
        radio_loss in prop::sample::select(vec![0.0, 0.002, 0.02]),
        wired_queue in prop::sample::select(vec![15_000u64, 60_000, 1_000_000]),
        radio_queue in prop::sample::select(vec![15_000u64, 60_000, 1_000_000]),
        mbps in 5.0f64..30.0,
        memory in prop::sample::select(vec![30_000usize, 64 << 20]),
        small: bool,
        sack: bool,
    ) {
        let mut config = GatewayConfig::default();
        config.limits.max_buffer_bytes = memory;
        let mut path = Path::new(mbps, 20, 40).lossy(radio_loss);
        path.down.queue = QueueLimit::Bytes(radio_queue);
        path.wired_down = LinkConfig {
            loss: lossy(wired_loss),
            queue: QueueLimit::Bytes(wired_queue),
            rate: RateProcess::Constant(Rate::from_mbps(20.0)),
            ..path.wired_down
        };
        let (mut client, window) =
            if small { (xp_client(), XP_WINDOW) } else { (modern_client(1 << 20), 1 << 20) };
        client.config.sack = sack;
        let mut world = World::new(Gateway::new(config), &path, seed);
        let flows = [0, 1].map(|n| world.add_flow(&FlowSpec::download(client.clone()).starting(n * 50).bytes(BYTES)));
        world.run_until(at_ms(60_000));
        let statuses = world.gateway().flow_statuses(0, 10).items;
        prop_assert_eq!(statuses.len(), 2);
        let received: u64 = flows.map(|flow| world.read(flow.client)).into_iter().sum();
        let counted: u64 = statuses.iter().map(|status| status.totals.downlink_bytes).sum();
        // Small clients without SACK may not have all yet. An ACK may then be in flight, or wait for a second segment
        // (RFC 5681, Section 4.2).
        let unheard = if received == 2 * BYTES { 0 } else { 2 * u64::from(window) };
        prop_assert!(counted <= received && received - counted <= unheard, "{} of {}: {:?}", counted, received, statuses);
    }
}
