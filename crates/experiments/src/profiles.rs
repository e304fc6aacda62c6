//! `paceline profiles`: compares `auto` with every fixed profile of the gateway, on scenarios and traces, in the
//! simulator.
//!
//! Hosts and links are as in the file; its gateway is ignored. docs/design/auto.md has the results of all files.

mod cells;
mod judge;

use crate::common::{self, PROGRAM};
use crate::error::Result;
use crate::files::write_whole;
use crate::options::ProfilesOptions;
use crate::output::say;
use crate::result::SCHEMA;
use crate::run::simulated::{self, Simulated};
use crate::table::new_table;
use judge::{Cell, Verdict};

/// Runs every profile over every cell, and judges `auto`.
pub(crate) fn command(options: &ProfilesOptions) -> Result<()> {
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for path in &options.files {
        let file = cells::load(path, options)?;
        let (_, runs, failures) = Simulated {
            file: &file,
            of: &options.of,
            runs: options.runs,
            how: &options.batch,
            folder: options.out.join(&file.base.name),
        }
        .run()?;
        failed.extend(failures);
        let of_file = judge::cells(&file.base.name, &runs);
        if !options.batch.json {
            say!("{}: {}\n{}", file.base.name, file.base.title, table(&of_file));
        }
        all.extend(of_file);
    }
    let text = json(&all)?;
    write_whole(&options.out.join("profiles.json"), &text)?;
    if options.batch.json {
        say!("{text}");
    }
    simulated::judge(&failed)?;
    let missed: Vec<String> = all.iter().flat_map(Cell::missed).collect();
    common::check_missed(options.check, &missed)
}

fn json(cells: &[Cell]) -> Result<String> {
    let object = serde_json::json!({
        "schema": SCHEMA,
        "program": PROGRAM,
        "on": "sim",
        "cells": cells.iter().map(Cell::json).collect::<Vec<_>>(),
    });
    common::json(&object)
}

fn table(cells: &[Cell]) -> String {
    let mut table =
        new_table(2, &["cell", "profile", "throughput", "delay p95", "of pass", "of best", "decided"]);
    for cell in cells {
        for row in &cell.profiles {
            let verdict = cell.verdict(row);
            let share = |share: Option<f64>| share.map_or(String::new(), |share| format!("{share:.3}"));
            let of = |pick: fn(&Verdict) -> f64| share(verdict.as_ref().map(pick));
            table.add_row([
                cell.cell.clone(),
                row.profile.clone(),
                format!("{:.3} Mbit/s", row.throughput_mbps),
                format!("{:.1} ms", row.delay_p95_ms),
                of(|verdict| verdict.of_pass),
                of(|verdict| verdict.of_best),
                row.decisions(),
            ]);
        }
    }
    table.to_string()
}
