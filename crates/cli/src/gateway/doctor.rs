//! `paceline gateway doctor`: looks at the machine as a gateway would use it, and says what to do.

mod network;
mod process;
mod rules;

use comfy_table::ContentArrangement;
use serde::Serialize;
use serde_json::json;

use crate::args::DoctorArgs;
use crate::error::{Error, Result};
use crate::output::say;
use crate::result::new_table;

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

pub(super) fn command(args: &DoctorArgs) -> Result<()> {
    let findings = examine(args);
    let problems = findings.iter().filter(|one| one.status == Status::Problem).count();
    let warnings = findings.iter().filter(|one| one.status == Status::Warning).count();
    if args.json {
        say!("{}", json!({ "schema": 1, "problems": problems, "warnings": warnings, "findings": findings }));
    } else {
        say!("{}", table(&findings).trim_end());
    }
    match problems {
        0 => Ok(()),
        1 => Err(Error::failed("1 problem; the table says what to do")),
        many => Err(Error::failed(format!("{many} problems; the table says what to do"))),
    }
}

fn examine(args: &DoctorArgs) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(process::capabilities());
    all.extend(process::scheduling());
    all.extend(process::clock_source());
    all.extend(process::running(args));
    all.extend(network::ports(args));
    if args.tun {
        all.extend(network::routing(args));
    }
    all.extend(rules::rules(args));
    all.into_iter().flat_map(|findings| findings.found).collect()
}

fn table(findings: &[Finding]) -> String {
    let mut table = new_table(5, &["", "check", "of", "found", "what to do"]);
    // Sentences are broken where a terminal is narrow; elsewhere each is one line.
    table.set_content_arrangement(ContentArrangement::Dynamic);
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

#[cfg(test)]
mod tests;
