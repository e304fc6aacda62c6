//! Named experiments and their results.

use std::collections::BTreeSet;
use std::iter;

use paceline_sim::reproduce::drwa::{Experiment, Network, Outcome, Window};
use serde_json::Value;

use crate::reproduce::pool::{Job, Records};
use crate::reproduce::report::{Section, number};
use crate::run_cache::Values;

/// A named experiment. The same name means the same experiment.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) experiment: Experiment,
}

/// The results, by name.
pub(super) struct Measured<'a> {
    records: &'a Records,
    pub(super) runs: u64,
}

impl Case {
    pub(super) fn new(name: impl Into<String>, experiment: Experiment) -> Case {
        Case { name: name.into(), experiment }
    }
}

/// A phone without DRWA near the server.
pub(super) fn near_clamped(network: Network) -> Case {
    Case::new(
        format!("{}, near, tcp_rmem_max {}", network.name(), network.rmem_max()),
        Experiment::near(network, Window::clamped(network.rmem_max())),
    )
}

/// DRWA near the server.
pub(super) fn near_drwa(network: Network) -> Case {
    Case::new(format!("{}, near, DRWA", network.name()), Experiment::near(network, Window::drwa()))
}

/// All runs of `cases`. An experiment without random choices runs once.
pub(super) fn jobs(cases: Vec<Case>, runs: u64) -> Vec<Job<'static>> {
    let mut seen = BTreeSet::new();
    let mut jobs = Vec::new();
    for Case { name, experiment } in cases {
        if !seen.insert(name.clone()) {
            continue;
        }
        let seeds = if experiment.is_random() { runs } else { 1 };
        for seed in 1..=seeds {
            let experiment = experiment.clone();
            jobs.push(Job {
                name: name.clone(),
                seed,
                cost: cost(&experiment),
                work: Box::new(move |watch| experiment.run(seed, watch).map(|outcome| values(&outcome))),
            });
        }
    }
    jobs
}

/// Our choice: the cost of a run grows with the data that its link carries.
fn cost(experiment: &Experiment) -> f64 {
    let bytes = experiment.bytes.map_or(0.0, |bytes| bytes as f64 * 8.0 / 1e6);
    let mbit = bytes.max(experiment.mbps() * experiment.duration.as_secs_f64());
    if mbit.is_finite() { mbit / 4_000.0 } else { 1.0 }
}

fn values(outcome: &Outcome) -> Values {
    let Outcome {
        goodput_mbps,
        rtt_ms,
        rtt_p95_ms,
        receiver_rtt_ms,
        queue_mean_ms,
        queue_p95_ms,
        utilization,
        fetch_ms,
        fetch_rtt_ms,
        timeouts,
        recoveries,
    } = *outcome;
    let of = [
        (GOODPUT, goodput_mbps),
        (RTT, rtt_ms),
        (RTT_P95, rtt_p95_ms),
        (RECEIVER_RTT, receiver_rtt_ms),
        (QUEUE, queue_mean_ms),
        (QUEUE_P95, queue_p95_ms),
        (UTILIZATION, utilization),
        (FETCH, fetch_ms),
        (FETCH_RTT, fetch_rtt_ms),
        (TIMEOUTS, timeouts),
        (RECOVERIES, recoveries),
    ];
    of.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

pub(super) const GOODPUT: &str = "goodput_mbps";
pub(super) const RTT: &str = "rtt_ms";
pub(super) const RTT_P95: &str = "rtt_p95_ms";
pub(super) const RECEIVER_RTT: &str = "receiver_rtt_ms";
pub(super) const QUEUE: &str = "queue_mean_ms";
pub(super) const QUEUE_P95: &str = "queue_p95_ms";
pub(super) const UTILIZATION: &str = "utilization";
pub(super) const FETCH: &str = "fetch_ms";
pub(super) const FETCH_RTT: &str = "fetch_rtt_ms";
pub(super) const TIMEOUTS: &str = "timeouts";
pub(super) const RECOVERIES: &str = "recoveries";

impl<'a> Measured<'a> {
    pub(super) fn new(records: &'a Records, runs: u64) -> Self {
        Measured { records, runs }
    }

    /// The mean over runs; NaN without runs.
    pub(super) fn mean(&self, case: &Case, value: &str) -> f64 {
        self.mean_of(&case.name, value)
    }

    /// The same, with the name of the case.
    pub(super) fn mean_of(&self, name: &str, value: &str) -> f64 {
        self.records.mean(name, self.runs, value)
    }

    /// Returns by how many percent `case` exceeds `other`.
    pub(super) fn gain(&self, case: &Case, other: &Case, value: &str) -> f64 {
        (self.mean(case, value) / self.mean(other, value) - 1.0) * 100.0
    }

    /// A section with a row for each download.
    pub(super) fn section(&self, name: &'static str, cases: &[Case]) -> Section {
        let row = |case: &Case| -> Vec<Value> {
            let values = COLUMNS.iter().map(|(_, value, digits)| number(self.mean(case, value), *digits));
            iter::once(case.name.clone().into()).chain(values).collect()
        };
        Section {
            columns: iter::once("download").chain(COLUMNS.map(|(head, ..)| head)).collect(),
            rows: cases.iter().map(row).collect(),
            ..Section::of("drwa", name)
        }
    }
}

/// The columns for each download after its name: a head, a value, and its digits.
const COLUMNS: [(&str, &str, i32); 7] = [
    ("Mbit/s", GOODPUT, 3),
    ("of the link", UTILIZATION, 3),
    ("RTT, ms", RTT, 1),
    ("its p95, ms", RTT_P95, 1),
    ("at the receiver, ms", RECEIVER_RTT, 1),
    ("RTO", TIMEOUTS, 0),
    ("fast recoveries", RECOVERIES, 0),
];
