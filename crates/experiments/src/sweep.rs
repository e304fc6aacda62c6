//! `paceline sweep`: runs a scenario over lists and ranges of its keys, in the simulator.

mod columns;
mod means;
mod values;

use std::path::{Path, PathBuf};

use crate::common::{PROGRAM, json};
use crate::error::{Error, Result};
use crate::files::write_whole;
use crate::options::SweepOptions;
use crate::output::say;
use crate::result::{Run, SCHEMA, Store};
use crate::run::simulated::{self, Simulated};
use crate::scenario::{ScenarioFile, load_varied};
use crate::units::counted;
use columns::Columns;
use means::Means;
use values::Dimension;

/// Runs every combination, then prints and stores the means.
pub(crate) fn command(options: &SweepOptions) -> Result<()> {
    let dimensions: Vec<Dimension> =
        options.vary.iter().map(|text| Dimension::parse(text)).collect::<Result<_>>()?;
    let further: Vec<_> = dimensions.iter().map(Dimension::to_vary).collect();
    let file = load_varied(&options.scenario, options.of.duration, &further)?;
    let folder: PathBuf =
        options.out.clone().unwrap_or_else(|| Path::new("results").join(format!("{}-sweep", file.base.name)));
    let (store, runs, failures) =
        Simulated { file: &file, of: &options.of, runs: options.runs, how: &options.batch, folder }.run()?;
    report(&file, &dimensions, &store, &runs, options)?;
    simulated::judge(&failures)
}

fn report(
    file: &ScenarioFile,
    dimensions: &[Dimension],
    store: &Store,
    runs: &[Run],
    options: &SweepOptions,
) -> Result<()> {
    let chosen = |variant: &str| chosen(file, dimensions, variant);
    let keys: Vec<&str> = dimensions.iter().map(|dimension| dimension.key.as_str()).collect();
    let means = Means::of(runs);
    for (name, columns) in
        [("runs", means::run_columns(runs, &keys, &chosen)), ("means", means.columns(&keys, &chosen))]
    {
        write_both(&columns, store.folder(), name)?;
    }
    if options.batch.json {
        let object = serde_json::json!({
            "schema": SCHEMA,
            "program": PROGRAM,
            "scenario": file.base.name,
            "on": "sim",
            "cells": means.json(&keys, &chosen),
        });
        say!("{}", json(&object)?);
        return Ok(());
    }
    say!("{}: {}", file.base.name, file.base.title);
    say!("Means over {} and 95 % confidence intervals (Student):", counted(options.runs as usize, "run"));
    say!("{}", means.table());
    say!("Results: {}/{{runs,means}}.{{csv,parquet}}", store.folder().display());
    Ok(())
}

fn write_both(columns: &Columns, folder: &Path, name: &str) -> Result<()> {
    let csv = columns.to_csv().map_err(|error| Error::failed(format!("cannot write {name}.csv: {error}")))?;
    write_whole(&folder.join(format!("{name}.csv")), &csv)?;
    let path = folder.join(format!("{name}.parquet"));
    columns.write_parquet(&path)
}

/// Returns the values of the command line's dimensions in the variant of that name. The last dimension changes fastest.
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
