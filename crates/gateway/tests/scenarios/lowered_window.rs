//! A phone without DRWA. The gateway lowers the window that it advertises, and does nothing else.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{VirtualWindowConfig, VirtualWindowMode};
use paceline_path::QueueLimit;

use crate::kit::accelerated::{run, unaccelerated};
use crate::kit::scenario::{FlowSpec, Path, modern_client};

fn lowering() -> GatewayConfig {
    let off = GatewayConfig::all_off();
    let virtual_window = VirtualWindowConfig { mode: VirtualWindowMode::Drwa, ..off.virtual_window };
    GatewayConfig { virtual_window, ..off }
}

/// Published for phones with DRWA: an RTT at least 24 % lower, at a throughput within 4 %.
#[test]
fn the_round_trip_is_shorter_at_the_same_throughput() {
    for (mbps, radio_rtt_ms, window) in [(4.85, 60, 262_144), (1.75, 70, 110_208), (25.4, 15, 484_848)] {
        let path = Path { queue: QueueLimit::Bytes(9_500_000), ..Path::new(mbps, 20, radio_rtt_ms) };
        let spec = FlowSpec::download(modern_client(window));
        let untouched = unaccelerated(&path, &spec, 60, 1);
        let (sim, flow) = run(lowering(), &path, &spec, 60, 1);
        let lowered = sim.download(flow);
        let srtt_ms = |srtt: Option<paceline_wire::Duration>| srtt.unwrap().as_secs_f64() * 1e3;
        let (before_ms, after_ms) = (srtt_ms(untouched.srtt), srtt_ms(lowered.srtt));
        assert!(after_ms <= before_ms * 0.76, "{mbps} Mbit/s: {before_ms:.0} ms, {after_ms:.0} ms");
        let change = lowered.goodput_mbps / untouched.goodput_mbps;
        assert!(change >= 0.96, "{mbps} Mbit/s: {change:.3}, {lowered:?}");
    }
}
