//! Looks at the machine as a gateway would use it, and says what to do.

mod network;
mod process;
mod rules;

use serde::Serialize;

use super::{configuration, control, http, policy};
use crate::Options;
use crate::error::Result;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it is as it should be.
    pub status: Status,
    /// What was looked at.
    pub check: &'static str,
    /// The interface, or `machine`.
    pub subject: String,
    /// In a sentence.
    pub finding: String,
    /// What to do, where something is to be done.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How well a gateway would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, but not as well, or not in all cases.
    Warning,
    /// The gateway will not start, or packets will be lost.
    Problem,
}

/// Findings of one check.
#[derive(Debug)]
pub(super) struct Findings {
    check: &'static str,
    subject: String,
    found: Vec<Finding>,
}

impl Findings {
    pub(super) fn of(check: &'static str, subject: &str) -> Findings {
        Findings { check, subject: subject.to_owned(), found: Vec::new() }
    }

    fn add(mut self, status: Status, finding: impl Into<String>, remedy: Option<String>) -> Self {
        let (check, subject) = (self.check, self.subject.clone());
        self.found.push(Finding { status, check, subject, finding: finding.into(), remedy });
        self
    }

    pub(super) fn ok(self, finding: impl Into<String>) -> Self {
        self.add(Status::Ok, finding, None)
    }

    pub(super) fn warn(self, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        self.add(Status::Warning, finding, Some(remedy.into()))
    }

    pub(super) fn problem(self, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        self.add(Status::Problem, finding, Some(remedy.into()))
    }
}

/// Where a gateway is to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    wan: &'a str,
    radio: &'a str,
    /// Behind a TUN device of this name, and not between two ports of a bridge.
    tun: Option<&'a str>,
}

/// Looks at the machine as a gateway with these options would use it.
pub fn examine(options: &Options) -> Result<Vec<Finding>> {
    let (wan, radio) = options.interfaces()?;
    let site = Site { wan, radio, tun: options.tun.as_deref() };
    let mut found = machine(site);
    found.extend(of_options(options, site).into_iter().flat_map(|findings| findings.found));
    Ok(found)
}

/// What else the gateway was to be started with.
fn of_options(options: &Options, site: Site<'_>) -> Vec<Findings> {
    let default = || control::default_path(&format!("{}-{}", site.wan, site.radio));
    let mut all: Vec<Findings> =
        process::running(&options.control.clone().unwrap_or_else(default)).into_iter().collect();
    if let Some(path) = &options.config {
        let findings = Findings::of("configuration", &path.display().to_string());
        all.push(match configuration::load(options, Some(path)) {
            Ok(config) => findings.ok(policy::summary(&config)),
            Err(error) => findings.problem(error.to_string(), "write what the line asks for"),
        });
    }
    if let Some(address) = options.metrics {
        let findings = Findings::of("metrics", &address.to_string());
        all.push(match http::check(address) {
            Ok(()) => findings.ok("on a loopback address"),
            Err(error) => findings.problem(error.to_string(), "--metrics 127.0.0.1:9100"),
        });
    }
    all
}

fn machine(site: Site<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(process::capabilities());
    all.extend(process::scheduling());
    all.extend(process::clock_source());
    all.extend(network::ports(site));
    if site.tun.is_some() {
        all.extend(network::routing(site));
    }
    all.extend(rules::rules(site));
    all.into_iter().flat_map(|findings| findings.found).collect()
}

#[cfg(test)]
mod tests;
