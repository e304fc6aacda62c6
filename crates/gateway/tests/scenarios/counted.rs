//! What a flow's totals say of the download. Each byte counts once, whatever was lost, held or passed on the way.

use paceline_gateway::{Gateway, GatewayConfig};
use paceline_path::{QueueLimit, RateProcess};
use paceline_wire::Rate;
use proptest::prelude::*;

use crate::kit::scenario::{FlowSpec, Path, address, at_ms, lossy, modern_client, xp_client};
use crate::kit::sim::Sim;

const BYTES: u64 = 1_500_000;

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
