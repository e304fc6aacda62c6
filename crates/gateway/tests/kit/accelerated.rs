//! Runs of one flow.

use paceline_gateway::{Gateway, GatewayConfig};

use super::scenario::{Flow, FlowSpec, Path, at_ms, world};
use super::sim::{Direct, Sim};

/// Runs one flow through a gateway for `seconds`. Fails if the checker found anything.
#[track_caller]
pub fn run(
    config: GatewayConfig,
    path: &Path,
    spec: &FlowSpec,
    seconds: u64,
    seed: u64,
) -> (Sim<Gateway>, Flow) {
    let mut sim = world(Gateway::new(config), path, seed);
    let flow = sim.add_flow(spec);
    sim.run_until(at_ms(seconds * 1_000));
    sim.checker.assert_clean();
    (sim, flow)
}

/// Runs one flow without a gateway.
#[track_caller]
pub fn unaccelerated(path: &Path, spec: &FlowSpec, seconds: u64, seed: u64) -> (Sim<Direct>, Flow) {
    let mut sim = world(Direct::default(), path, seed);
    let flow = sim.add_flow(spec);
    sim.run_until(at_ms(seconds * 1_000));
    sim.checker.assert_clean();
    (sim, flow)
}
