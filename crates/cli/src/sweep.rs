//! `paceline sweep`: a scenario over lists and ranges of its keys, in the simulator.

mod columns;
mod means;
mod values;

use std::path::{Path, PathBuf};

use crate::args::SweepArgs;
use crate::error::{Error, Kind, Result};
use crate::interrupt;
use crate::result::{Run, SCHEMA, Store, write_whole};
use crate::run::{Batch, Job, Place, select};
use crate::scenario::{ScenarioFile, Variant, load_varied};
use columns::Columns;
use means::Means;
use values::Dimension;

pub(crate) fn command(args: &SweepArgs) -> Result<()> {
    let dimensions: Vec<Dimension> =
        args.vary.iter().map(|text| Dimension::parse(text)).collect::<Result<_>>()?;
    let further: Vec<_> = dimensions.iter().map(Dimension::to_vary).collect();
    let file = load_varied(&args.scenario, args.of.duration, &further)?;
    let variants: Vec<Variant> =
        select(&file, &args.of.only)?.into_iter().map(|variant| Place::Sim.settings_of(variant)).collect();
    for variant in &variants {
        Place::Sim.check(variant, &file.folder)?;
    }
    interrupt::watch()?;
    let folder: PathBuf =
        args.out.clone().unwrap_or_else(|| Path::new("results").join(format!("{}-sweep", file.base.name)));
    let store = Store::open(&folder)?;
    let first = args.of.seed.unwrap_or(file.base.seed);
    // All runs of a cell before the next cell: what is finished when somebody stops it is whole.
    let jobs: Vec<Job<'_>> = variants
        .iter()
        .flat_map(|variant| (first..first + u64::from(args.runs)).map(move |seed| Job { variant, seed }))
        .collect();
    let batch = Batch {
        place: Place::Sim,
        folder: &file.folder,
        store: &store,
        threads: Place::Sim.threads(args.jobs),
        series: false,
        fresh: args.fresh,
        quiet: args.json,
    };
    let (runs, failures) = batch.run_all(&jobs).inspect_err(|error| {
        if error.kind() == Kind::Interrupted {
            let kept = jobs.iter().filter(|job| store.finished(job.variant, job.seed).is_some()).count();
            eprintln!(
                "{kept} of {} runs are kept in {}; the same command goes on from there",
                jobs.len(),
                folder.display()
            );
        }
    })?;
    report(&file, &dimensions, &store, &runs, args)?;
    match failures.first() {
        None => Ok(()),
        Some(one) => Err(Error::failed(format!("{} runs failed, the first: {one}", failures.len()))),
    }
}

fn report(
    file: &ScenarioFile,
    dimensions: &[Dimension],
    store: &Store,
    runs: &[Run],
    args: &SweepArgs,
) -> Result<()> {
    let chosen = |variant: &str| chosen(file, dimensions, variant);
    let keys: Vec<&str> = dimensions.iter().map(|dimension| dimension.key.as_str()).collect();
    let means = Means::of(runs);
    for (name, columns) in
        [("runs", means::run_columns(runs, &keys, &chosen)), ("means", means.columns(&keys, &chosen))]
    {
        write_both(&columns, store.folder(), name)?;
    }
    if args.json {
        let object = serde_json::json!({
            "schema": SCHEMA,
            "program": format!("paceline {}", env!("CARGO_PKG_VERSION")),
            "scenario": file.base.name,
            "on": "sim",
            "cells": means.json(&keys, &chosen),
        });
        let text = serde_json::to_string_pretty(&object).map_err(|error| Error::failed(error.to_string()))?;
        println!("{text}");
        return Ok(());
    }
    println!("{}: {}", file.base.name, file.base.title);
    println!("Means over {} runs and 95 % confidence intervals (Student):", args.runs);
    println!("{}", means.table());
    println!("Results: {}/{{runs,means}}.{{csv,parquet}}", store.folder().display());
    Ok(())
}

fn write_both(columns: &Columns, folder: &Path, name: &str) -> Result<()> {
    let csv = columns.to_csv().map_err(|error| Error::failed(format!("cannot write {name}.csv: {error}")))?;
    write_whole(&folder.join(format!("{name}.csv")), &csv)?;
    let path = folder.join(format!("{name}.parquet"));
    columns.write_parquet(&path)
}

/// What each dimension of the command line is in the variant of that name: the last changes fastest.
fn chosen(file: &ScenarioFile, dimensions: &[Dimension], variant: &str) -> Vec<String> {
    let mut rest = file.variants.iter().position(|other| other.name == variant).unwrap_or(0);
    let mut values: Vec<String> = dimensions
        .iter()
        .rev()
        .map(|dimension| {
            let count = dimension.values.len().max(1);
            let value = dimension.values.get(rest % count).map(values::plain).unwrap_or_default();
            rest /= count;
            value
        })
        .collect();
    values.reverse();
    values
}
