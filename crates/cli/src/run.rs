//! `paceline run`: every variant of a scenario, with every seed, on the lab.

mod collect;
mod fairness;
mod gateway_process;
mod hosts;
pub(crate) mod lab;
mod links;
mod series;
mod settling;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use paceline_linux::emulator::DirectionReport;
use paceline_wire::Duration;

use crate::args::{On, RunArgs};
use crate::error::{Error, Kind, Result};
use crate::interrupt;
use crate::result::{
    LinkResult, Results, Run, SCHEMA, Store, bounds_table, check_bounds, summary_table, write_whole,
};
use crate::scenario::{ScenarioFile, Variant, load_file};
pub(crate) use collect::link_result;
use lab::Watch;

/// A table of link directions observed for `duration`.
pub(crate) fn links_table(directions: &[DirectionReport], duration: Duration) -> String {
    let links: Vec<(&str, LinkResult)> = directions
        .iter()
        .map(|direction| (direction.name.as_str(), link_result(direction, duration)))
        .collect();
    crate::result::links_table(&links)
}

pub(crate) fn command(args: &RunArgs) -> Result<()> {
    let file = load_file(&args.scenario, args.duration)?;
    let variants = select(&file, &args.only)?;
    if args.list {
        variants.iter().for_each(|variant| println!("{}", variant.name));
        return Ok(());
    }
    let On::Lab = args.on;
    interrupt::watch()?;
    paceline_linux::netns::check_permitted().map_err(lab::system)?;
    let name = &file.base.name;
    let store = Store::open(args.out.as_deref().unwrap_or(&Path::new("results").join(name)))?;
    let first = args.seed.unwrap_or(file.base.seed);
    let seeds = first..first + u64::from(args.runs.unwrap_or(file.base.runs));
    let jobs: Vec<Job<'_>> =
        seeds.flat_map(|seed| variants.iter().map(move |variant| Job { variant, seed })).collect();
    let (runs, failures) = run_all(&jobs, &file.folder, &store, args)?;
    report(&file, &store, runs, failures, args)
}

/// Runs `jobs` in order, several at a time, and returns all results in the order of the variants.
fn run_all(
    jobs: &[Job<'_>],
    folder: &Path,
    store: &Store,
    args: &RunArgs,
) -> Result<(Vec<Run>, Vec<String>)> {
    let (mut done, mut todo) = (Vec::new(), Vec::new());
    for job in jobs {
        match store.finished(job.variant, job.seed) {
            Some(run) if !args.fresh => done.push(run),
            _ => todo.push(job),
        }
    }
    if !done.is_empty() {
        eprintln!(
            "{} of {} runs are in {} already; --fresh does them again",
            done.len(),
            jobs.len(),
            store.folder().display()
        );
    }
    let bar = progress_bar(&todo, args.json);
    let state =
        Mutex::new(State { todo: todo.into_iter().collect(), done, failures: Vec::new(), stop: None });
    thread::scope(|scope| {
        for _ in 0..args.jobs {
            scope.spawn(|| work(&state, folder, store, &bar));
        }
    });
    bar.finish_and_clear();
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = state.stop {
        return Err(error);
    }
    let mut runs = state.done;
    let place =
        |run: &Run| jobs.iter().position(|job| job.variant.name == run.variant && job.seed == run.seed);
    runs.sort_by_key(place);
    Ok((runs, state.failures))
}

/// One run to be done.
#[derive(Clone, Copy, Debug)]
struct Job<'a> {
    variant: &'a Variant,
    seed: u64,
}

struct State<'a> {
    todo: VecDeque<&'a Job<'a>>,
    done: Vec<Run>,
    failures: Vec<String>,
    /// Why nothing more is to be run.
    stop: Option<Error>,
}

fn work(state: &Mutex<State<'_>>, folder: &Path, store: &Store, bar: &ProgressBar) {
    let locked = || state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let job = {
            let mut state = locked();
            let next = if state.stop.is_none() { state.todo.pop_front() } else { None };
            match next {
                Some(job) => job,
                None => return,
            }
        };
        bar.set_message(format!("{} seed {}", job.variant.name, job.seed));
        let watch = Ticks { bar, shown: Mutex::new(0), length: ticks(job) };
        let files = store.files(job.variant, job.seed);
        let outcome = lab::execute(job.variant, job.seed, folder, &files, &watch)
            .and_then(|run| store.save(job.variant, &run).map(|()| run));
        watch.finish();
        match outcome {
            Ok(run) => locked().done.push(run),
            Err(error) if error.kind() == Kind::Failed => {
                let text = format!("{} seed {}: {error}", job.variant.name, job.seed);
                bar.suspend(|| eprintln!("paceline: {text}"));
                locked().failures.push(text);
            }
            // Bad input, missing privilege and Ctrl-C concern every run.
            Err(error) => locked().stop = Some(error),
        }
    }
}

fn select<'a>(file: &'a ScenarioFile, only: &[String]) -> Result<Vec<&'a Variant>> {
    let wanted = |variant: &&Variant| only.is_empty() || only.iter().any(|part| variant.matches(part));
    let variants: Vec<&Variant> = file.variants.iter().filter(wanted).collect();
    if variants.is_empty() {
        let all: Vec<&str> = file.variants.iter().map(|variant| variant.name.as_str()).collect();
        return Err(Error::input(format!("no variant matches --only; there are: {}", all.join(" "))));
    }
    Ok(variants)
}

fn report(
    file: &ScenarioFile,
    store: &Store,
    runs: Vec<Run>,
    failures: Vec<String>,
    args: &RunArgs,
) -> Result<()> {
    let outcomes = check_bounds(&file.base.bounds, &runs);
    let results = Results {
        schema: SCHEMA,
        program: format!("paceline {}", env!("CARGO_PKG_VERSION")),
        scenario: file.base.name.clone(),
        on: "lab".into(),
        runs,
    };
    let text = serde_json::to_string_pretty(&results).map_err(|error| Error::failed(error.to_string()))?;
    let path: PathBuf = store.folder().join("results.json");
    write_whole(&path, &format!("{text}\n"))?;
    if args.json {
        println!("{text}");
    } else {
        println!("{}: {}", file.base.name, file.base.title);
        println!("{}", summary_table(&results.runs));
        if let Some(table) = bounds_table(&outcomes) {
            println!("{table}");
        }
        println!("Results and time series: {}", store.folder().display());
    }
    match failures.as_slice() {
        [] => {}
        [one] => return Err(Error::failed(format!("1 run failed: {one}"))),
        [first, ..] => {
            return Err(Error::failed(format!("{} runs failed, the first: {first}", failures.len())));
        }
    }
    let missed = outcomes.iter().filter(|outcome| !outcome.holds()).count();
    if args.check && missed > 0 {
        return Err(Error::failed(format!("{missed} of {} bounds are missed", outcomes.len())));
    }
    Ok(())
}

/// Moves the bar as a run goes on, never beyond what the run was expected to take.
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

fn ticks(job: &Job<'_>) -> u64 {
    ((job.variant.scenario.duration.seconds() + SET_UP_S) * TICKS_PER_S) as u64
}

fn progress_bar(jobs: &[&Job<'_>], hidden: bool) -> ProgressBar {
    let length = jobs.iter().map(|job| ticks(job)).sum();
    if hidden || length == 0 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {eta_precise} left  {wide_msg}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(250));
    bar
}

const TICKS_PER_S: f64 = 10.0;
/// What a run takes besides its duration, for the estimate.
const SET_UP_S: f64 = 1.0;
