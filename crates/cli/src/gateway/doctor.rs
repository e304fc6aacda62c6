//! `paceline gateway doctor`: looks at the machine as a gateway would use it, and says what to do.

mod network;
mod process;
mod rules;

use comfy_table::{ColumnConstraint, Width};
use serde::Serialize;
use serde_json::json;

use super::{control, http, policy};
use crate::args::{DoctorArgs, GatewayArgs};
use crate::error::{Error, Result};
use crate::output::say;
use crate::result::new_table;
use crate::units::counted;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    status: Status,
    check: &'static str,
    /// The interface, or `machine`.
    subject: String,
    finding: String,
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Status {
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

pub(super) fn command(args: &DoctorArgs) -> Result<()> {
    let (wan, radio) = args.gateway.interfaces()?;
    let site = Site { wan, radio, tun: args.gateway.tun.as_deref() };
    let mut findings = examine(site);
    findings.extend(options(&args.gateway, site).into_iter().flat_map(|findings| findings.found));
    let problems = findings.iter().filter(|one| one.status == Status::Problem).count();
    let warnings = findings.iter().filter(|one| one.status == Status::Warning).count();
    if args.json {
        say!("{}", json!({ "schema": 1, "problems": problems, "warnings": warnings, "findings": findings }));
    } else {
        say!("{}", table(&findings).trim_end());
    }
    match problems {
        0 => Ok(()),
        some => Err(Error::failed(format!("{}; the table says what to do", counted(some, "problem")))),
    }
}

/// What else the gateway was to be started with.
fn options(args: &GatewayArgs, site: Site<'_>) -> Vec<Findings> {
    let default = || control::default_path(&format!("{}-{}", site.wan, site.radio));
    let mut all: Vec<Findings> =
        process::running(&args.control.clone().unwrap_or_else(default)).into_iter().collect();
    if let Some(path) = &args.config {
        let findings = Findings::of("configuration", &path.display().to_string());
        all.push(match super::configuration(args, Some(path)) {
            Ok(config) => findings.ok(policy::summary(&config)),
            Err(error) => findings.problem(error.to_string(), "write what the line asks for"),
        });
    }
    if let Some(address) = args.metrics {
        let findings = Findings::of("metrics", &address.to_string());
        all.push(match http::check(address) {
            Ok(()) => findings.ok("on a loopback address"),
            Err(error) => findings.problem(error.to_string(), "--metrics 127.0.0.1:9100"),
        });
    }
    all
}

fn examine(site: Site<'_>) -> Vec<Finding> {
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

fn table(findings: &[Finding]) -> String {
    let mut table = new_table(5, &["", "check", "of", "found", "what to do"]);
    // Sentences are broken, in a file too.
    if table.width().is_none() {
        table.set_width(WIDTH);
    }
    // A command that is to be copied is not broken within a word.
    if let Some(remedies) = table.column_mut(4) {
        remedies.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(REMEDY_WIDTH)));
    }
    for one in findings {
        let status = match one.status {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Problem => "PROBLEM",
        };
        table.add_row(vec![
            status,
            one.check,
            &one.subject,
            &one.finding,
            one.remedy.as_deref().unwrap_or_default(),
        ]);
    }
    format!("{table}\n")
}

/// The longest word of most remedies, `net.bridge.bridge-nf-call-ip6tables=0`, and blanks.
const REMEDY_WIDTH: u16 = 40;

/// Where there is no terminal. Our choice: what fits into a mail or an issue.
const WIDTH: u16 = 100;

#[cfg(test)]
mod tests;
