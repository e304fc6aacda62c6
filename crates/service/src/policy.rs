//! The operator's file: keys of the gateway's configuration, and rules for flows and subscribers.
//!
//! A line that the gateway cannot apply is refused with its number, never ignored. docs/reference/policy.md documents
//! every key.

mod rule;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{
    FlowMode, LimitsConfig, QueueBoundConfig, RetransmissionConfig, RttModulationConfig, Rules,
    ScheduleConfig, SharingConfig, VirtualWindowConfig,
};
use paceline_gateway::split::{SenderConfig, SplitConfig};
use serde::Deserialize;
use toml::Spanned;

use crate::error::{Error, Result};
use crate::toml_text::{explain, line_of, merge};
use rule::{Rule, Subscriber};

/// The whole file. The configuration's keys are read from the text a second time, and change the profile.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    #[serde(default)]
    rule: Vec<Spanned<Rule>>,
    #[serde(default)]
    subscriber: Vec<Spanned<Subscriber>>,
    #[serde(default)]
    profile: BTreeMap<String, SenderConfig>,
    #[serde(rename = "mode")]
    _mode: Option<FlowMode>,
    #[serde(rename = "virtual-window")]
    _virtual_window: Option<VirtualWindowConfig>,
    #[serde(rename = "schedule")]
    _schedule: Option<ScheduleConfig>,
    #[serde(rename = "retransmission")]
    _retransmission: Option<RetransmissionConfig>,
    #[serde(rename = "rtt-modulation")]
    _rtt_modulation: Option<RttModulationConfig>,
    #[serde(rename = "queue-bound")]
    _queue_bound: Option<QueueBoundConfig>,
    #[serde(rename = "sharing")]
    _sharing: Option<SharingConfig>,
    #[serde(rename = "split")]
    _split: Option<SplitConfig>,
    #[serde(rename = "limits")]
    _limits: Option<LimitsConfig>,
}

/// A mistake: its position in the text, and its description.
type Wrong = (usize, String);

/// A mistake: its line, if it is in one place, and its description.
pub type Mistake = (Option<usize>, String);

/// Reads and checks the file at `path`, which changes `base`. Rules about interfaces other than `interfaces` are for
/// other gateways.
pub(super) fn load(path: &Path, base: &GatewayConfig, interfaces: &[&str]) -> Result<GatewayConfig> {
    let text = fs::read_to_string(path)
        .map_err(|error| Error::input(format!("cannot read configuration {}: {error}", path.display())))?;
    parse(path, &text, base, interfaces)
}

pub(super) fn parse(
    path: &Path,
    text: &str,
    base: &GatewayConfig,
    interfaces: &[&str],
) -> Result<GatewayConfig> {
    read(text, base, interfaces).map_err(|(line, what)| {
        let line = line.map_or(String::new(), |line| format!("{line}:"));
        Error::input(format!("{}:{line} {what}", path.display()))
    })
}

/// Reads and checks the text of a file, which changes `base`. Rules about interfaces other than `interfaces` are left
/// out. Without `interfaces`, none is.
///
/// # Errors
/// The first mistake.
pub fn read(
    text: &str,
    base: &GatewayConfig,
    interfaces: &[&str],
) -> std::result::Result<GatewayConfig, Mistake> {
    let typed = |error: toml::de::Error| (Some(line_of(text, error.span())), explain(error.message()));
    let file: File = toml::from_str(text).map_err(typed)?;
    let mut changes: toml::Table = toml::from_str(text).map_err(typed)?;
    for own in ["rule", "subscriber", "profile"] {
        changes.remove(own);
    }
    let mut table = toml::Table::try_from(base).map_err(|error| (None, error.to_string()))?;
    merge(&mut table, &changes);
    let mut config: GatewayConfig = table.try_into().map_err(typed)?;
    config.rules = compile(&file, config.mode, interfaces)
        .map_err(|(start, what)| (Some(line_of(text, Some(start..start))), what))?;
    config.check().map_err(|why| (None, why))?;
    Ok(config)
}

fn compile(file: &File, mode: FlowMode, interfaces: &[&str]) -> std::result::Result<Rules, Wrong> {
    let mut flows = Vec::new();
    let mut all: Option<usize> = None;
    for (index, rule) in file.rule.iter().enumerate() {
        let start = rule.span().start;
        if let Some(earlier) = all {
            let (this, earlier) = (index + 1, earlier + 1);
            return Err((
                start,
                format!(
                    "rule {this} is never reached: rule {earlier} matches every flow; put rule {earlier} last"
                ),
            ));
        }
        let rule = rule.as_ref();
        if rule.matches_all() {
            all = Some(index);
        }
        let compiled = rule.compile(start, &file.profile, mode)?;
        if rule.is_about(interfaces)? {
            flows.extend(compiled);
        }
        if flows.len() > RULES_MAX {
            return Err(too_many(start));
        }
    }
    let mut subscribers = Vec::new();
    for subscriber in &file.subscriber {
        subscribers.extend(subscriber.as_ref().compile(subscriber.span().start)?);
    }
    Ok(Rules { flows, subscribers })
}

fn too_many(start: usize) -> Wrong {
    (start, format!("more than {RULES_MAX} combinations of matches; write fewer or wider ones"))
}

/// Returns a short summary of the configuration.
pub(super) fn summary(config: &GatewayConfig) -> String {
    let count = |count: usize, of: &str| match count {
        1 => format!("1 rule for {of}"),
        count => format!("{count} rules for {of}"),
    };
    let mode = match config.mode {
        FlowMode::Transparent => "transparent",
        FlowMode::Split => "split",
        FlowMode::Auto => "auto",
    };
    let (flows, subscribers) = (config.rules.flows.len(), config.rules.subscribers.len());
    format!("{}, {}, other flows {mode}", count(flows, "flows"), count(subscribers, "subscribers"))
}

/// Returns the parts that differ between two configurations and cannot change in a running gateway.
pub(super) fn needs_restart(running: &GatewayConfig, new: &GatewayConfig) -> Vec<&'static str> {
    let sharing =
        |config: &GatewayConfig| (config.sharing.subscriber_prefix_v4, config.sharing.subscriber_prefix_v6);
    [
        ("virtual-window", running.virtual_window != new.virtual_window),
        ("schedule", running.schedule != new.schedule),
        ("retransmission", running.retransmission != new.retransmission),
        ("rtt-modulation", running.rtt_modulation != new.rtt_modulation),
        ("queue-bound", running.queue_bound != new.queue_bound),
        ("sharing.subscriber-prefix", sharing(running) != sharing(new)),
        ("sharing.capacity-mbps", running.sharing.capacity_mbps != new.sharing.capacity_mbps),
        ("sharing.other", running.sharing.other != new.sharing.other),
        ("split.receive-window-bytes", running.split.receive_window_bytes != new.split.receive_window_bytes),
        ("split.receive-window", running.split.receive_window != new.split.receive_window),
        ("split.drwa-lambda-percent", running.split.drwa_lambda_percent != new.split.drwa_lambda_percent),
        ("limits", running.limits != new.limits),
    ]
    .into_iter()
    .filter_map(|(name, differs)| differs.then_some(name))
    .collect()
}

/// Each new flow is compared with the rules one by one. Our choice: ten thousand comparisons take some tens of
/// microseconds.
const RULES_MAX: usize = 10_000;

#[cfg(test)]
mod tests;
