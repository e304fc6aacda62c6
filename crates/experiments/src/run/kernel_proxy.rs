//! The proxy of kernel sockets that replaces the gateway in the profile `kernel-split`.

use paceline_lab::endpoint::{ProxyConfig, ProxyCounters};
use serde_json::{Value, json};

use super::hosts::Plan;
use crate::profile::Profile;
use crate::scenario::Scenario;

/// The proxy's configuration; `None` without a proxy.
pub(super) fn config(scenario: &Scenario, plan: &Plan) -> Option<ProxyConfig> {
    Some(ProxyConfig {
        interfaces: vec!["g0".into(), "g1".into()],
        ports: plan.planned.iter().map(|planned| planned.port).collect(),
        congestion_control: congestion_control(scenario)?,
    })
}

/// The proxy's counters, in the form of a gateway's statistics.
pub(super) fn stats(counters: ProxyCounters) -> Value {
    let ProxyCounters { flows, failed, retransmitted_segments } = counters;
    json!({ "counters": {
        "flows_proxied": flows,
        "flows_failed": failed,
        "retransmitted_segments": retransmitted_segments,
    } })
}

/// The kernel's name of the proxy's congestion control; `None` without a proxy.
pub(super) fn congestion_control(scenario: &Scenario) -> Option<String> {
    let gateway = &scenario.gateway;
    let config = (gateway.profile == Profile::KernelSplit).then(|| gateway.resolve().ok()).flatten()?;
    config.map(|config| config.split.sender.congestion().to_string())
}
