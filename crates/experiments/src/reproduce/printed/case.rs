//! A case in two forms, and its results.

use paceline_judge::Sample;
use paceline_sim::{Scenario, run_watched};
use serde_json::Value;

use crate::reproduce::pool::{Job, Records};
use crate::reproduce::report::number;
use crate::run_cache::Values;

/// A named scenario. The same name means the same scenario.
pub(super) struct Case {
    pub(super) name: String,
    /// Rate of its link in Mbit/s. The cost of a run grows with it.
    pub(super) mbps: f64,
    /// True if the scenario makes no random choices.
    pub(super) is_fixed: bool,
    pub(super) build: Box<dyn Fn(u64) -> Scenario + Send + Sync>,
}

/// The results.
pub(super) struct Measured<'a> {
    pub(super) records: &'a Records,
    pub(super) runs: u64,
}

impl Measured<'_> {
    pub(super) fn sample(&self, case: &Case, value: &str) -> Sample {
        self.records.values(&case.name, case.seeds(self.runs), value).into_iter().collect()
    }

    /// Returns the mean and half of the interval.
    pub(super) fn with_interval(&self, case: &Case, value: &str, digits: i32) -> [Value; 2] {
        let estimate = self.sample(case, value).estimate();
        [number(estimate.mean, digits), number(estimate.half_width, digits)]
    }

    /// Returns both forms of a pair: throughput and its difference, queue and timeouts. Each has half of its interval.
    pub(super) fn pair(&self, printed: &Case, improved: &Case) -> Vec<Value> {
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

/// The columns of [`Measured::pair`].
pub(super) const PAIR_COLUMNS: [&str; 14] = [
    "Mbit/s as printed", "±", "ours", "±", "ours more by", "±", "queue, p95 ms, as printed", "±", "ours",
    "±", "RTO a run as printed", "±", "ours", "±",
];

pub(super) const GOODPUT: &str = "goodput_mbps";

pub(super) const QUEUE: &str = "queue_p95_ms";

pub(super) const TIMEOUTS: &str = "timeouts";

impl Case {
    pub(super) fn new(
        name: String,
        mbps: f64,
        build: impl Fn(u64) -> Scenario + Send + Sync + 'static,
    ) -> Case {
        Case { name, mbps, is_fixed: false, build: Box::new(build) }
    }

    pub(super) fn seeds(&self, runs: u64) -> u64 {
        if self.is_fixed { 1 } else { runs }
    }

    pub(super) fn jobs(&self, runs: u64) -> impl Iterator<Item = Job<'_>> {
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
