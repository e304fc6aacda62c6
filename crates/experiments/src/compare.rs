//! `paceline compare`: all senders and all receivers, with and without a gateway, on one scenario or trace, in the
//! simulator.

mod figure;
mod rows;
mod schemes;

use std::path::{Path, PathBuf};

use paceline_judge::distinct;

use crate::common::{PROGRAM, json};
use crate::error::Result;
use crate::files::write_whole;
use crate::options::CompareOptions;
use crate::output::say;
use crate::result::SCHEMA;
use crate::run::simulated::{self, Simulated};
use crate::scenario::{ScenarioFile, Vary, load_varied, parse_varied};
use crate::table::new_table;
pub(crate) use rows::throughput;
use rows::{Row, pick, undominated};
pub(crate) use schemes::scenario_of_trace;

/// Runs every scheme, then prints and draws the comparison.
pub(crate) fn command(options: &CompareOptions) -> Result<()> {
    let dimensions = schemes::dimensions(options)?;
    let file = load(options, &dimensions)?;
    let folder: PathBuf = options
        .out
        .clone()
        .unwrap_or_else(|| Path::new("results").join(format!("{}-compare", file.base.name)));
    let (_, runs, failures) = Simulated {
        file: &file,
        of: &options.of,
        runs: options.runs,
        how: &options.batch,
        folder: folder.clone(),
    }
    .run()?;
    let rows = rows::of(&runs);
    report(&file, &rows, &folder, options)?;
    simulated::judge(&failures)
}

/// Loads a scenario file, or builds a scenario whose radio downlink follows a trace.
fn load(options: &CompareOptions, dimensions: &[Vary]) -> Result<ScenarioFile> {
    if options.scenario.extension().is_some_and(|extension| extension == "toml") {
        return load_varied(&options.scenario, options.of.duration, dimensions);
    }
    let text = schemes::scenario_of_trace(&options.scenario, options.rtt, &options.queue);
    parse_varied(&options.scenario, &text, options.of.duration, dimensions)
}

fn report(file: &ScenarioFile, rows: &[Row], folder: &Path, options: &CompareOptions) -> Result<()> {
    let cells = || distinct(rows.iter().map(|row| row.cell.as_str()));
    let mut figures = Vec::new();
    for cell in cells() {
        let of_cell: Vec<&Row> = rows.iter().filter(|row| row.cell == cell).collect();
        let suffix = if cell.is_empty() { String::new() } else { format!("-{}", file_part(cell)) };
        let path = folder.join(format!("throughput-delay{suffix}.svg"));
        let title = match cell {
            "" => file.base.name.clone(),
            cell => format!("{}, {cell}", file.base.name),
        };
        figure::write(&path, &title, &of_cell)?;
        figures.push(path);
    }
    let object = serde_json::json!({
        "schema": SCHEMA,
        "program": PROGRAM,
        "scenario": file.base.name,
        "title": file.base.title,
        "on": "sim",
        "schemes": rows,
        "figures": figures,
    });
    let text = json(&object)?;
    write_whole(&folder.join("compare.json"), &text)?;
    if options.batch.json {
        say!("{text}");
        return Ok(());
    }
    say!("{}: {}", file.base.name, file.base.title);
    for cell in cells() {
        let of_cell: Vec<&Row> = rows.iter().filter(|row| row.cell == cell).collect();
        if !cell.is_empty() {
            say!("{cell}");
        }
        say!("{}", table(&of_cell));
        if let Some(row) = pick(&of_cell) {
            say!(
                "Least delay at 95 % or more of the highest throughput: {} ({:.2} Mbit/s, p95 {:.0} ms)",
                row.scheme(),
                row.throughput_mbps,
                row.delay_ms.p95.unwrap_or(0.0),
            );
        }
    }
    for figure in figures {
        say!("Plot: {}", figure.display());
    }
    Ok(())
}

fn file_part(cell: &str) -> String {
    cell.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.=".contains(c) { c } else { '_' }).collect()
}

fn table(rows: &[&Row]) -> String {
    let header = [
        "sender", "receiver", "gateway", "", "throughput", "+-", "delay p50", "p95", "p99", "resent", "RTO",
        "Jain",
    ];
    let mut table = new_table(4, &header);
    let best = undominated(rows);
    let ms = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1} ms"));
    for (row, best) in rows.iter().zip(best) {
        table.add_row([
            row.sender.clone(),
            row.receiver.clone(),
            row.gateway.clone(),
            if best { "*".into() } else { String::new() },
            format!("{:.3} Mbit/s", row.throughput_mbps),
            row.throughput_ci95.map_or("-".into(), |width| format!("{width:.3}")),
            ms(row.delay_ms.p50),
            ms(row.delay_ms.p95),
            ms(row.delay_ms.p99),
            format!("{:.2} %", row.retransmitted_share * 100.0),
            format!("{:.1}", row.timeouts),
            row.jain.map_or("-".into(), |jain| format!("{jain:.3}")),
        ]);
    }
    format!("{table}\n* no other scheme has both more throughput and less delay (p95)")
}
