//! A transfer of many minutes. The last minute must have what the first had.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{
    QueueBoundMode, RetransmissionMode, RttModulationMode, ScheduleMode, VirtualWindowMode,
};
use paceline_path::QueueLimit;

use crate::kit::accelerated::run;
use crate::kit::scenario::{FlowSpec, Path, XP_WINDOW, at_ms, lossy, xp_client};

/// The design of the published text. Nothing else bounds its schedule and its repairs.
fn of_the_text() -> GatewayConfig {
    let mut config = GatewayConfig::all_off();
    config.virtual_window.mode = VirtualWindowMode::Fixed;
    config.virtual_window.max_bytes = 10_000_000;
    config.virtual_window.add_window_scale = true;
    config.schedule.mode = ScheduleMode::ReceptionRate;
    config.retransmission.mode = RetransmissionMode::Proactive;
    config.rtt_modulation.mode = RttModulationMode::Modulated;
    config.queue_bound.mode = QueueBoundMode::None;
    config
}

/// The round trip of the schedule once contained the queue that the schedule builds. It grew by that queue every ten
/// seconds. Repairs left beside the schedule. A buffer for six windows of the client overflowed after a minute.
#[test]
fn the_schedule_alone_keeps_its_rate() {
    let short = Path { queue: QueueLimit::Bytes(100_000), ..Path::thesis() };
    let lossy = Path { loss: lossy(0.0001), ..Path::thesis() };
    for path in [short, lossy] {
        let (sim, flow) = run(of_the_text(), &path, &FlowSpec::download(xp_client(XP_WINDOW)), 400, 1);
        let report = sim.download(flow);
        let first = sim.goodput_between(flow, at_ms(5_000), at_ms(60_000));
        let last = sim.goodput_between(flow, at_ms(340_000), at_ms(400_000));
        assert!(last >= 0.97 * first, "{:?}: {first} and {last} Mbit/s: {report:?}", path.loss);
        assert!(report.longest_gap.as_millis() < 1_000, "{:?}: {report:?}", path.loss);
    }
}
