//! `paceline run`: every variant of a scenario, with every seed, in the lab, in the simulator, or in both.

mod collect;
mod difference;
mod fairness;
mod gateway_process;
mod hosts;
mod kernel_proxy;
pub(crate) mod lab;
mod links;
mod series;
mod settling;
pub(crate) mod sim;
pub(crate) mod simulated;
mod traces;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;
use paceline_lab::emulator::DirectionReport;
use paceline_wire::Duration;

use crate::choices::On;
use crate::common::{BY_SHARE, PROGRAM, json, progress_bar};
use crate::error::{Error, Kind, Result};
use crate::files::write_whole;
use crate::interrupt;
use crate::options::RunOptions;
use crate::output::say;
use crate::pool::{cores, work_off};
use crate::result::{LinkResult, Results, Run, SCHEMA, Store, bounds_table, check_bounds, summary_table};
use crate::scenario::{Protocol, ScenarioFile, Tcp, Variant, load_file};
use crate::units::counted;
pub(crate) use collect::link_result;
pub(crate) use difference::agrees;
use lab::Watch;

/// A table of link directions observed for `duration`.
pub(crate) fn links_table(directions: &[DirectionReport], duration: Duration) -> String {
    let links: Vec<(&str, LinkResult)> = directions
        .iter()
        .map(|direction| (direction.name.as_str(), link_result(direction, duration)))
        .collect();
    crate::result::links_table(&links)
}

/// Runs the variants at the requested places, prints the results, and judges the bounds.
pub(crate) fn command(options: &RunOptions) -> Result<()> {
    let file = load_file(&options.scenario, options.of.duration)?;
    let variants = select(&file, &options.of.only)?;
    if options.list {
        variants.iter().for_each(|variant| say!("{}", variant.name));
        return Ok(());
    }
    let places: &[Place] = match options.on {
        On::Lab => &[Place::Lab],
        On::Sim => &[Place::Sim],
        On::Both => &[Place::Sim, Place::Lab],
    };
    for place in places {
        for variant in &variants {
            place.check(variant, &file.folder)?;
        }
    }
    interrupt::watch()?;
    if places.contains(&Place::Lab) {
        paceline_lab::netns::check_permitted().map_err(Error::system)?;
    }
    let mut done = Vec::new();
    for place in places {
        let store = Store::open(&out_folder(options, &file.base.name, *place))?;
        done.push(run_place(&file, &variants, *place, store, options)?);
    }
    report(&file, &done, options)
}

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Lab,
    Sim,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Lab => "lab",
            Place::Sim => "sim",
        }
    }

    /// Returns an error if the variant cannot run here.
    pub(crate) fn check(self, variant: &Variant, folder: &Path) -> Result<()> {
        if self == Place::Sim {
            return sim::check(variant, folder);
        }
        if variant.scenario.topology.is_some() {
            return Err(Error::input(format!(
                "variant `{}`: topology: only the simulator has it; use --on sim",
                variant.name
            )));
        }
        if variant.scenario.gateway.seen_before {
            return Err(Error::input(format!(
                "variant `{}`: gateway.seen-before: only the simulator's gateway has seen what is to come; use --on sim",
                variant.name
            )));
        }
        if let Some(flow) = variant.scenario.flows.iter().find(|flow| flow.protocol == Protocol::Ping) {
            return Err(Error::input(format!(
                "variant `{}`: flow `{}`: only the simulator has pings; use --on sim",
                variant.name, flow.name
            )));
        }
        let hosts =
            [("server.tcp", &variant.scenario.server.tcp), ("client.tcp", &variant.scenario.client.tcp)];
        match hosts.iter().find(|(_, tcp)| **tcp != Tcp::default()) {
            None => Ok(()),
            Some((key, _)) => Err(Error::input(format!(
                "variant `{}`: {key}: the lab's hosts are kernels and have their own algorithms; use --on sim",
                variant.name
            ))),
        }
    }

    /// Returns the variant as it is stored. A mark keeps a simulated run from counting as a result of the lab.
    pub(crate) fn settings_of(self, variant: &Variant) -> Variant {
        let mut variant = variant.clone();
        if self == Place::Sim {
            variant.settings.insert_str(0, "# simulated\n");
        }
        variant
    }

    /// The number of parallel runs.
    pub(crate) fn threads(self, wanted: Option<u32>) -> u32 {
        wanted.unwrap_or_else(|| if self == Place::Sim { cores() } else { 1 })
    }
}

/// The results of one place.
struct Done {
    place: Place,
    store: Store,
    results: Results,
    failures: Vec<String>,
}

fn out_folder(options: &RunOptions, name: &str, place: Place) -> PathBuf {
    let suffix = match options.on {
        On::Lab => "",
        On::Sim => "-sim",
        On::Both => "-both",
    };
    let folder = options.out.clone().unwrap_or_else(|| Path::new("results").join(format!("{name}{suffix}")));
    if options.on == On::Both { folder.join(place.name()) } else { folder }
}

fn run_place(
    file: &ScenarioFile,
    variants: &[&Variant],
    place: Place,
    store: Store,
    options: &RunOptions,
) -> Result<Done> {
    let variants: Vec<Variant> = variants.iter().map(|variant| place.settings_of(variant)).collect();
    let first = options.of.seed.unwrap_or(file.base.seed);
    let seeds = first..first + u64::from(options.runs.unwrap_or(file.base.runs));
    let jobs: Vec<Job<'_>> =
        seeds.flat_map(|seed| variants.iter().map(move |variant| Job { variant, seed })).collect();
    let batch = Batch {
        place,
        folder: &file.folder,
        store: &store,
        threads: place.threads(options.jobs),
        series: true,
        fresh: options.fresh,
        quiet: options.json,
    };
    let (runs, failures) = batch.run_all(&jobs)?;
    let results = Results {
        schema: SCHEMA,
        program: PROGRAM.into(),
        scenario: file.base.name.clone(),
        on: place.name().into(),
        runs,
    };
    let text = json(&results)?;
    write_whole(&store.folder().join("results.json"), &format!("{text}\n"))?;
    Ok(Done { place, store, results, failures })
}

/// Runs that belong together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) place: Place,
    /// The folder of trace files.
    pub(crate) folder: &'a Path,
    pub(crate) store: &'a Store,
    /// The number of parallel runs.
    pub(crate) threads: u32,
    /// True if time series are written.
    pub(crate) series: bool,
    /// True if stored runs are repeated.
    pub(crate) fresh: bool,
    /// True without a progress bar.
    pub(crate) quiet: bool,
}

impl Batch<'_> {
    /// Runs `jobs` in order, several at a time. Returns all results in the order of the jobs, and the failures.
    pub(crate) fn run_all(&self, jobs: &[Job<'_>]) -> Result<(Vec<Run>, Vec<String>)> {
        let (mut done, mut todo) = (Vec::new(), Vec::new());
        for job in jobs {
            match self.store.finished(job.variant, job.seed) {
                Some(run) if !self.fresh => done.push(run),
                _ => todo.push(job),
            }
        }
        if !done.is_empty() {
            eprintln!(
                "already finished: {} of {}, in {}; --fresh repeats them",
                done.len(),
                counted(jobs.len(), "run"),
                self.store.folder().display()
            );
        }
        let length = todo.iter().map(|job| ticks(job, self.place)).sum();
        let bar = progress_bar(length, self.quiet, BY_SHARE);
        let failures = Mutex::new(Vec::new());
        let (runs, stop) = work_off(todo, self.threads, |job| self.work(job, &bar, &failures));
        bar.finish_and_clear();
        if let Some(error) = stop {
            return Err(error);
        }
        done.extend(runs);
        let place: HashMap<(&str, u64), usize> = jobs
            .iter()
            .enumerate()
            .map(|(place, job)| ((job.variant.name.as_str(), job.seed), place))
            .collect();
        done.sort_by_key(|run| place.get(&(run.variant.as_str(), run.seed)).copied());
        Ok((done, failures.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Executes one run; `None` if only this run failed. Bad input, missing privilege and Ctrl-C concern every run, so
    /// they are errors.
    fn work(&self, job: &Job<'_>, bar: &ProgressBar, failures: &Mutex<Vec<String>>) -> Result<Option<Run>> {
        bar.set_message(format!("{} seed {}", job.variant.name, job.seed));
        let watch = Ticks { bar, shown: Mutex::new(0), length: ticks(job, self.place) };
        let outcome =
            self.execute(job, &watch).and_then(|run| self.store.save(job.variant, &run).map(|()| run));
        watch.finish();
        match outcome {
            Ok(run) => Ok(Some(run)),
            Err(error) if error.kind() == Kind::Failed => {
                let text = format!("{} seed {}: {error}", job.variant.name, job.seed);
                bar.suspend(|| eprintln!("paceline: {text}"));
                failures.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn execute(&self, job: &Job<'_>, watch: &dyn Watch) -> Result<Run> {
        let files = self.store.files(job.variant, job.seed);
        match self.place {
            Place::Lab => lab::execute(job.variant, job.seed, self.folder, &files, watch),
            Place::Sim => {
                let files = self.series.then_some(&files);
                sim::execute(job.variant, job.seed, self.folder, files, watch)
            }
        }
    }
}

/// One run to execute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    pub(crate) variant: &'a Variant,
    pub(crate) seed: u64,
}

pub(crate) fn select<'a>(file: &'a ScenarioFile, only: &[String]) -> Result<Vec<&'a Variant>> {
    let wanted = |variant: &&Variant| only.is_empty() || only.iter().any(|part| variant.matches(part));
    let variants: Vec<&Variant> = file.variants.iter().filter(wanted).collect();
    if variants.is_empty() {
        let all: Vec<&str> = file.variants.iter().map(|variant| variant.name.as_str()).collect();
        return Err(Error::input(format!("no variant matches --only; there are: {}", all.join(" "))));
    }
    Ok(variants)
}

fn report(file: &ScenarioFile, done: &[Done], options: &RunOptions) -> Result<()> {
    let differences = match done {
        [one, other] => difference::between(&one.results.runs, &other.results.runs),
        _ => Vec::new(),
    };
    if options.json {
        print_json(done, &differences)?;
    } else {
        say!("{}: {}", file.base.name, file.base.title);
        done.iter().for_each(|done| print_tables(file, done));
        if !differences.is_empty() {
            say!("Simulator less lab, medians over runs:");
            say!("{}", difference::table(&differences));
        }
    }
    judge(file, done, options)
}

fn print_json(done: &[Done], differences: &[difference::Difference]) -> Result<()> {
    let text = match done {
        [one] => json(&one.results)?,
        _ => {
            let mut all = serde_json::Map::new();
            for done in done {
                let results = serde_json::to_value(&done.results);
                all.insert(
                    done.place.name().into(),
                    results.map_err(|error| Error::failed(error.to_string()))?,
                );
            }
            all.insert("differences".into(), serde_json::json!(differences));
            json(&all)?
        }
    };
    say!("{text}");
    Ok(())
}

fn print_tables(file: &ScenarioFile, done: &Done) {
    say!("On: {}", done.place.name());
    say!("{}", summary_table(&done.results.runs));
    if let Some(table) = bounds_table(&check_bounds(&file.base.bounds, &done.results.runs)) {
        say!("{table}");
    }
    say!("Results and time series: {}", done.store.folder().display());
}

fn judge(file: &ScenarioFile, done: &[Done], options: &RunOptions) -> Result<()> {
    let failures: Vec<&String> = done.iter().flat_map(|done| &done.failures).collect();
    match failures.as_slice() {
        [] => {}
        [one] => return Err(Error::failed(format!("1 run failed: {one}"))),
        [first, ..] => {
            return Err(Error::failed(format!(
                "{} failed, the first: {first}",
                counted(failures.len(), "run")
            )));
        }
    }
    let outcomes: Vec<_> =
        done.iter().flat_map(|done| check_bounds(&file.base.bounds, &done.results.runs)).collect();
    let missed = outcomes.iter().filter(|outcome| !outcome.holds).count();
    if options.check && missed > 0 {
        return Err(Error::failed(format!("{missed} of {} bounds are missed", outcomes.len())));
    }
    Ok(())
}

/// Moves the bar during a run, but never beyond the expected end of the run.
struct Ticks<'a> {
    bar: &'a ProgressBar,
    shown: Mutex<u64>,
    length: u64,
}

impl Ticks<'_> {
    fn show(&self, ticks: u64) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let ticks = ticks.min(self.length);
        self.bar.inc(ticks.saturating_sub(*shown));
        *shown = ticks.max(*shown);
    }

    fn finish(&self) {
        self.show(self.length);
    }
}

impl Watch for Ticks<'_> {
    fn progress(&self, seconds: f64, _received_bytes: u64) {
        self.show((seconds * TICKS_PER_S) as u64);
    }
}

fn ticks(job: &Job<'_>, place: Place) -> u64 {
    let set_up_s = if place == Place::Lab { SET_UP_S } else { 0.0 };
    ((job.variant.scenario.duration.seconds() + set_up_s) * TICKS_PER_S) as u64
}

const TICKS_PER_S: f64 = 10.0;
/// Time that a run in the lab needs besides its duration, for the estimate.
const SET_UP_S: f64 = 1.0;
