//! The proxy of kernel sockets that stands in the gateway's place, of the profile `kernel-split`.

use paceline_lab::endpoint::{ProxyConfig, ProxyCounters};
use serde_json::{Value, json};

use super::hosts::Plan;
use crate::profile::Profile;
use crate::scenario::Scenario;

/// What the proxy is told; `None` without one.
pub(super) fn config(scenario: &Scenario, plan: &Plan) -> Option<ProxyConfig> {
    Some(ProxyConfig {
        interfaces: vec!["g0".into(), "g1".into()],
        ports: plan.planned.iter().map(|planned| planned.port).collect(),
        congestion_control: congestion_control(scenario)?,
    })
}

/// What it counted, as a gateway tells it.
pub(super) fn stats(counters: ProxyCounters) -> Value {
    let ProxyCounters { flows, failed, retransmitted_segments } = counters;
    json!({ "counters": {
        "flows_proxied": flows,
        "flows_failed": failed,
        "retransmitted_segments": retransmitted_segments,
    } })
}

/// What the proxy sends with, by the kernel's name; `None` without one.
pub(super) fn congestion_control(scenario: &Scenario) -> Option<String> {
    let gateway = &scenario.gateway;
    let config = (gateway.profile == Profile::KernelSplit).then(|| gateway.resolve().ok()).flatten()?;
    config.map(|config| config.split.sender.congestion().to_string())
}
