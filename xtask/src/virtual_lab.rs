//! published/virtual-lab.csv: the results of every run in the virtual-time kernel, for comparison with the simulator.

use std::fmt::Write as _;
use std::path::Path;

use paceline_judge::Measurements as _;

use crate::model::{Results, Run};

const VIRTUAL: &str = "results/virtual";
const TABLE: &str = "published/virtual-lab.csv";

/// Writes the rows of all runs in results/virtual.
pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    let mut scenarios: Vec<String> = std::fs::read_dir(root.join(VIRTUAL))
        .map_err(|error| format!("{VIRTUAL}: {error}; `make prove` makes it"))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    scenarios.sort();
    let mut text = String::from("scenario,variant,seed,flow,goodput_mbps,path_delay_p95_ms\n");
    for scenario in scenarios {
        let mut runs = Results::load(&root.join(VIRTUAL).join(&scenario))?.runs;
        runs.sort_by(|a, b| (&a.variant, a.seed).cmp(&(&b.variant, b.seed)));
        runs.iter().for_each(|run| rows(&mut text, &scenario, run));
    }
    crate::write(root, TABLE, &text)?;
    Ok(Vec::new())
}

/// Writes one row for each name of a flow, with medians over the transfers of that name.
fn rows(text: &mut String, scenario: &str, run: &Run) {
    let mut results = Results::default();
    results.runs.push(run.clone());
    let delay = run.number("path_delay_ms.p95").map(short).unwrap_or_default();
    for flow in results.flow_names(&run.variant) {
        let goodput = results.sample(&run.variant, Some(flow), "goodput_mbps").median();
        let _ =
            writeln!(text, "{scenario},\"{}\",{},{flow},{},{delay}", run.variant, run.seed, short(goodput));
    }
}

fn short(value: f64) -> String {
    ((value * 1e4).round() / 1e4).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_row_for_each_flow() {
        let mut results = Results::default();
        let text = r#"{"schema": 1, "runs": [{"variant": "a,b", "seed": 2, "path_delay_ms": {"p95": 21.5}, "flows": [
            {"name": "x", "goodput_mbps": 1.5}, {"name": "x", "goodput_mbps": 2.5}, {"name": "y", "goodput_mbps": 0.12345678}]}]}"#;
        results.add(text).unwrap();
        let mut text = String::new();
        rows(&mut text, "s", &results.runs[0]);
        assert_eq!(text, "s,\"a,b\",2,x,2,21.5\ns,\"a,b\",2,y,0.1235,21.5\n");
    }
}
