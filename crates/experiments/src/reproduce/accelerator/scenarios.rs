//! The scenario files, embedded, and their runs in the simulator.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Result;
use crate::options::AcceleratorOptions;
use crate::result::{Run, RunFiles, Store};
use crate::run::{Batch, Job, Place};
use crate::scenario::{Bound, ScenarioFile, Variant, parse};

/// A scenario file.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: &'static str,
    /// For messages, and to find traces beside the repository.
    pub(super) path: &'static str,
    text: &'static str,
    /// The most seeds. A scenario without random choices needs only one.
    seeds: u32,
    /// A figure uses its time series.
    series: bool,
    /// Its bounds are judged in the simulator, and its runs are compared with those of the lab.
    pub(super) judged: bool,
}

macro_rules! source {
    ($name:literal, $seeds:literal $(, $series:ident)?) => {
        source!(@ $name, concat!("scenarios/accelerator/", $name, ".toml"), $seeds, true $(, $series)?)
    };
    (figure $name:literal, $seeds:literal $(, $series:ident)?) => {
        source!(@ $name, concat!("scenarios/accelerator/figures/", $name, ".toml"), $seeds, false $(, $series)?)
    };
    (@ $name:literal, $path:expr, $seeds:literal, $judged:literal $(, $series:ident)?) => {
        Source {
            name: $name,
            path: $path,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $path)),
            seeds: $seeds,
            judged: $judged,
            series: <[&str]>::len(&[$(stringify!($series))?]) == 1,
        }
    };
}

pub(super) const SOURCES: [Source; 23] = [
    source!("window-limited", 1),
    source!("production", 10),
    source!("lossy", 10),
    source!("receiver-buffers", 10),
    source!("modern", 1),
    source!("lowered-window", 1),
    source!("variable", 1),
    source!("variable-generated", 3),
    source!("short", 3),
    source!("handover", 1),
    source!("coexist", 9),
    source!("fairness", 3, series),
    source!("slow-reader", 1),
    source!("paused-reader", 1),
    source!("rtt-modulation", 1, series),
    source!("blackout", 3),
    source!("hostile", 3),
    source!("failure", 1),
    source!(figure "steps", 1, series),
    source!(figure "transfer", 10, series),
    source!(figure "datagrams", 3),
    source!(figure "load", 10),
    source!(figure "sender", 10),
];

/// The requested runs: scenarios with parts of variant names, as in `paceline run --only`.
#[derive(Debug, Default)]
pub(super) struct Wanted(BTreeMap<&'static str, Vec<&'static str>>);

impl Wanted {
    pub(super) fn add(&mut self, scenario: &'static str, variant: &'static str) {
        self.0.entry(scenario).or_default().push(variant);
    }

    /// Adds all variants of the scenarios that also run in the lab.
    pub(super) fn add_judged(&mut self) {
        SOURCES.iter().filter(|source| source.judged).for_each(|source| self.add(source.name, ""));
    }
}

/// All runs.
#[derive(Debug)]
pub(super) struct Outcomes(BTreeMap<&'static str, Outcome>);

/// The runs of one scenario.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    variants: Vec<Variant>,
    pub(super) bounds: Vec<Bound>,
    pub(super) runs: Vec<Run>,
    pub(super) failures: Vec<String>,
    store: Option<Store>,
    /// Variants that the simulator cannot run, with the reason; `all` if the file cannot be read.
    pub(super) left_out: Vec<(String, String)>,
}

impl Outcomes {
    pub(super) fn get(&self, scenario: &str) -> Option<&Outcome> {
        self.0.get(scenario)
    }

    /// The judged scenarios, in the order of [`SOURCES`].
    pub(super) fn judged(&self) -> impl Iterator<Item = (&'static Source, &Outcome)> {
        let judged = SOURCES.iter().filter(|source| source.judged);
        judged.filter_map(|source| Some((source, self.get(source.name)?)))
    }
}

impl Outcome {
    pub(super) fn of(&self, variant: &str) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.variant == variant)
    }

    /// The files with the time series of a variant's first run.
    pub(super) fn files(&self, variant: &str) -> Option<RunFiles> {
        let run = self.of(variant).next()?;
        let variant = self.variants.iter().find(|known| known.name == variant)?;
        self.store.as_ref().map(|store| store.files(variant, run.seed))
    }
}

/// Runs the requested scenarios, one after the other.
pub(super) fn run(wanted: &Wanted, options: &AcceleratorOptions) -> Result<Outcomes> {
    let mut outcomes = BTreeMap::new();
    for source in SOURCES.iter().filter(|source| wanted.0.contains_key(source.name)) {
        if !options.how.json {
            eprintln!("{}", source.path);
        }
        outcomes.insert(source.name, source.run(&wanted.0[source.name], options)?);
    }
    Ok(Outcomes(outcomes))
}

impl Source {
    /// Loads the file with the requested variants.
    ///
    /// # Errors
    /// A description of the fault in the file.
    pub(super) fn load(&self, only: &[&str]) -> Result<ScenarioFile> {
        let mut file = parse(Path::new(self.path), self.text, None)?;
        file.variants.retain(|variant| only.iter().any(|part| variant.matches(part)));
        Ok(file)
    }

    fn run(&self, only: &[&str], options: &AcceleratorOptions) -> Result<Outcome> {
        let file = match self.load(only) {
            Ok(file) => file,
            Err(error) if self.judged => {
                // Its traces are not part of the repository.
                let left_out = vec![("all".to_string(), error.to_string())];
                return Ok(Outcome { left_out, ..Outcome::default() });
            }
            Err(error) => return Err(error),
        };
        let mut outcome = Outcome { bounds: file.base.bounds.clone(), ..Outcome::default() };
        for variant in &file.variants {
            match Place::Sim.check(variant, &file.folder) {
                Ok(()) => outcome.variants.push(Place::Sim.settings_of(variant)),
                Err(error) => outcome.left_out.push((variant.name.clone(), error.to_string())),
            }
        }
        let store = Store::open(&options.how.out.join("accelerator-runs").join(self.name))?;
        let seeds = file.base.seed..file.base.seed + u64::from(options.how.runs.min(self.seeds));
        let variants = &outcome.variants;
        let jobs: Vec<Job<'_>> =
            seeds.flat_map(|seed| variants.iter().map(move |variant| Job { variant, seed })).collect();
        let batch = Batch {
            place: Place::Sim,
            folder: &file.folder,
            store: &store,
            threads: Place::Sim.threads(options.how.jobs),
            series: self.series,
            // Runs of an older program do not count.
            fresh: true,
            quiet: options.how.json,
        };
        let (runs, failures) = batch.run_all(&jobs)?;
        Ok(Outcome { runs, failures, store: Some(store), ..outcome })
    }
}
