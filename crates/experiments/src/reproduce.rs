//! `paceline reproduce`: repeats published experiments in the simulator, and compares the results with the published
//! ones.

pub(crate) mod accelerator;
pub(crate) mod drwa;
pub(crate) mod ncl;
pub(crate) mod or;
mod pool;
pub(crate) mod printed;
mod report;
pub(crate) mod rre;

use clap::ValueEnum;
use serde::Serialize;

use crate::common::{json, make_folder};
use crate::error::Result;
use crate::options::{How, ResumableRun};
use crate::output::say;
use crate::pool::cores;
use crate::run_cache::{self, RunCache};
use pool::{Job, Records};
use report::Report;

/// Returns all runs of a paper. Loads those stored in the folder, unless `fresh` is set, and makes the others.
fn run_all(name: &str, ResumableRun { fresh, how }: &ResumableRun, jobs: Vec<Job<'_>>) -> Result<Records> {
    make_folder(&how.out)?;
    let kept = RunCache::open(&how.out.join(format!("{name}-runs.jsonl")), &run_cache::program(), *fresh)?;
    pool::run_all(jobs, &kept, how.jobs.unwrap_or_else(cores), how.json)
}

/// The requested parts. Without a request: all, or only the figures' part if figures or tables are named.
fn parts<P: ValueEnum>(given: &[P], of_figures: P, some_named: bool) -> Vec<P> {
    match given {
        [] if some_named => vec![of_figures],
        [] => P::value_variants().to_vec(),
        given => given.to_vec(),
    }
}

/// True if no part was left out.
fn are_all<P: ValueEnum + PartialEq + 'static>(parts: &[P]) -> bool {
    P::value_variants().iter().all(|part| parts.contains(part))
}

/// Stores the report if it is whole, prints it, and judges it on request.
fn conclude<C: Serialize>(
    name: &str,
    report: &Report<C>,
    whole: bool,
    how: &How,
    print_cells: impl FnOnce(&[C]),
) -> Result<()> {
    if whole {
        report.save(&how.out.join(format!("{name}.json")))?;
    }
    if how.json {
        say!("{}", json(report)?);
    } else {
        print_cells(&report.cells);
        report.print_rest(&how.out);
    }
    report.judge(how.check)
}

/// Cells with seed 1 of every paper that runs jobs, for [`crate::samples`].
#[cfg(test)]
pub(crate) fn sampled() -> Vec<(&'static str, Vec<crate::samples::Cell>)> {
    use crate::choices::DetectionChoice;
    use crate::options::{DrwaOptions, NclOptions, OrOptions, PrintedOptions};

    // The program's defaults.
    let how = || How { runs: 10, jobs: None, out: "unused".into(), json: false, check: false };
    let kept = || ResumableRun { fresh: false, how: how() };
    let or =
        OrOptions { table: Vec::new(), part: Vec::new(), detection: DetectionChoice::Fack, kept: kept() };
    let ncl = NclOptions { figure: Vec::new(), part: Vec::new(), seconds: 400, kept: kept() };
    let drwa = DrwaOptions { figure: Vec::new(), part: Vec::new(), kept: kept() };
    let printed = PrintedOptions { only: Vec::new(), kept: kept() };
    let of = |(paper, jobs): (&'static str, Vec<Job<'static>>)| {
        let first = jobs.into_iter().filter(|job| job.seed == 1);
        let cell =
            |job: Job<'static>| crate::samples::Cell { key: job.name, run: Box::new(move || run(&job.work)) };
        (paper, first.map(cell).collect())
    };
    [
        ("or", or::sampled(&or)),
        ("ncl", ncl::sampled(&ncl)),
        ("rre", rre::sampled()),
        ("drwa", drwa::sampled(&drwa)),
        ("printed", printed::sampled(&printed)),
    ]
    .map(of)
    .into()
}

#[cfg(test)]
fn run(work: &pool::Work<'static>) -> run_cache::Values {
    let mut values = work(&mut ()).expect("what a page shows can be simulated");
    values.retain(|_, value| value.is_finite());
    values
}
