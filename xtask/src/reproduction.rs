//! docs/evidence/reproduction.md: published numbers beside ours, from the results of `paceline reproduce` in
//! results/reproduce.

mod cells;

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::seal::{self, Origin};

const RESULTS: &str = "results/reproduce";
const REPORT: &str = "docs/evidence/reproduction.md";
const PLOTS: &str = "docs/evidence/reproduction";

const INTRODUCTION: &str = include_str!("../pages/reproduction.txt");

/// A paper.
struct Paper {
    /// Name of its file of results.
    name: &'static str,
    heading: &'static str,
    command: &'static str,
}

const PAPERS: [Paper; 6] = [
    Paper { name: "or", heading: "Opportunistic retransmission", command: "paceline reproduce or --runs 10" },
    Paper {
        name: "printed",
        heading: "As printed, beside what we recommend",
        command: "paceline reproduce printed --runs 3",
    },
    Paper { name: "accelerator", heading: "Mobile accelerator", command: "paceline reproduce accelerator" },
    Paper { name: "ncl", heading: "TCP-NCL", command: "paceline reproduce ncl --runs 10" },
    Paper { name: "rre", heading: "TCP-RRE", command: "paceline reproduce rre --runs 3" },
    Paper {
        name: "drwa",
        heading: "Dynamic receive window adjustment",
        command: "paceline reproduce drwa --runs 10",
    },
];

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    cells: Vec<Map<String, Value>>,
    #[serde(default)]
    bounds: Vec<Bound>,
    #[serde(default)]
    sections: Vec<Section>,
}

#[derive(Deserialize)]
struct Bound {
    name: String,
    #[serde(default)]
    bound: Value,
    /// Null without a measurement.
    #[serde(default)]
    measured: Option<f64>,
    holds: bool,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Deserialize)]
struct Section {
    title: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    rows: Vec<Vec<Value>>,
    #[serde(default)]
    files: Vec<String>,
}

/// Writes the page, and copies its plots. A paper without results keeps its section of the earlier page.
pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    let earlier = std::fs::read_to_string(root.join(REPORT)).unwrap_or_default();
    let mut page = seal::sealed(INTRODUCTION, &Origin::of(root, &[]));
    for paper in &PAPERS {
        let file = format!("{RESULTS}/{}.json", paper.name);
        let section = if root.join(&file).exists() {
            let text = crate::read(root, &file)?;
            let report: Report = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
            copy_plots(root, &report)?;
            seal::sealed(&section_of(paper, &report), &Origin::of(root, text.as_bytes()))
        } else {
            earlier_section(&earlier, paper.heading).map_or_else(
                || format!("\n## {}\n\n    {}\n\nNot run yet.\n", paper.heading, paper.command),
                |section| format!("\n## {}\n{section}", paper.heading),
            )
        };
        page.push_str(&section);
    }
    crate::write(root, REPORT, &page)?;
    Ok(Vec::new())
}

fn earlier_section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n"))?;
    Some(rest.split_once("\n## ").map_or(rest, |(own, _)| own))
}

fn section_of(paper: &Paper, report: &Report) -> String {
    let mut text = format!("\n## {}\n\n    {}\n", paper.heading, paper.command);
    write_bounds(&mut text, &report.bounds);
    text.push_str(&cells::tables(&report.cells));
    for section in &report.sections {
        write_section(&mut text, section);
    }
    text
}

fn write_bounds(text: &mut String, bounds: &[Bound]) {
    let held = bounds.iter().filter(|bound| bound.holds).count();
    let _ = write!(text, "\n### Bounds\n\n{held} of {} hold.\n\n", bounds.len());
    text.push_str("| bound on | wanted | measured | | |\n|---|---|---:|---|---|\n");
    for bound in bounds {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            bound.name,
            shown(&bound.bound),
            bound.measured.map_or("-".into(), figure),
            if bound.holds { "holds" } else { "**missed**" },
            bound.note.as_deref().unwrap_or_default()
        );
    }
}

fn write_section(text: &mut String, section: &Section) {
    let _ = write!(text, "\n### {}\n\n{}\n", section.title, section.text);
    if !section.rows.is_empty() {
        let _ = write!(
            text,
            "\n| {} |\n|{}\n",
            section.columns.join(" | "),
            "---|".repeat(section.columns.len())
        );
        for row in &section.rows {
            let row: Vec<String> = row.iter().map(shown).collect();
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
    }
    for plot in section.files.iter().filter(|file| file.ends_with(".svg")) {
        let _ = write!(text, "\n![{}](reproduction/{plot})\n", section.title);
    }
}

/// Copies plots. Accepts only names of files beside the results.
fn copy_plots(root: &Path, report: &Report) -> Result<(), String> {
    let plots = report.sections.iter().flat_map(|section| &section.files);
    for plot in plots.filter(|file| file.ends_with(".svg") && !file.contains('/')) {
        let (from, to) = (root.join(RESULTS).join(plot), root.join(PLOTS).join(plot));
        std::fs::create_dir_all(root.join(PLOTS))
            .and_then(|()| std::fs::copy(&from, &to))
            .map_err(|error| format!("{}: {error}", from.display()))?;
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.replace('|', "\\|"),
        other => other.to_string(),
    }
}

/// Formats a number with about four significant digits.
fn figure(value: f64) -> String {
    let digits = if value.abs() >= 100.0 {
        1
    } else if value.abs() >= 1.0 {
        2
    } else {
        4
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_stand_first_and_misses_are_marked() {
        let report: Report = serde_json::from_str(
            r#"{"cells": [], "sections": [{"title": "Fig. 9", "text": "t", "columns": ["a"], "rows": [[1.5]],
                "files": ["x.svg", "x.csv"]}], "bounds": [{"name": "n", "bound": "<= 1", "measured": 2, "holds": false}]}"#,
        )
        .unwrap();
        let text = section_of(&PAPERS[0], &report);
        assert!(text.contains("0 of 1 hold") && text.contains("| n | <= 1 | 2 | **missed** |  |"), "{text}");
        assert!(text.find("### Bounds") < text.find("### Fig. 9"));
        assert!(text.contains("| 1.5 |") && text.contains("(reproduction/x.svg)") && !text.contains("x.csv"));
    }

    #[test]
    fn a_paper_without_results_keeps_its_section() {
        let page = "# R\n\n## A\n\nold\n\n## B\n\nother\n";
        assert_eq!(earlier_section(page, "A"), Some("\nold\n"));
        assert_eq!(earlier_section(page, "C"), None);
    }

    #[test]
    fn figures_have_no_idle_digits() {
        assert_eq!(
            [figure(0.0), figure(0.0065), figure(12.5), figure(1234.56)],
            ["0", "0.0065", "12.5", "1234.6"]
        );
    }
}
