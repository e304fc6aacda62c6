//! `paceline gateway doctor`: prints the findings as a table or as JSON.

use comfy_table::{ColumnConstraint, Width};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::error::{Error, Result};
use crate::output::say;
use crate::table::new_table;
use crate::units::counted;
use paceline_service::doctor::{Finding, Status, examine};

pub(crate) fn command(args: &DoctorArgs) -> Result<()> {
    let findings = examine(&args.gateway.options())?;
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

fn table(findings: &[Finding]) -> String {
    let mut table = new_table(5, &["", "check", "of", "found", "what to do"]);
    // Wrap sentences, in a file too.
    if table.width().is_none() {
        table.set_width(WIDTH);
    }
    // Users copy commands from this column, so it must not break a word.
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

/// Fits the longest word of most remedies, `net.bridge.bridge-nf-call-ip6tables=0`, and blanks.
const REMEDY_WIDTH: u16 = 40;

/// Width without a terminal. Our choice: it fits into a mail or an issue.
const WIDTH: u16 = 100;
