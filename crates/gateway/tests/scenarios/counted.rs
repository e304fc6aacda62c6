//! What a flow's totals say of the download. Each byte counts once, whatever was lost, held or passed on the way. And
//! what is counted as kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_gateway::config::QueueBoundMode;
use paceline_gateway::{Event, Gateway, GatewayConfig, Observer};
use paceline_path::{QueueLimit, RateProcess};
use paceline_wire::{FlowKey, Instant, Rate};
use proptest::prelude::*;

use crate::kit::accelerated::run;
use crate::kit::connection::Workload;
use crate::kit::scenario::{FlowSpec, Path, address, at_ms, lossy, modern_client, world, xp_client};
use crate::kit::sim::Sim;

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
    let mut sim = world(gateway, &Path::thesis(), 1);
    for n in 0..5 {
        sim.add_flow(&FlowSpec::download(modern_client(1 << 20)).starting(n * 1_000).bytes(10_000));
    }
    sim.run_until(at_ms(20_000));
    assert_eq!(sum.load(Ordering::Relaxed), 50_000);
}

#[test]
fn what_is_kept_of_an_upload_is_charged_and_without_memory_it_is_left_alone() {
    let path = Path {
        uplink_rate: RateProcess::Constant(Rate::from_mbps(1.0)),
        uplink_queue: QueueLimit::Bytes(1_000_000),
        ..Path::new(20.0, 30, 50)
    };
    let spec = FlowSpec {
        server: modern_client(3_000_000),
        client_sends: Workload::Endless,
        server_sends: Workload::Silent,
        ..FlowSpec::download(modern_client(1_000_000))
    };
    let kept = |config: GatewayConfig| {
        let (sim, flow) = run(config, &path, &spec, 30, 1);
        (sim.gateway.buffered_bytes(), sim.upload(flow).received_bytes)
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
        let path = Path { loss: lossy(radio_loss), queue: QueueLimit::Bytes(radio_queue), ..Path::new(mbps, 20, 40) };
        let mut sim = Sim::new(Gateway::new(config), seed);
        let mut wired = path.wired();
        wired.loss = lossy(wired_loss);
        wired.queue = QueueLimit::Bytes(wired_queue);
        wired.rate = RateProcess::Constant(Rate::from_mbps(20.0));
        let wired = sim.add_wired(wired, path.wired());
        let radio = sim.add_radio(path.radio_down(), path.radio_up());
        sim.add_server(address(false, 0, 1), wired);
        sim.add_client(address(false, 1, 1), radio);
        let mut client = if small { xp_client(17_520) } else { modern_client(1 << 20) };
        client.tcp.sack = sack;
        let flows = [0, 1].map(|n| sim.add_flow(&FlowSpec::download(client.clone()).starting(n * 50).bytes(BYTES)));
        sim.run_until(at_ms(60_000));
        let statuses = sim.gateway.flow_statuses(0, 10).items;
        prop_assert_eq!(statuses.len(), 2);
        let received: u64 = flows.map(|flow| sim.download(flow).received_bytes).into_iter().sum();
        let counted: u64 = statuses.iter().map(|status| status.totals.downlink_bytes).sum();
        // Small clients without SACK may not have all yet. An ACK may then be in flight, or wait for a second segment
        // (RFC 5681, Section 4.2).
        let unheard = if received == 2 * BYTES { 0 } else { 2 * client.buffer() };
        prop_assert!(counted <= received && received - counted <= unheard, "{} of {}: {:?}", counted, received, statuses);
    }
}
