//! Means over runs with their 95 % intervals, and the runs as columns.

use paceline_judge::{Estimate, Sample};
use serde_json::{Map, Value, json};

use super::columns::{Cells, Columns};
use crate::result::{Run, flow_rows, values};
use crate::table::new_table;

/// A row for each variant and flow name.
#[derive(Clone, Debug)]
pub(super) struct Means(Vec<Row>);

#[derive(Clone, Debug)]
struct Row {
    variant: String,
    flow: String,
    runs: usize,
    /// In the order of [`METRICS`]; `None` without a measurement.
    estimates: Vec<Option<Estimate>>,
}

/// Names of the metrics in results and in columns.
const METRICS: [(&str, &str); 11] = [
    ("goodput_mbps", "goodput_mbps"),
    ("completion_s", "completion_s"),
    ("rtt_ms.p50", "rtt_p50_ms"),
    ("rtt_ms.p95", "rtt_p95_ms"),
    ("path_delay_ms.p50", "path_delay_p50_ms"),
    ("path_delay_ms.p95", "path_delay_p95_ms"),
    ("links.radio_down.utilization", "link_utilization"),
    ("retransmitted_segments", "retransmitted_segments"),
    ("timeouts", "timeouts"),
    ("tail_loss_probes", "tail_loss_probes"),
    ("completed", "completed"),
];

/// Returns the values of the command line's keys in a variant.
type Chosen<'a> = &'a dyn Fn(&str) -> Vec<String>;

impl Means {
    pub(super) fn of(runs: &[Run]) -> Means {
        let row = |(variant, flow): (String, String)| {
            let of_variant: Vec<&Run> = runs.iter().filter(|run| run.variant == variant).collect();
            let estimate = |metric: &str| {
                let sample: Sample = of_variant.iter().filter_map(|run| in_run(run, metric, &flow)).collect();
                (!sample.is_empty()).then(|| sample.estimate())
            };
            let estimates = METRICS.iter().map(|(metric, _)| estimate(metric)).collect();
            Row { runs: of_variant.len(), variant, flow, estimates }
        };
        Means(flow_rows(runs).into_iter().map(row).collect())
    }

    pub(super) fn columns(&self, keys: &[&str], chosen: Chosen<'_>) -> Columns {
        let mut columns = Columns::default();
        let text = |of: &dyn Fn(&Row) -> String| Cells::Text(self.0.iter().map(of).collect());
        columns.add("variant", text(&|row| row.variant.clone()));
        for (number, key) in keys.iter().enumerate() {
            columns.add(*key, text(&|row| chosen(&row.variant).swap_remove(number)));
        }
        columns.add("flow", text(&|row| row.flow.clone()));
        columns.add("runs", Cells::Whole(self.0.iter().map(|row| row.runs as i64).collect()));
        for (number, (_, name)) in METRICS.iter().enumerate() {
            let of = |part: &dyn Fn(Estimate) -> f64| {
                let value = |row: &Row| row.estimates[number].map(part).filter(|value| value.is_finite());
                Cells::Number(self.0.iter().map(value).collect())
            };
            columns.add(*name, of(&|estimate| estimate.mean));
            columns.add(format!("{name}_ci95"), of(&|estimate| estimate.half_width));
        }
        columns
    }

    pub(super) fn json(&self, keys: &[&str], chosen: Chosen<'_>) -> Vec<Value> {
        let cell = |row: &Row| {
            let mut cell = Map::new();
            cell.insert("variant".into(), json!(row.variant));
            let chosen = keys.iter().zip(chosen(&row.variant));
            let chosen: Map<String, Value> =
                chosen.map(|(key, value)| (key.to_string(), json!(value))).collect();
            cell.insert("keys".into(), Value::Object(chosen));
            cell.insert("flow".into(), json!(row.flow));
            cell.insert("runs".into(), json!(row.runs));
            for ((_, name), estimate) in METRICS.iter().zip(&row.estimates) {
                let finite = |value: f64| value.is_finite().then_some(value);
                let value = estimate.map(|e| json!({ "mean": finite(e.mean), "ci95": finite(e.half_width) }));
                cell.insert(name.to_string(), value.unwrap_or(Value::Null));
            }
            Value::Object(cell)
        };
        self.0.iter().map(cell).collect()
    }

    pub(super) fn table(&self) -> String {
        let header = [
            "variant", "flow", "runs", "goodput, Mbit/s", "completion, s", "path delay p95, ms",
            "link used, %", "resent", "RTO",
        ];
        let mut table = new_table(2, &header);
        for row in &self.0 {
            let shown = |name: &str, factor: f64, digits: usize| {
                let place = METRICS.iter().position(|(_, known)| *known == name);
                place.and_then(|place| row.estimates[place]).map_or("-".into(), |e| show(e, factor, digits))
            };
            table.add_row([
                row.variant.clone(),
                row.flow.clone(),
                row.runs.to_string(),
                shown("goodput_mbps", 1.0, 2),
                shown("completion_s", 1.0, 2),
                shown("path_delay_p95_ms", 1.0, 1),
                shown("link_utilization", 100.0, 1),
                shown("retransmitted_segments", 1.0, 0),
                shown("timeouts", 1.0, 1),
            ]);
        }
        table.to_string()
    }
}

/// A row for each run and transfer.
pub(super) fn run_columns(runs: &[Run], keys: &[&str], chosen: Chosen<'_>) -> Columns {
    let rows: Vec<(&Run, usize)> =
        runs.iter().flat_map(|run| (0..run.flows.len()).map(move |flow| (run, flow))).collect();
    let text = |of: &dyn Fn(&Run, usize) -> String| {
        Cells::Text(rows.iter().map(|(run, flow)| of(run, *flow)).collect())
    };
    let whole = |of: &dyn Fn(&Run, usize) -> i64| {
        Cells::Whole(rows.iter().map(|(run, flow)| of(run, *flow)).collect())
    };
    let number = |of: &dyn Fn(&Run, usize) -> Option<f64>| {
        Cells::Number(rows.iter().map(|(run, flow)| of(run, *flow)).collect())
    };
    let mut columns = Columns::default();
    columns.add("variant", text(&|run, _| run.variant.clone()));
    for (place, key) in keys.iter().enumerate() {
        columns.add(*key, text(&|run, _| chosen(&run.variant).swap_remove(place)));
    }
    columns.add("seed", whole(&|run, _| run.seed as i64));
    columns.add("flow", text(&|run, flow| run.flows[flow].name.clone()));
    columns.add("index", whole(&|run, flow| run.flows[flow].index.into()));
    columns.add("bytes", whole(&|run, flow| run.flows[flow].bytes as i64));
    columns.add("goodput_mbps", number(&|run, flow| Some(run.flows[flow].goodput_mbps)));
    columns.add("completion_s", number(&|run, flow| run.flows[flow].completion_s));
    columns.add("completed", whole(&|run, flow| run.flows[flow].completed.into()));
    columns.add("retransmitted_segments", whole(&|run, flow| run.flows[flow].retransmitted_segments as i64));
    columns.add("timeouts", whole(&|run, flow| run.flows[flow].timeouts as i64));
    columns.add("tail_loss_probes", whole(&|run, flow| run.flows[flow].tail_loss_probes as i64));
    columns.add("rtt_p50_ms", number(&|run, flow| run.flows[flow].rtt_ms.p50));
    columns.add("rtt_p95_ms", number(&|run, flow| run.flows[flow].rtt_ms.p95));
    columns.add("path_delay_p50_ms", number(&|run, _| run.path_delay_ms.p50));
    columns.add("path_delay_p95_ms", number(&|run, _| run.path_delay_ms.p95));
    let used = |run: &Run, _: usize| run.links.get("radio_down").and_then(|link| link.utilization);
    columns.add("link_utilization", number(&used));
    columns
}

/// Returns the mean of one run over the transfers of that name, so that every run counts once.
fn in_run(run: &Run, metric: &str, flow: &str) -> Option<f64> {
    let found = values(run, metric, Some(flow));
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

fn show(estimate: Estimate, factor: f64, digits: usize) -> String {
    let mean = estimate.mean * factor;
    if estimate.half_width.is_finite() {
        format!("{mean:.digits$} ± {:.digits$}", estimate.half_width * factor)
    } else {
        format!("{mean:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::FlowResult;

    fn run(seed: u64, mbps: &[f64]) -> Run {
        let flow = |goodput_mbps: &f64| FlowResult {
            name: "download".into(),
            goodput_mbps: *goodput_mbps,
            ..FlowResult::default()
        };
        Run { variant: "rtt=1ms".into(), seed, flows: mbps.iter().map(flow).collect(), ..Run::default() }
    }

    #[test]
    fn every_run_counts_once() {
        let runs = [run(1, &[8.0, 10.0]), run(2, &[10.0]), run(3, &[11.0])];
        let means = Means::of(&runs);
        let goodput = means.0[0].estimates[0].unwrap();
        assert!((goodput.mean - 10.0).abs() < 1e-12, "{goodput:?}");
        // t(2) = 4.303, standard error 0.577.
        assert!((goodput.half_width - 2.484).abs() < 1e-3, "{goodput:?}");
        assert!(means.table().contains("10.00 ± 2.48"), "{}", means.table());
        let chosen = |_: &str| vec!["1ms".to_string()];
        let csv = means.columns(&["radio.rtt"], &chosen).to_csv().unwrap();
        assert!(csv.starts_with("variant,radio.rtt,flow,runs,goodput_mbps,goodput_mbps_ci95,"), "{csv}");
        let csv = run_columns(&runs, &["radio.rtt"], &chosen).to_csv().unwrap();
        assert_eq!(csv.lines().count(), 5);
    }

    #[test]
    fn one_run_has_no_interval() {
        let means = Means::of(&[run(1, &[8.0])]);
        assert_eq!(means.json(&[], &|_| Vec::new())[0]["goodput_mbps"]["ci95"], Value::Null);
        assert!(!means.table().contains('±'));
    }
}
