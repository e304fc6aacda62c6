//! The doctor's checks and findings.

use serde::Serialize;

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How well a gateway would run.
    pub status: Status,
    /// The name of the check.
    pub check: &'static str,
    /// The interface, or `machine`.
    pub subject: String,
    /// The finding as a sentence.
    pub finding: String,
    /// The remedy, if one is needed.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How well a gateway would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Everything is right.
    Ok,
    /// The gateway works, but less well, or not in all cases.
    Warning,
    /// The gateway will not start, or packets will be lost.
    Problem,
}

/// Findings of one check.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) check: &'static str,
    pub(super) subject: String,
    pub(super) found: Vec<Finding>,
}

impl Findings {
    pub(super) fn of(check: &'static str, subject: &str) -> Findings {
        Findings { check, subject: subject.to_owned(), found: Vec::new() }
    }

    pub(super) fn add(mut self, status: Status, finding: impl Into<String>, remedy: Option<String>) -> Self {
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

/// The place for a gateway.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) wan: &'a str,
    pub(super) radio: &'a str,
    /// The TUN device, for a gateway behind one. `None` between two ports of a bridge.
    pub(super) tun: Option<&'a str>,
}
