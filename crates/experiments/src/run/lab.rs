//! One run in the live lab, from empty namespaces to a result.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration as StdDuration;

use paceline_gateway::config::ShareConfig;
use paceline_lab::endpoint::{self, Control, ProxyThread};
use paceline_lab::{GatewayKind, Lab, LabConfig, Links};
use paceline_linux::clock;
use paceline_wire::{Duration, Instant};
use toml::{Table, Value};

use super::collect::{self, Measured};
use super::gateway_process::GatewayProcess;
use super::hosts::{self, Plan, Planned};
use super::traces::Traces;
use super::{kernel_proxy, links, series};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::profile::Profile;
use crate::result::{Run, RunFiles};
use crate::scenario::{Flow, Scenario, Variant};

/// Receives the progress of a run.
pub(crate) trait Watch: Sync {
    /// `seconds` of the scenario have passed, and `received_bytes` of payload have arrived.
    fn progress(&self, seconds: f64, received_bytes: u64);
}

/// Executes `variant` with `seed`, and writes time series beside `files`.
pub(crate) fn execute(
    variant: &Variant,
    seed: u64,
    folder: &Path,
    files: &RunFiles,
    watch: &dyn Watch,
) -> Result<Run> {
    let outcome = execute_once(variant, seed, folder, files, watch);
    // After Ctrl-C, other errors are its consequence.
    if interrupt::requested() { Err(Error::interrupted()) } else { outcome }
}

fn execute_once(
    variant: &Variant,
    seed: u64,
    folder: &Path,
    files: &RunFiles,
    watch: &dyn Watch,
) -> Result<Run> {
    let scenario = &variant.scenario;
    let scratch = tempfile::Builder::new()
        .prefix("paceline-")
        .tempdir()
        .map_err(|error| Error::io("make a temporary folder", &error))?;
    let lab = Lab::build(lab_config(scenario)).map_err(Error::system)?;
    hosts::set_up(&lab, scenario).map_err(Error::system)?;
    let plan = hosts::plan(&lab, scenario, seed);
    let [downlink, _] = scenario.radio.resolve(folder).map_err(Error::input)?;
    let (measured, gateway_series) = thread::scope(|scope| {
        let config = links::config(scenario, folder, seed)?;
        let links = Links::start(scope, &lab, config, scenario.duration.to_wire()).map_err(Error::system)?;
        let gateway = gateway_file(scenario, &plan.planned)
            .map(|file| GatewayProcess::start(&lab, scenario, &file, scratch.path()))
            .transpose();
        let proxy = kernel_proxy::config(scenario, &plan)
            .map(|config| ProxyThread::start(scope, &lab, config))
            .transpose()
            .map_err(Error::system);
        let outcome = proxy.and_then(|proxy| {
            let outcome = gateway.and_then(|gateway| measure(&lab, &plan, &links, gateway, watch));
            let proxied = proxy.map(ProxyThread::finish).transpose().map_err(Error::system);
            Ok((outcome?, proxied?))
        });
        let reports = links.finish();
        let ((start, traffic, mut gateway, samples), proxied) = outcome?;
        gateway.extend(proxied.map(kernel_proxy::stats));
        Ok::<_, Error>((
            Measured {
                start,
                traffic,
                links: reports.map_err(Error::system)?,
                gateway,
                downlink: downlink.clone(),
            },
            samples,
        ))
    })?;
    let traces = Traces::of_lab(&measured.links.last, &plan, scenario);
    series::write(files, scenario, &series::senders_of_lab(&plan, scenario, &measured), &traces)?;
    if let Some(samples) = gateway_series {
        let target = files.with("gateway.csv");
        fs::write(&target, samples)
            .map_err(|error| Error::io(format_args!("write {}", target.display()), &error))?;
    }
    Ok(collect::result(&variant.name, seed, scenario, &plan, &measured, &traces))
}

type Outcome = (Instant, endpoint::TrafficReport, Vec<serde_json::Value>, Option<Vec<u8>>);

fn measure(
    lab: &Lab,
    plan: &Plan,
    links: &Links<'_>,
    mut gateway: Option<GatewayProcess<'_>>,
    watch: &dyn Watch,
) -> Result<Outcome> {
    let control = Control::new();
    let start = soon(clock::now());
    links.begin(start);
    let traffic = thread::scope(|scope| {
        let (done, finished) = mpsc::channel::<()>();
        let (control, traffic) = (&control, &plan.traffic);
        let hosts = scope.spawn(move || {
            // Dropped when the run ends, which wakes the supervisor.
            let _done = done;
            endpoint::run(traffic, &lab.server, &lab.client, start, control)
        });
        let supervised = supervise(start, control, gateway.as_mut(), &finished, watch);
        if supervised.is_err() {
            control.cancel();
        }
        let report =
            hosts.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(Error::system);
        supervised.and(report)
    })?;
    let Some(gateway) = gateway else {
        return Ok((start, traffic, Vec::new(), None));
    };
    let samples = gateway.series_file();
    let stats = gateway.finish()?;
    Ok((start, traffic, stats, fs::read(samples).ok()))
}

/// Supervises the run: progress, Ctrl-C, and events of the gateway.
fn supervise(
    start: Instant,
    control: &Control,
    mut gateway: Option<&mut GatewayProcess<'_>>,
    finished: &mpsc::Receiver<()>,
    watch: &dyn Watch,
) -> Result<()> {
    loop {
        let since_start = clock::now().saturating_since(start);
        if interrupt::requested() {
            return Err(Error::interrupted());
        }
        watch.progress(since_start.as_secs_f64(), control.received_bytes());
        let mut wait = StdDuration::from_millis(100);
        if let Some(gateway) = gateway.as_deref_mut()
            && let Some(next) = gateway.act(since_start)?
        {
            wait = wait.min(StdDuration::from_nanos(next.as_nanos()));
        }
        match finished.recv_timeout(wait) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            _ => return Ok(()),
        }
    }
}

/// Returns a time in the near future, so that everything is ready when the run starts.
fn soon(now: Instant) -> Instant {
    now + Duration::from_millis(50)
}

fn lab_config(scenario: &Scenario) -> LabConfig {
    let gateway = if scenario.gateway.is_routed() { GatewayKind::Routed } else { GatewayKind::Bridged };
    LabConfig { gateway, ..LabConfig::default() }
}

/// Returns the gateway's file; `None` without a gateway. Flows that pass unchanged or have a share of their own get a
/// rule before those of the scenario.
fn gateway_file(scenario: &Scenario, planned: &[Planned]) -> Option<Table> {
    if matches!(scenario.gateway.profile, Profile::Off | Profile::KernelSplit) {
        return None;
    }
    let mut file = scenario.gateway.config.clone();
    let mut rules = Vec::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        // The transfers of a flow have adjacent ports.
        let ports = || planned.iter().filter(|planned| planned.flow == number).map(|planned| planned.port);
        if let (Some(first), Some(last)) = (ports().min(), ports().max())
            && (flow.pass || flow.share() != ShareConfig::default())
        {
            rules.push(Value::Table(rule(flow, format!("{first}-{last}"))));
        }
    }
    if let Some(Value::Array(others)) = file.remove("rule") {
        rules.extend(others);
    }
    file.insert("rule".into(), rules.into());
    Some(file)
}

/// Returns a rule of the gateway's file: the flow's treatment, for the server's ports.
fn rule(flow: &Flow, ports: String) -> Table {
    let mut rule = Table::new();
    rule.insert("port".into(), ports.into());
    if flow.pass {
        // A share would have no effect.
        rule.insert("mode".into(), "pass".into());
        return rule;
    }
    rule.insert("weight".into(), flow.weight.into());
    rule.insert("priority".into(), flow.priority.into());
    for (key, rate) in [("guaranteed", flow.guaranteed), ("ceiling", flow.ceiling)] {
        if let Some(rate) = rate {
            let bits = 8 * rate.to_wire().as_bytes_per_sec();
            rule.insert(key.into(), format!("{bits}bit").into());
        }
    }
    rule
}

#[cfg(test)]
mod tests {
    use paceline_gateway::config::{FlowAction, Prefer};
    use paceline_service::policy;

    use super::*;

    #[test]
    fn the_gateways_file_has_a_rule_for_each_flow_of_its_own() {
        let text = r#"
            name = "rules"
            duration = "10s"

            [gateway]
            profile = "full"
            config.queue-bound.prefer = "latency"

            [[gateway.config.rule]]
            virtual-window = "1mb"

            [radio.down]
            rate = "10mbit"

            [[flows]]
            name = "plain"

            [[flows]]
            name = "three"
            count = 3
            weight = 2
            priority = 5
            guaranteed = "1.5mbit"
            ceiling = "7.2mbit"

            [[flows]]
            name = "passing"
            pass = true
            weight = 3
        "#;
        let scenario = &crate::scenario::parse_text(text).unwrap().variants[0].scenario;
        let planned: Vec<Planned> = [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0)]
            .into_iter()
            .zip(5001..)
            .map(|((flow, index), port)| Planned { flow, index, port, place: 0 })
            .collect();
        let file = gateway_file(scenario, &planned).unwrap();
        let base = scenario.gateway.profile.config().unwrap();
        let config = policy::read(&file.to_string(), &base, &[]).unwrap();
        assert_eq!(config.queue_bound.prefer, Prefer::Latency);
        let [three, passing, all] = &config.rules.flows[..] else { panic!("{file}") };
        assert_eq!(
            (three.matches.server_ports.clone(), three.action),
            (Some(5002..=5004), FlowAction::Accelerate)
        );
        assert_eq!(three.share, scenario.flows[1].share());
        assert_eq!(
            (passing.matches.server_ports.clone(), passing.action),
            (Some(5005..=5005), FlowAction::Pass)
        );
        assert_eq!(all.virtual_window_max_bytes, Some(1_000_000));
    }
}
