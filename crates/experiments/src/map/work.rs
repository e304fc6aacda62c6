//! Runs points on all cores, and stores each run when it ends.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;
use twox_hash::XxHash64;

use super::outcome::Outcome;
use super::point::{PROFILES, Point};
use crate::common::progress_bar;
use crate::cpu_time::CpuTime;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::interrupt;
use crate::pool::work_off;
use crate::run::lab::Watch;
use crate::run::sim;
use crate::run_cache::{Record, RunCache};
use crate::scenario::{ScenarioFile, parse};

/// All finished runs of one kind, by key.
#[derive(Debug)]
pub(super) struct Runs {
    kept: RunCache<Outcome>,
    made: HashMap<String, Record<Outcome>>,
    /// The errors of failed runs.
    pub(super) failures: Vec<String>,
}

/// The requested runs of a point.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) point: &'a Point,
    /// Pairs of a profile and a repetition; repetitions count from 0.
    pub(super) runs: Vec<(&'static str, u32)>,
}

impl<'a> Wanted<'a> {
    /// Requests runs without a gateway and with each of `modes`, for each repetition.
    pub(super) fn of(point: &'a Point, modes: &[&'static str], repetitions: Range<u32>) -> Wanted<'a> {
        let profiles = || std::iter::once(PROFILES[0]).chain(modes.iter().copied());
        let runs = repetitions.flat_map(|run| profiles().map(move |profile| (profile, run))).collect();
        Wanted { point, runs }
    }
}

impl Runs {
    /// Opens the file and loads its runs. A file of another build of the program is renamed.
    pub(super) fn open(path: &Path, program: &str, fresh: bool) -> Result<Runs> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let other = text.lines().next().is_some_and(|first| !first.contains(program));
        if other && !fresh {
            let aside = path.with_extension("old.jsonl");
            std::fs::rename(path, &aside)
                .map_err(|error| Error::io(format_args!("rename {}", path.display()), &error))?;
            eprintln!("{} is of another build of the program: now {}", path.display(), aside.display());
        }
        drop(text);
        let mut kept = RunCache::open(path, program, fresh)?;
        Ok(Runs { made: std::mem::take(&mut kept.records), kept, failures: Vec::new() })
    }

    pub(super) fn get(&self, point: &Point, profile: &str, repetition: u32) -> Option<&Outcome> {
        self.made.get(&key(point, profile, repetition)).map(|record| &record.values)
    }

    /// Processor time of the point's finished runs.
    pub(super) fn seconds(&self, point: &Point, repetitions: u32) -> f64 {
        let of = |profile: &&'static str| {
            (0..repetitions).map(|run| key(point, profile, run)).collect::<Vec<String>>()
        };
        PROFILES.iter().flat_map(of).filter_map(|key| self.made.get(&key)).map(|record| record.seconds).sum()
    }

    /// Makes the requested runs that are missing.
    pub(super) fn make(
        &mut self,
        mut wanted: Vec<Wanted<'_>>,
        threads: u32,
        what: &str,
        quiet: bool,
    ) -> Result<()> {
        let all: usize = wanted.iter().map(|wanted| wanted.runs.len()).sum();
        for one in &mut wanted {
            let point = one.point;
            one.runs.retain(|(profile, run)| !self.made.contains_key(&key(point, profile, *run)));
        }
        wanted.retain(|wanted| !wanted.runs.is_empty());
        let todo: usize = wanted.iter().map(|wanted| wanted.runs.len()).sum();
        let bar = progress_bar(todo as u64, quiet, SHOWN).with_prefix(what.to_string());
        let failures = Mutex::new(Vec::new());
        let (done, stop) = work_off(wanted, threads, |wanted| self.work(&wanted, &bar, &failures).map(Some));
        bar.finish_and_clear();
        let done = done.into_iter().flatten();
        self.made.extend(done.map(|record| (record.key.clone(), record)));
        self.failures.extend(failures.into_inner().unwrap_or_else(PoisonError::into_inner));
        let Some(error) = stop else { return Ok(()) };
        if error.kind() == ErrorKind::Interrupted {
            let path = self.kept.path().display();
            eprintln!(
                "{what}: of {all} runs those that ended are in {path}; the same command goes on from there"
            );
        }
        Err(error)
    }

    fn work(
        &self,
        wanted: &Wanted<'_>,
        bar: &ProgressBar,
        failures: &Mutex<Vec<String>>,
    ) -> Result<Vec<Record<Outcome>>> {
        let point = wanted.point;
        let file = scenario(point)?;
        let mut done = Vec::new();
        for (profile, repetition) in &wanted.runs {
            bar.set_message(format!("point {} {profile}", point.index));
            let outcome = execute(&file, profile, *repetition);
            bar.inc(1);
            match outcome {
                Ok((seconds, values)) => {
                    let record = Record { key: key(point, profile, *repetition), seconds, values };
                    self.kept.add(&record)?;
                    done.push(record);
                }
                Err(error) if error.kind() == ErrorKind::Failed => {
                    let text = format!("{} {} {profile}: {error}", point.kind.name(), point.index);
                    failures.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

/// Returns the point's scenario, checked.
pub(super) fn scenario(point: &Point) -> Result<ScenarioFile> {
    let name = format!("{}-{}.toml", point.kind.name(), point.index);
    parse(Path::new(&name), &point.text, None)
}

fn execute(file: &ScenarioFile, profile: &str, repetition: u32) -> Result<(f64, Outcome)> {
    let variant = file.variants.iter().find(|variant| variant.name == profile);
    let variant = variant.ok_or_else(|| Error::failed(format!("no variant {profile}")))?;
    let began = CpuTime::now();
    let run = sim::execute(variant, file.base.seed + u64::from(repetition), &file.folder, None, &Unseen)?;
    if interrupt::requested() {
        return Err(Error::interrupted());
    }
    Ok((began.elapsed_s(), Outcome::of(&run)))
}

/// Identifies a run by everything that determines it.
fn key(point: &Point, profile: &str, repetition: u32) -> String {
    let text = XxHash64::oneshot(0, point.text.as_bytes());
    format!("{} {profile} {repetition} {text:016x}", point.index)
}

/// Shows no progress.
struct Unseen;

impl Watch for Unseen {
    fn progress(&self, _seconds: f64, _received_bytes: u64) {}
}

const SHOWN: &str = "{prefix} {bar:30} {pos}/{len} runs  {eta_precise} left  {wide_msg}";
