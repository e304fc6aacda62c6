//! Receive buffers from 17 to 192 KB (Fig. 25), and the handsets of Table 4.

use crate::kit::accelerated::{accelerated, unaccelerated};
use crate::kit::at_least;
use crate::kit::connection::EndpointConfig;
use crate::kit::scenario::{
    FlowSpec, Path, Report, at_ms, lossy, modern_client, without_timestamps, world, xp_client,
};
use paceline_gateway::{Gateway, GatewayConfig};
use paceline_path::RateProcess;
use paceline_wire::{Node, Rate};

use crate::kit::sim::Direct;

const BUFFERS_KB: [u64; 6] = [17, 32, 64, 96, 128, 192];

/// A client as XP: no window scaling up to 64 KB, and scaling with a larger socket buffer.
fn client(kb: u64) -> EndpointConfig {
    if kb < 64 { xp_client(kb * 1_024) } else { without_timestamps(modern_client(kb * 1_024)) }
}

fn sweep(run: impl Fn(&FlowSpec) -> Report) -> Vec<f64> {
    BUFFERS_KB.iter().map(|kb| run(&FlowSpec::download(client(*kb))).goodput_mbps).collect()
}

#[test]
fn the_rise_without_and_nearly_flat_with() {
    for p in [0.0, 0.0001, 0.006] {
        let path = Path { loss: lossy(p), ..Path::new(5.4, 0, 85) };
        let without = sweep(|spec| unaccelerated(&path, spec, 40, 1));
        let with = sweep(|spec| accelerated(&path, spec, 40, 1));
        for (kb, (without, with)) in BUFFERS_KB.iter().zip(without.iter().zip(&with)) {
            // Where the window exceeds the path, the gateway can only cost. The ramp may cost up to 0.5 % of 40 s.
            assert!(*with >= 0.995 * without, "p = {p}, {kb} KB: {without} without, {with} with");
        }
        if p == 0.0 {
            assert!(
                without[0] < 0.4 * without[5] && without.is_sorted_by(|a, b| *a <= b + 0.1),
                "{without:?}"
            );
            assert!(with[0] > 0.95 * with[5], "{with:?}");
        } else {
            // With an open hole, 17 KB hold 12 of the 38 packets that the path holds.
            let bound = (1.0 - p) / (1.0 + p * 26.0) / (1.0 - p);
            at_least(&format!("receiver buffers, p = {p}"), with[0] / with[5], 0.9 * bound);
        }
    }
}

/// Runs a handset that takes `mbps` out of its driver, with a buffer of `kb`.
fn handset<G: Node>(gateway: G, kb: u64, mbps: Option<f64>) -> Report {
    let mut sim = world(gateway, &Path { loss: lossy(0.0001), ..Path::new(5.4, 0, 85) }, 1);
    if let Some(mbps) = mbps {
        sim.set_processing(0, RateProcess::Constant(Rate::from_mbps(mbps)));
    }
    let flow = sim.add_flow(&FlowSpec::download(client(kb)).bytes(4_000_000));
    sim.run_until(at_ms(30_000));
    sim.checker.assert_clean();
    sim.download(flow)
}

#[test]
fn handsets_of_table_4() {
    // iPhone 3G and 3GS: 128 KB, limited by their processor. Nexus One: 81 KB, not limited.
    for (name, kb, mbps) in [("3G", 128, Some(2.63)), ("3GS", 128, Some(3.69)), ("Nexus One", 81, None)] {
        let without = handset(Direct::default(), kb, mbps);
        let with = handset(Gateway::new(GatewayConfig::default()), kb, mbps);
        assert!(with.goodput_mbps >= 0.98 * without.goodput_mbps, "{name}: {without:?} {with:?}");
        assert_eq!(with.beyond_window_segments, 0, "{name}: {with:?}");
        assert_eq!(with.timeouts, 0, "{name}: {with:?}");
    }
}
