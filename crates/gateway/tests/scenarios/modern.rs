//! A path and a client of today. There is nothing to repair, but a queue to keep short.

use paceline_gateway::GatewayConfig;
use paceline_path::QueueLimit;

use crate::kit::accelerated::{run, unaccelerated};
use crate::kit::scenario::{FlowSpec, Path, modern_client, share};

#[test]
fn the_link_is_full_and_the_queue_is_short() {
    let path = Path { queue: QueueLimit::Bytes(4_300_000), ..Path::new(20.0, 40, 60) };
    let spec = FlowSpec::download(modern_client(6 << 20));
    let (sim, flow) = run(GatewayConfig::default(), &path, &spec, 60, 1);
    let report = sim.download(flow);
    let of_link = share(report.goodput_mbps, 20.0, 1448.0, 1500.0);
    let p95 = sim.delays.path_ms.quantile(0.95);
    let parts = (sim.delays.sojourn_ms.quantile(0.95), sim.delays.queue_ms.quantile(0.95));
    assert!(of_link >= 0.95, "{of_link:.3} {report:?}, p95 {p95:.1} ms");
    assert!(p95 <= 50.0, "p95 {p95:.1} ms (gateway, link: {parts:.1?}) {report:?}");
    assert_eq!(report.timeouts, 0, "{report:?}");
}

#[test]
fn without_a_gateway_the_buffer_fills() {
    let path = Path { queue: QueueLimit::Bytes(4_300_000), ..Path::new(20.0, 40, 60) };
    let report = unaccelerated(&path, &FlowSpec::download(modern_client(6 << 20)), 60, 1);
    assert!(report.srtt.is_some_and(|srtt| srtt.as_millis() > 500), "{report:?}");
}
