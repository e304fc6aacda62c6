//! What tests of whole runs share.

use paceline_sim::result::RunResult;
use paceline_sim::run;
use paceline_sim::scenario::Scenario;
use paceline_wire::Duration;

/// Runs a scenario to its end, with every byte checked, and no finding.
pub(crate) fn checked(scenario: Scenario) -> RunResult {
    let result = run(&Scenario { checked: true, patience: Duration::ZERO, ..scenario }).unwrap();
    assert_eq!(result.findings, Vec::<String>::new());
    result
}
