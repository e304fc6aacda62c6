//! Many simulations on all cores. The longest run goes first, so that no core waits long for another at the end.

use std::collections::{HashMap, HashSet};

use indicatif::ProgressBar;
use paceline_sim::{RunObserver, ScenarioError};
use paceline_wire::Instant;

use crate::common::{BY_SHARE, progress_bar};
use crate::cpu_time::CpuTime;
use crate::error::{Error, Kind, Result};
use crate::interrupt;
use crate::pool::work_off;
use crate::run_cache::{Record, RunCache, Values};
use crate::units::counted;

/// One simulation.
pub(super) struct Job<'a> {
    /// Name of the simulation. Name and seed are the key of its record.
    pub(super) name: String,
    pub(super) seed: u64,
    /// Expected duration, in any unit.
    pub(super) cost: f64,
    pub(super) work: Work<'a>,
}

/// Runs the simulation. `RunObserver` ends it early after Ctrl-C.
pub(super) type Work<'a> =
    Box<dyn Fn(&mut dyn RunObserver) -> std::result::Result<Values, ScenarioError> + Send + Sync + 'a>;

/// All finished runs, by key.
#[derive(Debug, Default)]
pub(super) struct Records(HashMap<String, Record>);

/// Runs the jobs that have no stored result. A job that several tables show runs once.
pub(super) fn run_all(mut jobs: Vec<Job<'_>>, kept: &RunCache, threads: u32, quiet: bool) -> Result<Records> {
    let mut seen = HashSet::new();
    jobs.retain(|job| seen.insert(job.key()));
    let total = jobs.len();
    let wanted: Vec<String> = jobs.iter().map(Job::key).collect();
    let mut todo: Vec<Job<'_>> =
        jobs.into_iter().filter(|job| !kept.records.contains_key(&job.key())).collect();
    if todo.len() < total {
        let path = kept.path().display();
        eprintln!(
            "already finished: {} of {}, in {path}; --fresh repeats them",
            total - todo.len(),
            counted(total, "run")
        );
    }
    todo.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    let bar = progress_bar(todo.iter().map(ticks).sum(), quiet, BY_SHARE);
    let (done, stop) = work_off(todo, threads, |job| run(&job, kept, &bar).map(Some));
    bar.finish_and_clear();
    let mut records = HashMap::new();
    records.extend(wanted.iter().filter_map(|key| Some((key.clone(), kept.records.get(key)?.clone()))));
    records.extend(done.into_iter().map(|record| (record.key.clone(), record)));
    match stop {
        Some(error) => {
            if error.kind() == Kind::Interrupted {
                let path = kept.path().display();
                eprintln!(
                    "{} of {total} runs are kept in {path}; the same command goes on from there",
                    records.len()
                );
            }
            Err(error)
        }
        None => Ok(Records(records)),
    }
}

impl Job<'_> {
    fn key(&self) -> String {
        key(&self.name, self.seed)
    }
}

impl Records {
    /// Returns one value of the runs of this name with seeds 1 to `runs`. Omits runs without the value.
    pub(super) fn values(&self, name: &str, runs: u64, value: &str) -> Vec<f64> {
        let records = (1..=runs).filter_map(|seed| self.0.get(&key(name, seed)));
        records.filter_map(|record| record.values.get(value).copied()).collect()
    }

    /// Returns the value of the only run of this name; NaN without a run.
    pub(super) fn only(&self, name: &str, value: &str) -> f64 {
        self.values(name, 1, value).first().copied().unwrap_or(f64::NAN)
    }

    /// Returns the mean of [`values`](Self::values); NaN if there are none.
    pub(super) fn mean(&self, name: &str, runs: u64, value: &str) -> f64 {
        let values = self.values(name, runs, value);
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// Returns their sum.
    pub(super) fn sum(&self, name: &str, runs: u64, value: &str) -> f64 {
        self.values(name, runs, value).iter().sum()
    }

    /// Processor time of all runs.
    pub(super) fn seconds(&self) -> f64 {
        self.0.values().map(|record| record.seconds).sum()
    }
}

fn key(name: &str, seed: u64) -> String {
    format!("{name}, seed {seed}")
}

/// Ends a run early after Ctrl-C.
struct UntilInterrupted;

impl RunObserver for UntilInterrupted {
    fn goes_on(&mut self, _now: Instant) -> bool {
        !interrupt::requested()
    }

    fn observes_ends(&self) -> bool {
        false
    }
}

fn run(job: &Job<'_>, kept: &RunCache, bar: &ProgressBar) -> Result<Record> {
    bar.set_message(job.name.clone());
    let started = CpuTime::now();
    let outcome = (job.work)(&mut UntilInterrupted);
    bar.inc(ticks(job));
    match outcome {
        Ok(mut values) => {
            values.retain(|_, value| value.is_finite());
            let record = Record { key: job.key(), seconds: started.elapsed_s(), values };
            kept.add(&record).map(|()| record)
        }
        Err(error) => Err(not_simulated(&format!(" {}", job.key()), &error)),
    }
}

/// Returns the error for a failed simulation of `what`.
pub(super) fn not_simulated(what: &str, error: &ScenarioError) -> Error {
    match error {
        ScenarioError::GivenUp => Error::interrupted(),
        other => Error::failed(format!("cannot simulate{what}: {other}")),
    }
}

fn ticks(job: &Job<'_>) -> u64 {
    job.cost.ceil() as u64
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn what_is_kept_is_not_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let runs = AtomicU32::new(0);
        let jobs = || -> Vec<Job<'_>> {
            let job = |seed: u64| Job {
                name: "a".into(),
                seed,
                cost: seed as f64,
                work: Box::new(|_| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    Ok([("x".to_string(), 2.0), ("y".to_string(), f64::NAN)].into())
                }),
            };
            // The last job occurs twice.
            [1, 2, 3, 3].map(job).into()
        };
        for _ in 0..2 {
            let kept = RunCache::open(&folder.path().join("runs"), "p", false).unwrap();
            let records = run_all(jobs(), &kept, 2, true).unwrap();
            assert_eq!((records.values("a", 3, "x").len(), records.sum("a", 2, "x")), (3, 4.0));
            assert!(records.values("a", 3, "y").is_empty());
        }
        assert_eq!(runs.load(Ordering::Relaxed), 3);
    }
}
