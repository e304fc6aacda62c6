//! RTT modulation (Chapter 6): a server that times out early, and one of today.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::RttModulationMode;
use paceline_wire::Duration;

use crate::kit::accelerated::run;
use crate::kit::scenario::{FlowSpec, Path, Report, lossy, modern_client};
use crate::kit::sender::SenderConfig;

fn download(mode: RttModulationMode, rto_min_ms: u64, tail_loss_probe: bool) -> Report {
    let mut config = GatewayConfig::default();
    config.rtt_modulation.mode = mode;
    let path = Path { loss: lossy(0.001), ..Path::thesis() };
    let mut client = modern_client(192 << 10);
    client.timestamps = false;
    let mut spec = FlowSpec::download(client);
    spec.server.sender = SenderConfig {
        rto_min: Duration::from_millis(rto_min_ms),
        tail_loss_probe,
        ..SenderConfig::default()
    };
    let (sim, flow) = run(config, &path, &spec, 60, 2);
    sim.download(flow)
}

#[test]
fn an_early_timeout_is_kept_from_firing() {
    let without = download(RttModulationMode::None, 20, false);
    let with = download(RttModulationMode::Modulated, 20, false);
    assert!(without.timeouts > 0, "{without:?}");
    assert_eq!(with.timeouts, 0, "{with:?}");
    assert!(with.goodput_mbps >= without.goodput_mbps, "{with:?} {without:?}");
}

#[test]
fn a_server_of_today_does_not_time_out() {
    let without = download(RttModulationMode::None, 200, true);
    let with = download(RttModulationMode::Modulated, 200, true);
    assert_eq!((without.timeouts, with.timeouts), (0, 0), "{without:?} {with:?}");
    assert!(with.tail_loss_probes <= without.tail_loss_probes, "{without:?} {with:?}");
}
