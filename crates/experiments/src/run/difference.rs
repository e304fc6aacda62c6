//! Compares the simulator with the lab, number by number.

use serde::Serialize;

use crate::result::{Run, flow_rows, statistic, values};
use crate::scenario::Statistic;
use crate::table::new_table;

/// One number of one variant's flow, in both places.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Difference {
    pub(super) variant: String,
    pub(super) flow: String,
    pub(super) metric: &'static str,
    pub(super) sim: f64,
    pub(super) lab: f64,
    /// Simulator minus lab.
    pub(super) difference: f64,
    /// The difference relative to the lab's value; null if that is 0.
    pub(super) relative: Option<f64>,
    /// True if both agree: goodput within 5 %, p95 of the path's delay within 10 % or 2 ms. Null for other numbers.
    pub(super) agrees: Option<bool>,
}

/// Compares medians over runs, for every variant and flow that both places have.
pub(super) fn between(sim: &[Run], lab: &[Run]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (variant, flow) in flow_rows(sim) {
        for metric in METRICS {
            let median = |runs: &[Run]| {
                let of_variant = runs.iter().filter(|run| run.variant == variant);
                let found: Vec<f64> = of_variant.flat_map(|run| values(run, metric, Some(&flow))).collect();
                statistic(Statistic::Median, &found)
            };
            if let (Some(sim), Some(lab)) = (median(sim), median(lab)) {
                differences.push(Difference::new(&variant, &flow, metric, sim, lab));
            }
        }
    }
    differences
}

impl Difference {
    fn new(variant: &str, flow: &str, metric: &'static str, sim: f64, lab: f64) -> Self {
        let difference = sim - lab;
        let agrees = agrees(metric, sim, lab);
        Difference {
            variant: variant.into(),
            flow: flow.into(),
            metric,
            sim,
            lab,
            difference,
            relative: (lab != 0.0).then(|| difference / lab),
            agrees,
        }
    }
}

/// Returns whether simulator and lab agree: goodput within 5 %, p95 of the path's delay within 10 % or 2 ms. Returns
/// `None` for other numbers.
pub(crate) fn agrees(metric: &str, sim: f64, lab: f64) -> Option<bool> {
    let difference = (sim - lab).abs();
    match metric {
        "goodput_mbps" => Some(difference <= GOODPUT_SHARE * lab),
        "path_delay_ms.p95" => Some(difference <= (DELAY_SHARE * lab).max(DELAY_MS)),
        _ => None,
    }
}

/// A row for each difference.
pub(super) fn table(differences: &[Difference]) -> String {
    let mut table = new_table(3, &["variant", "flow", "metric", "sim", "lab", "difference", "", "agrees"]);
    for row in differences {
        table.add_row([
            row.variant.clone(),
            row.flow.clone(),
            row.metric.to_string(),
            format!("{:.3}", row.sim),
            format!("{:.3}", row.lab),
            format!("{:+.3}", row.difference),
            row.relative.map_or("-".into(), |share| format!("{:+.1} %", share * 100.0)),
            row.agrees.map_or("", |agrees| if agrees { "yes" } else { "NO" }).to_string(),
        ]);
    }
    table.to_string()
}

const METRICS: [&str; 8] = [
    "goodput_mbps", "completion_s", "path_delay_ms.p95", "rtt_ms.p50", "links.radio_down.utilization",
    "retransmitted_segments", "timeouts", "longest_gap_s",
];
const GOODPUT_SHARE: f64 = 0.05;
const DELAY_SHARE: f64 = 0.1;
const DELAY_MS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::FlowResult;

    fn run(mbps: f64) -> Run {
        let flow = FlowResult { name: "download".into(), goodput_mbps: mbps, ..FlowResult::default() };
        Run { variant: "base".into(), flows: vec![flow], ..Run::default() }
    }

    #[test]
    fn medians_are_compared() {
        let differences = between(&[run(9.6), run(9.8), run(1.0)], &[run(10.0)]);
        let goodput = &differences[0];
        assert_eq!((goodput.metric, goodput.sim, goodput.lab), ("goodput_mbps", 9.6, 10.0));
        assert_eq!(goodput.agrees, Some(true));
        assert!((goodput.relative.unwrap() + 0.04).abs() < 1e-9);
        assert_eq!(between(&[run(9.4)], &[run(10.0)])[0].agrees, Some(false));
        assert!(between(&[run(1.0)], &[]).is_empty());
    }
}
