//! Results in the format of `paceline run --json` (schema 1), as far as the bounds need them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use paceline_judge::{Measurements, Sample, distinct};

/// The version of the schema that this module reads.
const SCHEMA: u64 = 1;

/// One file of results: the output of `--json`, or one of the runs in its folder.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum File {
    Whole { schema: u64, runs: Vec<Run> },
    Single(Box<Run>),
}

/// One run of one variant.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Run {
    pub(crate) variant: String,
    pub(crate) seed: u64,
    #[serde(default)]
    pub(crate) flows: Vec<Value>,
    /// Other values of the run: links, gateway, path_delay_ms.
    #[serde(flatten)]
    pub(crate) rest: BTreeMap<String, Value>,
}

/// All runs of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) runs: Vec<Run>,
}

impl Results {
    /// Loads every `*.json` of a directory. Of several runs with the same variant and seed, only the first counts.
    pub(crate) fn load(directory: &Path) -> Result<Self, String> {
        let mut results = Results::default();
        let Ok(entries) = std::fs::read_dir(directory) else {
            return Ok(results);
        };
        let mut paths: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        {
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            results.add(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(results)
    }

    pub(crate) fn add(&mut self, text: &str) -> Result<(), String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let runs = match file {
            File::Whole { schema, .. } if schema != SCHEMA => {
                return Err(format!("schema {schema} is not {SCHEMA}"));
            }
            File::Whole { runs, .. } => runs,
            File::Single(run) => vec![*run],
        };
        for run in runs {
            if !self.runs.iter().any(|known| known.variant == run.variant && known.seed == run.seed) {
                self.runs.push(run);
            }
        }
        Ok(())
    }

    /// Returns the names of a variant's flows, in the order of their first appearance.
    pub(crate) fn flow_names(&self, variant: &str) -> Vec<&str> {
        let flows = self.runs.iter().filter(|run| run.variant == variant).flat_map(|run| &run.flows);
        distinct(flows.filter_map(|flow| flow.get("name").and_then(Value::as_str)))
    }
}

impl Measurements for Results {
    fn variants(&self) -> Vec<&str> {
        distinct(self.runs.iter().map(|run| run.variant.as_str()))
    }

    /// Returns numbers by their dotted names ("path_delay_ms.p95").
    fn sample(&self, variant: &str, flow: Option<&str>, name: &str) -> Sample {
        let runs = || self.runs.iter().filter(|run| run.variant == variant);
        let of_runs: Sample = runs().filter_map(|run| run.number(name)).collect();
        if !of_runs.is_empty() {
            return of_runs;
        }
        runs().flat_map(|run| run.flow_numbers(flow, name)).collect()
    }
}

impl Run {
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let value = self.rest.get(first)?;
        if rest.is_empty() { as_number(value) } else { number_in(value, rest) }
    }

    pub(crate) fn flow_numbers<'a>(
        &'a self,
        flow: Option<&'a str>,
        name: &'a str,
    ) -> impl Iterator<Item = f64> + 'a {
        self.flows
            .iter()
            .filter(move |value| {
                flow.is_none_or(|wanted| value.get("name").and_then(Value::as_str) == Some(wanted))
            })
            .filter_map(move |value| number_in(value, name))
    }
}

fn number_in(value: &Value, name: &str) -> Option<f64> {
    as_number(value.pointer(&format!("/{}", name.replace('.', "/")))?)
}

/// `true` counts as 1, so that a bound on `sha256_ok` is possible.
fn as_number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|truth| f64::from(u8::from(truth))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"schema": 1, "runs": [
        {"variant": "accelerated,loss=1%", "seed": 3, "flows": [{"name": "a", "goodput_mbps": 5.5, "sha256_ok": true}],
         "links": {"radio_down": {"utilization": 0.9}}, "gateway": {}, "path_delay_ms": {"p95": 12.5}},
        {"variant": "unaccelerated,loss=1%", "seed": 3, "flows": [{"name": "a", "goodput_mbps": 1.5}]}]}"#;

    #[test]
    fn numbers_are_found_by_their_names() {
        let mut results = Results::default();
        results.add(TEXT).unwrap();
        results.add(TEXT).unwrap();
        assert_eq!(results.runs.len(), 2);
        let of = |flow, name| results.sample("accelerated,loss=1%", flow, name);
        assert_eq!(of(Some("a"), "goodput_mbps").mean(), 5.5);
        assert_eq!(of(None, "sha256_ok").mean(), 1.0);
        assert_eq!(of(Some("b"), "goodput_mbps").len(), 0);
        assert_eq!(of(None, "links.radio_down.utilization").mean(), 0.9);
        assert_eq!(of(None, "path_delay_ms.p95").mean(), 12.5);
        assert_eq!(results.flow_names("accelerated,loss=1%"), ["a"]);
    }

    #[test]
    fn another_schema_is_refused() {
        assert!(Results::default().add(r#"{"schema": 2, "runs": []}"#).is_err());
    }
}
