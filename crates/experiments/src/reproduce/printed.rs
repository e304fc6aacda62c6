//! What is built as printed beside what we recommend: one table for each pair, and what each of our changes does alone.

mod causes;
mod pairs;
mod tables;

use paceline_judge::Sample;
use paceline_sim::{Scenario, run_watched};
use serde_json::Value;

use super::pool::{Job, Records};
use super::report::{Bound, Report, Section, number};
use crate::error::Result;
use crate::interrupt;
use crate::kept::Values;
use crate::options::PrintedOptions;

/// Runs what is asked for, prints it beside what was published, and judges the bounds.
pub fn command(options: &PrintedOptions) -> Result<()> {
    interrupt::watch()?;
    let runs = u64::from(options.kept.how.runs);
    let all = Groups::new(options);
    let jobs = all.cases().flat_map(|case| case.jobs(runs)).collect();
    let records = super::run_all("printed", &options.kept, jobs)?;
    let mut report: Report<()> = Report { cells: Vec::new(), bounds: Vec::new(), sections: Vec::new() };
    for (section, bounds) in all.report(&Measured { records: &records, runs }) {
        report.sections.push(section);
        report.bounds.extend(bounds);
    }
    super::conclude("printed", &report, options.only.is_empty(), &options.kept.how, |_| {})
}

/// Everything that is compared.
struct Groups {
    tables: Vec<tables::Row>,
    pairs: Vec<pairs::Pair>,
    causes: Vec<causes::Row>,
}

impl Groups {
    fn new(options: &PrintedOptions) -> Groups {
        let wanted =
            |name: &str| options.only.is_empty() || options.only.iter().any(|part| name.contains(part));
        let mut all = Groups { tables: tables::all(), pairs: pairs::all(), causes: causes::all() };
        all.tables.retain(|row| wanted(&row.name));
        all.pairs.retain(|pair| wanted(&pair.name));
        all.causes.retain(|row| wanted(&row.name));
        all
    }

    fn cases(&self) -> impl Iterator<Item = &Case> {
        let tables = self.tables.iter().flat_map(|row| [&row.printed, &row.improved]);
        let pairs = self.pairs.iter().flat_map(|pair| [&pair.printed, &pair.improved]);
        tables.chain(pairs).chain(self.causes.iter().flat_map(|row| row.cases.iter()))
    }

    fn report(&self, measured: &Measured<'_>) -> Vec<(Section, Vec<Bound>)> {
        let mut parts = Vec::new();
        if !self.tables.is_empty() {
            parts.extend(tables::report(&self.tables, measured));
        }
        if !self.pairs.is_empty() {
            parts.push(pairs::report(&self.pairs, measured));
        }
        if !self.causes.is_empty() {
            parts.push((causes::report(&self.causes, measured), Vec::new()));
        }
        parts
    }
}

/// A scenario under a name; the same name is the same scenario.
struct Case {
    name: String,
    /// What its link carries, Mbit/s: what a run costs grows with it.
    mbps: f64,
    /// Nothing is drawn in it.
    is_fixed: bool,
    build: Box<dyn Fn(u64) -> Scenario + Send + Sync>,
}

impl Case {
    fn new(name: String, mbps: f64, build: impl Fn(u64) -> Scenario + Send + Sync + 'static) -> Case {
        Case { name, mbps, is_fixed: false, build: Box::new(build) }
    }

    fn seeds(&self, runs: u64) -> u64 {
        if self.is_fixed { 1 } else { runs }
    }

    fn jobs(&self, runs: u64) -> impl Iterator<Item = Job<'_>> {
        (1..=self.seeds(runs)).map(move |seed| Job {
            name: self.name.clone(),
            seed,
            cost: self.mbps,
            work: Box::new(move |watch| {
                let result = run_watched(&(self.build)(seed), Vec::new(), watch)?;
                let queue = result.links.get("radio_down").and_then(|link| link.queue_delay_ms.p95);
                let timeouts: u64 = result.flows.iter().map(|flow| flow.timeouts).sum();
                Ok(Values::from([
                    (GOODPUT.into(), result.flows[0].goodput_mbps),
                    (QUEUE.into(), queue.unwrap_or(f64::NAN)),
                    (TIMEOUTS.into(), timeouts as f64),
                ]))
            }),
        })
    }
}

/// What was measured.
struct Measured<'a> {
    records: &'a Records,
    runs: u64,
}

impl Measured<'_> {
    fn sample(&self, case: &Case, value: &str) -> Sample {
        self.records.values(&case.name, case.seeds(self.runs), value).into_iter().collect()
    }

    /// Mean and half of the interval.
    fn with_interval(&self, case: &Case, value: &str, digits: i32) -> [Value; 2] {
        let estimate = self.sample(case, value).estimate();
        [number(estimate.mean, digits), number(estimate.half_width, digits)]
    }

    /// Both forms of a pair: throughput with what they differ by, queue and timeouts, each with half of its interval.
    fn pair(&self, printed: &Case, improved: &Case) -> Vec<Value> {
        let mut row = Vec::new();
        row.extend(self.with_interval(printed, GOODPUT, 2));
        row.extend(self.with_interval(improved, GOODPUT, 2));
        let difference = self.sample(improved, GOODPUT).minus(&self.sample(printed, GOODPUT));
        row.extend([number(difference.mean, 2), number(difference.half_width, 2)]);
        for (value, digits) in [(QUEUE, 1), (TIMEOUTS, 1)] {
            row.extend(self.with_interval(printed, value, digits));
            row.extend(self.with_interval(improved, value, digits));
        }
        row
    }
}

/// Of [`Measured::pair`].
const PAIR_COLUMNS: [&str; 14] = [
    "Mbit/s as printed",
    "±",
    "ours",
    "±",
    "ours more by",
    "±",
    "queue, p95 ms, as printed",
    "±",
    "ours",
    "±",
    "RTO a run as printed",
    "±",
    "ours",
    "±",
];
const GOODPUT: &str = "goodput_mbps";
const QUEUE: &str = "queue_p95_ms";
const TIMEOUTS: &str = "timeouts";

/// Every run, for samples of the page.
#[cfg(test)]
pub(super) fn sampled(options: &PrintedOptions) -> Vec<Job<'static>> {
    Box::leak(Box::new(Groups::new(options))).cases().flat_map(|case| case.jobs(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same name is the same scenario, so that no run stands for another one.
    #[test]
    fn every_case_of_a_name_is_the_same() {
        let how =
            crate::options::How { runs: 1, jobs: None, out: "unused".into(), json: false, check: false };
        let kept = crate::options::KeptHow { fresh: false, how };
        let all = Groups::new(&PrintedOptions { only: Vec::new(), kept });
        let mut seen = std::collections::BTreeMap::new();
        for case in all.cases() {
            let scenario = format!("{:?}", (case.build)(1));
            let earlier = seen.entry(case.name.clone()).or_insert_with(|| scenario.clone());
            assert_eq!(*earlier, scenario, "{}", case.name);
        }
        assert_eq!((all.tables.len(), all.causes.len()), (128, 14));
        assert!(all.pairs.iter().all(
            |pair| format!("{:?}", (pair.printed.build)(1)) != format!("{:?}", (pair.improved.build)(1))
        ));
    }
}
