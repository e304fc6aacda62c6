//! docs/design/auto.md: compares the mode `auto` with every fixed profile, from the results of scripts/profiles in
//! results/profiles.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

const RESULTS: &str = "results/profiles/profiles.json";
const REPORT: &str = "docs/design/auto.md";
const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";

#[derive(Deserialize)]
struct Measured {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    scenario: String,
    cell: String,
    profiles: Vec<Row>,
    #[serde(default)]
    missed: Vec<String>,
    best: String,
}

#[derive(Deserialize)]
struct Row {
    profile: String,
    throughput_mbps: f64,
    delay_p95_ms: f64,
    reasons: BTreeMap<String, u64>,
    split: u64,
}

/// Writes the measured tables into the page.
pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    let measured: Measured = crate::read_json(root, RESULTS)?;
    let page = crate::read(root, REPORT)?;
    let (before, rest) = page.split_once(BEGIN).ok_or(format!("{REPORT}: no `{BEGIN}`"))?;
    let (_, after) = rest.split_once(END).ok_or(format!("{REPORT}: no `{END}`"))?;
    let origin = crate::seal::Origin::of(root, crate::read(root, RESULTS)?.as_bytes());
    let tables = crate::seal::sealed(&tables(&measured.cells), &origin);
    let text = format!("{before}{BEGIN}\n\n{tables}\n{END}{after}");
    crate::write(root, REPORT, &text)?;
    Ok(Vec::new())
}

fn tables(cells: &[Cell]) -> String {
    let mut text = String::new();
    let whole = cells.iter().filter(|cell| cell.missed.is_empty()).count();
    let pass: usize = cells.iter().map(|cell| of_pass(cell).count()).sum();
    let _ = writeln!(
        text,
        "{} cells; in {whole} all bounds hold for first and later flows; {pass} bounds against passing are missed.\n",
        cells.len()
    );
    text.push_str("### What is missed\n\n");
    for cell in cells {
        for missed in &cell.missed {
            let _ = writeln!(text, "- {missed}");
        }
    }
    let names: Vec<&str> = cells
        .first()
        .map_or(Vec::new(), |cell| cell.profiles.iter().map(|row| row.profile.as_str()).collect());
    let _ = write!(
        text,
        "\n### Every cell\n\nMbit/s / p95 of the path's delay in ms. The best fixed profile is bold.\n\n| cell |"
    );
    for name in &names {
        let _ = write!(text, " {name} |");
    }
    let _ = write!(text, " later flows: decided | bounds |\n|---|{}---|---|\n", "---:|".repeat(names.len()));
    for cell in cells {
        let name = format!("{} {}", cell.scenario, cell.cell.replace(',', ", "));
        let _ = write!(text, "| {} |", name.trim());
        for row in &cell.profiles {
            let value = format!("{} / {:.0}", three(row.throughput_mbps), row.delay_p95_ms);
            let bold = if row.profile == cell.best { "**" } else { "" };
            let _ = write!(text, " {bold}{value}{bold} |");
        }
        let decided = cell.profiles.last().map(decided).unwrap_or_default();
        let holds = if cell.missed.is_empty() { "hold" } else { "missed" };
        let _ = writeln!(text, " {decided} | {holds} |");
    }
    text
}

fn of_pass(cell: &Cell) -> impl Iterator<Item = &String> {
    cell.missed.iter().filter(|missed| missed.contains("of passing"))
}

fn decided(row: &Row) -> String {
    let mut reasons: Vec<&str> = row.reasons.keys().map(String::as_str).collect();
    if row.split > 0 {
        reasons.insert(0, "split:");
    }
    reasons.join(" ")
}

/// Formats a value with three digits.
fn three(value: f64) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}
