//! Window rewriting alone does harm (Figs. 5, 6, 9). Each further part removes some of it.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{
    QueueBoundMode, RetransmissionMode, RttModulationMode, ScheduleMode, VirtualWindowMode,
};
use paceline_path::QueueLimit;

use crate::kit::accelerated::run;
use crate::kit::connection::BIN;
use crate::kit::scenario::{FlowSpec, Path, XP_WINDOW, lossy, xp_client};

/// Returns a configuration that only rewrites the window, to 10 MB.
fn window_only() -> GatewayConfig {
    let mut config = GatewayConfig::all_off();
    config.virtual_window.mode = VirtualWindowMode::Fixed;
    config.virtual_window.max_bytes = 10_000_000;
    config.virtual_window.add_window_scale = true;
    config
}

/// Returns the longest time in ms in which less than 10 % of the link was used. The first two seconds do not count.
/// Below a second the result is 0.
fn longest_gap_ms(config: GatewayConfig, p: f64) -> u64 {
    let path = Path { loss: lossy(p), queue: QueueLimit::Bytes(1_000_000), ..Path::thesis() };
    let (sim, flow) = run(config, &path, &FlowSpec::download(xp_client(XP_WINDOW)), 60, 3);
    let bins = sim.bins(flow);
    let (mut longest, mut run) = (0, 0);
    for start in 200..5_900 {
        // 10 % of 7.2 Mbit/s is 90,000 bytes per second.
        let second: u32 = bins.iter().skip(start).take(100).sum();
        run = if second < 90_000 { run + 1 } else { 0 };
        longest = longest.max(if run > 0 { run + 100 } else { 0 });
    }
    longest * BIN.as_millis()
}

#[test]
fn window_rewriting_alone_blacks_out_and_the_whole_does_not() {
    for p in [0.0, 0.0001] {
        let alone = longest_gap_ms(window_only(), p);
        let mut scheduled = window_only();
        scheduled.schedule.mode = ScheduleMode::ReceptionRate;
        let scheduled_gap = longest_gap_ms(scheduled.clone(), p);
        let mut repaired = scheduled;
        repaired.retransmission.mode = RetransmissionMode::Proactive;
        let repaired_gap = longest_gap_ms(repaired.clone(), p);
        let mut modulated = repaired;
        modulated.rtt_modulation.mode = RttModulationMode::Modulated;
        let modulated_gap = longest_gap_ms(modulated.clone(), p);
        let mut bounded = modulated;
        bounded.queue_bound.mode = QueueBoundMode::Adaptive;
        let gaps = [alone, scheduled_gap, repaired_gap, modulated_gap, longest_gap_ms(bounded, p)];
        println!("p = {p}: gaps in ms, part by part: {gaps:?}");
        assert!(alone >= 1_000, "p = {p}: {gaps:?}");
        assert!(gaps[2..].iter().all(|gap| *gap == 0), "p = {p}: {gaps:?}");
        assert_eq!(longest_gap_ms(GatewayConfig::default(), p), 0, "p = {p}");
    }
}
