//! Many runs of a scenario's variants in the simulator, stored as they end. `sweep`, `compare` and `profiles` share
//! this.

use std::path::PathBuf;

use super::{Batch, Job, Place, select};
use crate::error::{Error, Kind, Result};
use crate::interrupt;
use crate::options::{self, Selection};
use crate::result::{Run, Store};
use crate::scenario::{ScenarioFile, Variant};
use crate::units::counted;

/// The requested runs.
pub(crate) struct Simulated<'a> {
    pub(crate) file: &'a ScenarioFile,
    pub(crate) of: &'a Selection,
    /// The number of runs of each variant.
    pub(crate) runs: u32,
    pub(crate) how: &'a options::Batch,
    /// The folder that stores the runs.
    pub(crate) folder: PathBuf,
}

impl Simulated<'_> {
    /// Makes all missing runs. Returns all runs, and the errors of failed ones.
    pub(crate) fn run(&self) -> Result<(Store, Vec<Run>, Vec<String>)> {
        let Simulated { file, of, how, .. } = *self;
        let variants: Vec<Variant> =
            select(file, &of.only)?.into_iter().map(|variant| Place::Sim.settings_of(variant)).collect();
        for variant in &variants {
            Place::Sim.check(variant, &file.folder)?;
        }
        interrupt::watch()?;
        let store = Store::open(&self.folder)?;
        let first = of.seed.unwrap_or(file.base.seed);
        let seeds = first..first + u64::from(self.runs);
        // All runs of a variant come before the next variant, so that an interrupted command leaves complete variants.
        let jobs: Vec<Job<'_>> = variants
            .iter()
            .flat_map(|variant| seeds.clone().map(move |seed| Job { variant, seed }))
            .collect();
        let batch = Batch {
            place: Place::Sim,
            folder: &file.folder,
            store: &store,
            threads: Place::Sim.threads(how.jobs),
            series: false,
            fresh: how.fresh,
            quiet: how.json,
        };
        let (runs, failures) = batch.run_all(&jobs).inspect_err(|error| {
            if error.kind() == Kind::Interrupted {
                let kept = jobs.iter().filter(|job| store.finished(job.variant, job.seed).is_some()).count();
                let (all, folder) = (jobs.len(), self.folder.display());
                eprintln!("{kept} of {all} runs are kept in {folder}; the same command goes on from there");
            }
        })?;
        Ok((store, runs, failures))
    }
}

/// Returns an error if some runs failed.
pub(crate) fn judge(failures: &[String]) -> Result<()> {
    match failures.first() {
        None => Ok(()),
        Some(one) => {
            Err(Error::failed(format!("{} failed, the first: {one}", counted(failures.len(), "run"))))
        }
    }
}
