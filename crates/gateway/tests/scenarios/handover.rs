//! A hand-over to a longer and slower path, and back.

use paceline_gateway::{Gateway, GatewayConfig};
use paceline_path::{Delay, DelayStep, QueueLimit, RateProcess, RateStep};
use paceline_wire::{Duration, Instant, Rate};

use crate::kit::scenario::{FlowSpec, Path, at_ms, modern_client, world};
use crate::kit::sim::Sim;

/// The radio RTT is 40, 80 and again 40 ms. The rate is 20, 5 and again 20 Mbit/s. They change at 10 s and 20 s.
fn path() -> Path {
    let second = Duration::from_secs(1);
    let rate = |at: u64, mbps: f64| RateStep { at: second * at, rate: Rate::from_mbps(mbps) };
    Path {
        rate: RateProcess::Steps(vec![rate(0, 20.0), rate(10, 5.0), rate(20, 20.0)]),
        queue: QueueLimit::Bytes(4_300_000),
        ..Path::new(20.0, 20, 40)
    }
}

fn world_with_handovers() -> Sim<Gateway> {
    let mut sim = world(Gateway::new(GatewayConfig::default()), &path(), 1);
    let second = Duration::from_secs(1);
    let step = |at: u64, ms: u64| DelayStep { at: second * at, delay: Duration::from_millis(ms) };
    let delay = Delay::Steps(vec![step(0, 20), step(10, 40), step(20, 20)]);
    let (mut down, mut up) = (path().radio_down(), path().radio_up());
    down.delay = delay.clone();
    up.delay = delay;
    sim.replace_radio(0, down, up);
    sim
}

/// Returns the 95th percentile of the path delay between two times.
fn path_delay(sim: &Sim<Gateway>, from: Instant, to: Instant) -> f64 {
    let mut values: Vec<f64> =
        sim.delays.path_series.iter().filter(|(at, _)| *at >= from && *at < to).map(|(_, ms)| *ms).collect();
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) * 95 / 100]
}

/// When the download starts. A single run has up to 210 ms at the first check, by chance; so the mean of these counts.
const STARTS_MS: [u64; 6] = [0, 3, 7, 20, 50, 100];

#[test]
fn two_seconds_after_a_handover_the_new_path_is_used_well() {
    let mut delays = [0.0; 2];
    for start_ms in STARTS_MS {
        let mut sim = world_with_handovers();
        let flow = sim.add_flow(&FlowSpec::download(modern_client(6 << 20)).starting(start_ms));
        sim.run_until(at_ms(30_000));
        sim.checker.assert_clean();
        for ((from, mbps), mean) in [(12_000, 5.0), (22_000, 20.0)].into_iter().zip(&mut delays) {
            let goodput = sim.goodput_between(flow, at_ms(from), at_ms(from + 1_000));
            let share = goodput / (mbps * 1448.0 / 1500.0);
            assert!(share >= 0.95, "{share:.3} of {mbps} Mbit/s from {from} ms on");
            *mean += path_delay(&sim, at_ms(from), at_ms(from + 1_000)) / STARTS_MS.len() as f64;
        }
        let report = sim.download(flow);
        assert_eq!(report.timeouts, 0, "{report:?}");
    }
    assert!(delays.into_iter().all(|delay| delay < 200.0), "path delay p95 {delays:.1?} ms");
}
