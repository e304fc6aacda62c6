//! Helpers for tests of whole runs.

use paceline_sim::result::RunResult;
use paceline_sim::run;
use paceline_sim::scenario::Scenario;
use paceline_wire::Duration;

/// Runs a scenario to its end with a checker, which must find nothing.
pub(crate) fn checked(scenario: Scenario) -> RunResult {
    let result = run(&Scenario { checked: true, patience: Duration::ZERO, ..scenario }).unwrap();
    assert_eq!(result.findings, Vec::<String>::new());
    result
}
