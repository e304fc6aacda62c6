//! An upload through a slow uplink. The client's modem has a deep buffer before the gateway.

use paceline_gateway::config::{QueueBoundConfig, QueueBoundMode};
use paceline_gateway::{Gateway, GatewayConfig};
use paceline_path::{QueueLimit, RateProcess};
use paceline_wire::{Duration, Rate};

use crate::kit::accelerated::run;
use crate::kit::connection::{EndpointConfig, Workload};
use crate::kit::scenario::{Flow, FlowSpec, Path, Report, modern_client, without_timestamps};
use crate::kit::sim::Sim;

fn unbounded() -> GatewayConfig {
    let queue_bound = QueueBoundConfig { uploads: QueueBoundMode::None, ..QueueBoundConfig::default() };
    GatewayConfig { queue_bound, ..GatewayConfig::default() }
}

/// Runs a bulk upload and returns its report. The checker says whether a window edge moved back or went beyond the
/// server's own.
fn upload(config: GatewayConfig, mbps: f64, client: EndpointConfig, sends: Workload) -> Report {
    let (sim, flow) = simulate(config, mbps, client, sends);
    sim.upload(flow)
}

fn simulate(
    config: GatewayConfig,
    mbps: f64,
    client: EndpointConfig,
    sends: Workload,
) -> (Sim<Gateway>, Flow) {
    let path = Path {
        uplink_rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        uplink_queue: QueueLimit::Bytes(1_000_000),
        ..Path::new(20.0, 30, 50)
    };
    let server = modern_client(3_000_000);
    let spec = FlowSpec {
        server,
        client_sends: sends,
        server_sends: Workload::Silent,
        ..FlowSpec::download(client)
    };
    run(config, &path, &spec, 30, 1)
}

#[test]
fn the_modems_buffer_stays_short_at_the_same_throughput() {
    for mbps in [1.0, 5.0, 20.0] {
        let client = || modern_client(1_000_000);
        let before = upload(unbounded(), mbps, client(), Workload::Endless);
        let after = upload(GatewayConfig::default(), mbps, client(), Workload::Endless);
        let rtt = |report: &Report| report.srtt.unwrap();
        // 80 ms of propagation, the time of a packet, and that of the ACK that waits for the next one.
        let packets = Rate::from_mbps(mbps).time_for(4 * 1_500);
        assert!(rtt(&after) <= Duration::from_millis(90) + packets, "{mbps}: {:?}", rtt(&after));
        assert!(rtt(&before) > rtt(&after) * 2, "{mbps}: {:?} before", rtt(&before));
        let change = after.goodput_mbps / before.goodput_mbps;
        assert!(change >= 0.95, "{mbps}: {change:.3}, {after:?}");
    }
}

#[test]
fn what_is_kept_of_an_upload_is_charged_and_without_memory_it_is_left_alone() {
    let kept = |config: GatewayConfig| {
        let (sim, flow) = simulate(config, 1.0, modern_client(1_000_000), Workload::Endless);
        (sim.gateway.buffered_bytes(), sim.upload(flow).received_bytes)
    };
    let mut full = GatewayConfig::default();
    full.limits.max_buffer_bytes = 1_000;
    let (before, after, full) = (kept(unbounded()), kept(GatewayConfig::default()), kept(full));
    assert!(after.0 >= before.0 + 1_000, "{after:?} {before:?}");
    assert_eq!(full, before);
}

/// Without timestamps nothing tells what answers what. Such a client is left alone.
#[test]
fn without_timestamps_nothing_changes() {
    let client = || without_timestamps(modern_client(1_000_000));
    let before = upload(unbounded(), 1.0, client(), Workload::Endless);
    let after = upload(GatewayConfig::default(), 1.0, client(), Workload::Endless);
    assert_eq!(before.received_bytes, after.received_bytes);
    assert_eq!(before.srtt, after.srtt);
}

#[test]
fn a_short_upload_takes_no_longer() {
    for mbps in [1.0, 5.0, 20.0] {
        for bytes in [10_000, 100_000, 1_000_000] {
            let time =
                |config| upload(config, mbps, modern_client(1_000_000), Workload::Bytes(bytes)).completion;
            let (before, after) = (time(unbounded()).unwrap(), time(GatewayConfig::default()).unwrap());
            assert!(after <= before + before / 50, "{mbps}, {bytes}: {before:?} before, {after:?}");
        }
    }
}
