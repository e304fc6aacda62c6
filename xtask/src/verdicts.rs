//! docs/evidence/README.md: one page with a verdict for each page of evidence. Verdicts on generated pages are
//! counted. Other verdicts may contain only numbers that their page has.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

const REPORT: &str = "docs/evidence/README.md";

const INTRODUCTION: &str = include_str!("../pages/verdicts.txt");

/// verdicts.toml.
const PAGES: &str = include_str!("../pages/verdicts.toml");

#[derive(Deserialize)]
struct Pages {
    page: Vec<Page>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    name: String,
    question: String,
    verdict: Verdict,
}

/// The kind of verdict on a page.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// Counts of rows that hold and rows that are missed.
    Bounds,
    /// The page's line with this end.
    Line(String),
    /// Sums over tables.
    Sums(Sums),
    /// Written by hand.
    Said(String),
}

#[derive(Deserialize)]
struct Sums {
    /// The beginning of the tables' heading.
    heading: String,
    /// Name of the row, column of the part, column of the whole.
    rows: Vec<(String, usize, usize)>,
    /// Name of the parts.
    what: String,
}

/// A missed row without a reason.
const NO_REASON: &str = "| **missed** |  |";

pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    crate::write(root, REPORT, &page(root)?)?;
    Ok(Vec::new())
}

/// Returns a finding if the page differs from the pages of evidence, or if a number is not on its page.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for Page { name, verdict, .. } in pages()? {
        let Verdict::Said(text) = verdict else { continue };
        let page = crate::read(root, &format!("docs/evidence/{name}"))?;
        let missing = numbers(&text).into_iter().filter(|number| !page.contains(number));
        findings
            .extend(missing.map(|number| format!("xtask/pages/verdicts.toml: {number} is not in {name}")));
    }
    if crate::read(root, REPORT)? != page(root)? {
        findings.push(format!("{REPORT}: not what the pages say; cargo xtask verdicts"));
    }
    Ok(findings)
}

fn pages() -> Result<Vec<Page>, String> {
    let pages: Result<Pages, _> = toml::from_str(PAGES);
    pages.map(|pages| pages.page).map_err(|error| format!("xtask/pages/verdicts.toml: {error}"))
}

fn page(root: &Path) -> Result<String, String> {
    let mut text = format!("{INTRODUCTION}\n| question | verdict | page |\n|---|---|---|\n");
    for Page { name, question, verdict } in pages()? {
        let page = crate::read(root, &format!("docs/evidence/{name}"))?;
        let short = name.trim_start_matches("../design/").trim_end_matches(".md");
        let _ = writeln!(text, "| {question} | {} | [{short}]({name}) |", told(&verdict, &page)?);
    }
    text.push_str("\n[ad-hoc](ad-hoc.md) describes the ad-hoc network of one published figure.\n");
    Ok(text)
}

fn told(verdict: &Verdict, page: &str) -> Result<String, String> {
    match verdict {
        Verdict::Bounds => {
            let rows =
                |mark: &str| page.lines().filter(|line| line.starts_with('|') && line.contains(mark)).count();
            let reasons = match rows(NO_REASON) {
                0 => "Each miss has its reason.".to_owned(),
                without => format!("Misses without a reason beside them: {without}."),
            };
            Ok(format!("{} bounds hold, {} are missed. {reasons}", rows("| holds |"), rows("| **missed**")))
        }
        Verdict::Line(end) => {
            let line = page.lines().find(|line| line.ends_with(end.as_str()));
            line.map(str::to_owned).ok_or_else(|| format!("no line that ends in {end:?}"))
        }
        Verdict::Sums(Sums { heading, rows, what }) => {
            let sums = rows.iter().map(|(row, part, whole)| {
                let (part, whole) = (sum(page, heading, row, *part), sum(page, heading, row, *whole));
                format!("{row} {part} of {whole}")
            });
            Ok(format!("{what}: {}", sums.collect::<Vec<_>>().join(", ")))
        }
        Verdict::Said(text) => Ok(text.clone()),
    }
}

/// Returns the sum of a column in one row of each table with this heading.
fn sum(page: &str, heading: &str, row: &str, column: usize) -> u64 {
    let mut total = 0;
    let mut within = false;
    for line in page.lines() {
        within = line.starts_with('|') && (within || line.starts_with(heading));
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if within && cells.get(1) == Some(&row) {
            total += cells.get(column + 1).and_then(|cell| cell.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    total
}

fn numbers(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
        .map(|word| word.trim_end_matches(['.', ',']))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "| kept by | both | of |\n|---|---:|---:|\n| auto | 3 | 5 |\n| split | 1 | 5 |\n\n\
                          | other |\n| auto | 9 | 9 |\n\n| kept by | both | of |\n| auto | 4 | 4 |\n";

    #[test]
    fn tables_with_one_heading_are_summed() {
        assert_eq!((sum(TABLES, "| kept by |", "auto", 1), sum(TABLES, "| kept by |", "auto", 2)), (7, 9));
        let verdict = Verdict::Sums(Sums {
            heading: "| kept by |".into(),
            rows: vec![("split".into(), 1, 2)],
            what: "cells".into(),
        });
        assert_eq!(told(&verdict, TABLES).unwrap(), "cells: split 1 of 5");
    }

    #[test]
    fn rows_that_hold_and_that_are_missed_are_counted() {
        let page = "| a | holds |\n| b | **missed** by 1 |\ntext holds |\n| c | holds |\n";
        let of = |page: &str| told(&Verdict::Bounds, page).unwrap();
        assert_eq!(of(page), "2 bounds hold, 1 are missed. Each miss has its reason.");
        assert!(
            of(&format!("{page}| d | **missed** |  |\n"))
                .ends_with("2 are missed. Misses without a reason beside them: 1.")
        );
        assert!(told(&Verdict::Line("no such end".into()), page).is_err());
    }

    #[test]
    fn numbers_are_found_in_a_sentence() {
        assert_eq!(numbers("1,000 flows, 0.47. ns-3.37"), ["1,000", "0.47", "3.37"]);
    }

    /// `make test` runs this, so that it fails if a page is renewed without its verdict.
    #[test]
    fn verdicts_are_those_of_the_pages() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(check(&root).unwrap(), [""; 0]);
    }
}
