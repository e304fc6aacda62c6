//! One run in the simulator. The result has the same form as that of the lab.

mod recorder;
mod setup;

use std::path::Path;

use paceline_gateway::auto::PathHistory;
use paceline_sim::measure::Percentiles as SimPercentiles;
use paceline_sim::result::{
    FlowResult as SimFlow, GatewayResult as SimGateway, LinkResult as SimLink, RunResult,
};
use paceline_sim::scenario::Scenario as SimScenario;
use paceline_sim::{RunObserver, ScenarioError, run_watched};
use paceline_wire::Instant;

use super::collect::{judged, ran_alone, round};
use super::lab::Watch;
use super::series;
use super::settling;
use super::traces::{Traces, TransferTrace};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::percentiles::Percentiles;
use crate::profile::Profile;
use crate::result::{FlowResult, GatewayResult, LinkResult, Run, RunFiles};
use crate::scenario::{Direction, Protocol, Scenario, Variant};
use recorder::{Recorder, Steps};

/// Checks that the simulator can run the variant.
///
/// # Errors
/// Names the key that the simulator does not support.
pub(crate) fn check(variant: &Variant, folder: &Path) -> Result<()> {
    setup::setup(&variant.scenario, 1, folder).map(|_| ()).map_err(|why| refused(variant, why))
}

/// Executes `variant` with `seed`, and writes time series beside `files`, if given.
pub(crate) fn execute(
    variant: &Variant,
    seed: u64,
    folder: &Path,
    files: Option<&RunFiles>,
    watch: &dyn Watch,
) -> Result<Run> {
    let scenario = &variant.scenario;
    let mut setup = setup::setup(scenario, seed, folder).map_err(|why| refused(variant, why))?;
    if scenario.gateway.seen_before {
        setup.memory = remembered(&setup)?;
    }
    let Some(radio) = setup.path.last().map(|link| link.down.clone()) else {
        return Err(Error::failed("the simulated path has no link"));
    };
    let recorder = Recorder::new(scenario);
    let mut steps = Steps::new(scenario, watch);
    let outcome = run_watched(&setup, recorder.taps(), &mut steps);
    let simulated = match outcome {
        Err(ScenarioError::GivenUp) => return Err(Error::interrupted()),
        Err(error) => return Err(Error::failed(format!("cannot simulate: {error}"))),
        Ok(_) if interrupt::requested() => return Err(Error::interrupted()),
        Ok(simulated) => simulated,
    };
    if cfg!(test) && !simulated.findings.is_empty() {
        return Err(Error::failed(simulated.findings.join("\n")));
    }
    let traces = recorder.finish();
    if let Some(files) = files {
        series::write(files, scenario, &steps.rows, &traces)?;
        if scenario.gateway.profile != Profile::Off {
            series::write_gateway(files, &steps.gateway)?;
        }
    }
    let run = result(&variant.name, scenario, simulated, &traces);
    Ok(judged(run, scenario, &radio, &traces))
}

/// The memory of a gateway that has seen these flows once.
fn remembered(setup: &SimScenario) -> Result<PathHistory> {
    struct Remembers(PathHistory);
    impl RunObserver for Remembers {
        fn memory(&mut self, memory: &PathHistory) {
            self.0 = memory.clone();
        }

        fn goes_on(&mut self, _now: Instant) -> bool {
            !interrupt::requested()
        }
    }
    let mut remembers = Remembers(PathHistory::default());
    match run_watched(setup, Vec::new(), &mut remembers) {
        Err(ScenarioError::GivenUp) => Err(Error::interrupted()),
        Err(error) => Err(Error::failed(format!("cannot simulate: {error}"))),
        Ok(_) => Ok(remembers.0),
    }
}

fn refused(variant: &Variant, why: String) -> Error {
    Error::input(format!("variant `{}`: {why}", variant.name))
}

fn result(variant: &str, scenario: &Scenario, simulated: RunResult, traces: &Traces) -> Run {
    let transfers = simulated.flows.into_iter().zip(&traces.transfers);
    Run {
        variant: variant.into(),
        seed: simulated.seed,
        duration_s: round(simulated.duration_s),
        flows: transfers
            .map(|(flow, trace)| flow_result(flow, trace, scenario))
            .filter(|result| !ran_alone(result, scenario))
            .collect(),
        links: simulated.links.into_iter().map(|(name, link)| (name, link_result(link))).collect(),
        gateway: simulated.gateway.map(gateway_result).unwrap_or_default(),
        path_delay_ms: percentiles(simulated.path_delay_ms),
        ..Run::default()
    }
}

fn flow_result(flow: SimFlow, trace: &TransferTrace, scenario: &Scenario) -> FlowResult {
    let spec = &scenario.flows[trace.flow];
    let down = spec.direction == Direction::Down && spec.protocol == Protocol::Tcp;
    let delivered = trace.delivered.as_ref().filter(|_| down);
    FlowResult {
        name: flow.name,
        index: trace.index,
        protocol: spec.protocol,
        direction: spec.direction,
        ip: spec.ip,
        start_s: round(flow.start_s),
        bytes: flow.bytes,
        goodput_mbps: round(flow.goodput_mbps),
        completion_s: flow.completion_s.map(round),
        retransmitted_segments: flow.retransmitted_segments,
        timeouts: flow.timeouts,
        tail_loss_probes: flow.tail_loss_probes,
        rtt_ms: percentiles(flow.rtt_ms),
        completed: flow.completed,
        // Payload is only a length here. The receiver's sequence numbers show that every byte arrived once and in
        // order.
        sha256_ok: flow.completed,
        longest_gap_s: round(flow.longest_gap_s),
        resumed_s: delivered.and_then(|series| settling::resumed_s(scenario, series)),
        error: flow.error,
    }
}

fn link_result(link: SimLink) -> LinkResult {
    LinkResult {
        utilization: link.utilization.map(round),
        capacity_mbps: link.capacity_mbps.map(round),
        queue_delay_ms: percentiles(link.queue_delay_ms),
        drops: link.drops,
        drops_by_cause: link.drops_by_cause,
        marks: link.marks,
        delivered_packets: link.delivered_packets,
        delivered_bytes: link.delivered_bytes,
    }
}

fn gateway_result(gateway: SimGateway) -> GatewayResult {
    let counters = match serde_json::to_value(gateway.counters) {
        Ok(serde_json::Value::Object(counters)) => counters,
        _ => serde_json::Map::new(),
    };
    GatewayResult { sojourn_ms: Some(percentiles(gateway.sojourn_ms)), counters, events: Vec::new() }
}

fn percentiles(of: SimPercentiles) -> Percentiles {
    Percentiles { p50: of.p50, p95: of.p95, p99: of.p99 }
}

#[cfg(test)]
mod tests;
