//! Random loss on the radio link (Chapter 5), and the measured path of Chapter 8.

use paceline_gateway::GatewayConfig;

use crate::kit::accelerated::{run, unaccelerated};
use crate::kit::at_least;
use crate::kit::connection::EndpointConfig;
use crate::kit::scenario::{
    FlowSpec, Path, Report, XP_WINDOW, at_ms, lossy, modern_client, share, without_timestamps, xp_client,
};

/// L in the bound on what the server retransmits: the number of local attempts that fit.
const L: i32 = 1;
const LOSSES: [f64; 5] = [0.0001, 0.001, 0.006, 0.01, 0.02];

fn large_client() -> EndpointConfig {
    without_timestamps(modern_client(192 << 10))
}

fn of_link(report: &Report, mbps: f64) -> f64 {
    share(report.goodput_mbps, mbps, 1460.0, 1500.0)
}

#[track_caller]
fn check_server(report: &Report, p: f64) {
    assert_eq!(report.timeouts, 0, "p = {p}: {report:?}");
    let allowed = 2.0 * p.powi(L + 1) * report.sent_segments as f64;
    assert!(report.retransmitted_segments as f64 <= allowed, "p = {p}, allowed {allowed:.1}: {report:?}");
}

#[test]
fn a_small_window_gets_what_it_allows() {
    let (bdp, window) = (60.0, 12.0);
    for p in LOSSES {
        let path = Path { loss: lossy(p), ..Path::thesis() };
        let (sim, flow) =
            run(GatewayConfig::default(), &path, &FlowSpec::download(xp_client(XP_WINDOW)), 60, 1);
        let report = sim.download(flow);
        let bound = 0.9 * (1.0 - p) / (1.0 + p * (bdp - window));
        at_least(&format!("lossy 17 KB, p = {p}"), of_link(&report, 7.2), bound);
        check_server(&report, p);
    }
}

#[test]
fn a_large_window_gets_the_link() {
    for p in LOSSES {
        let path = Path { loss: lossy(p), ..Path::thesis() };
        let (sim, flow) = run(GatewayConfig::default(), &path, &FlowSpec::download(large_client()), 60, 1);
        let report = sim.download(flow);
        let bound = 0.95 * (1.0 - p);
        at_least(&format!("lossy 192 KB, p = {p}"), of_link(&report, 7.2), bound);
        check_server(&report, p);
    }
}

#[test]
fn the_production_network_of_the_thesis() {
    let path = Path { loss: lossy(0.006), ..Path::new(5.4, 0, 85) };
    let small = FlowSpec::download(xp_client(XP_WINDOW));
    let before = unaccelerated(&path, &small, 60, 1);
    let (sim, flow) = run(GatewayConfig::default(), &path, &small, 60, 1);
    let after = sim.download(flow);
    at_least("production 17 KB, Mbit/s", after.goodput_mbps, 4.0);
    at_least("production 17 KB, ratio", after.goodput_mbps / before.goodput_mbps, 2.4);
    let (sim, flow) = run(GatewayConfig::default(), &path, &FlowSpec::download(large_client()), 60, 1);
    let after = sim.download(flow);
    let bound = 0.95 * (1.0 - 0.006);
    at_least("production 192 KB", of_link(&after, 5.4), bound);
}

/// The piece before the edge of the window is shorter than a segment and is answered sooner. That does not mean that
/// a packet was late.
#[test]
fn a_window_that_ends_within_a_segment_tells_of_no_reordering() {
    let path = Path { loss: lossy(0.01), ..Path::new(20.0, 20, 80) };
    for seed in 11..17 {
        let spec = FlowSpec::download(modern_client(192_000));
        let (sim, flow) = run(GatewayConfig::default(), &path, &spec, 60, seed);
        let goodput = sim.goodput_between(flow, at_ms(20_000), at_ms(60_000));
        let of_link = share(goodput, 20.0, 1448.0, 1500.0);
        at_least(&format!("seed {seed}"), of_link, 0.8);
        let repairs = sim.gateway.counters().local_retransmissions;
        assert!(repairs < 13_000, "seed {seed}: {repairs}");
    }
}
