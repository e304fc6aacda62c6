//! docs/evidence/README.md: a verdict for each page of evidence, on one page. Generated pages are counted; what is said of others has no
//! number that their page has not.

use std::fmt::Write as _;
use std::path::Path;

const REPORT: &str = "docs/evidence/README.md";

const INTRODUCTION: &str = "\
# Evidence

One verdict for each page. Do not edit: `cargo xtask verdicts` writes this page. It counts what the pages say, and each number below stands on its page.
";

/// What is said of a page.
enum Verdict {
    /// Rows that hold, and rows that are missed.
    Bounds,
    /// The line that ends so.
    Line(&'static str),
    /// Sums over tables: their heading begins so; row, column of the part, column of the whole; what the parts are.
    Sums(&'static str, &'static [(&'static str, usize, usize)], &'static str),
    /// Written by hand.
    Said(&'static str),
}

const PAGES: [(&str, &str, Verdict); 16] = [
    ("results.md", "Does the gateway keep its bounds with real TCP?", Verdict::Bounds),
    ("reproduction.md", "Do published experiments come out as printed?", Verdict::Bounds),
    (
        "printed-forms.md",
        "Where QARR and BARR as printed are off, what brings them near?",
        Verdict::Line("come within 10 by one other reading."),
    ),
    (
        "rivals.md",
        "Is it as good as the best of CUBIC, BBR and a proxy, with less delay?",
        Verdict::Sums(
            "| kept by |",
            &[("auto", 3, 4), ("transparent", 3, 4), ("split", 3, 4)],
            "cells keep throughput and delay",
        ),
    ),
    (
        "../design/auto.md",
        "Is `auto` as good as the best fixed profile?",
        Verdict::Line("bounds against passing are missed."),
    ),
    (
        "split.md",
        "Do kernels agree with the simulator about the gateway's own senders?",
        Verdict::Sums("| in | runs |", &[("virtual time", 4, 5), ("live", 4, 5)], "cells agree"),
    ),
    (
        "live-papers.md",
        "And about TCP-NCL's family, its rivals and DRWA at the gateway?",
        Verdict::Line("if seeds are not paired."),
    ),
    (
        "map.md",
        "Is somebody worse off with a gateway?",
        Verdict::Said(
            "Yes, on some paths. Of drawn points 95.9 % keep 0.98 of the throughput with `auto`, where 99 % are wanted.",
        ),
    ),
    (
        "map-kernel.md",
        "And between kernels, with losses or a shallow buffer before the gateway?",
        Verdict::Line("keep the throughput bound."),
    ),
    (
        "comparators.md",
        "How does it stand beside Copa and ABC?",
        Verdict::Said(
            "More throughput and more delay than ABC on recorded LTE links. ABC's bound is not met.",
        ),
    ),
    (
        "compare.md",
        "What should one pick over recorded links?",
        Verdict::Line("without a change to either host."),
    ),
    (
        "cost.md",
        "What does the gateway cost beside a forwarder that does nothing?",
        Verdict::Said(
            "0.89 of its throughput with one flow, 0.47 with 1,000. The bound of 0.8 is missed from 10 flows on.",
        ),
    ),
    (
        "scale.md",
        "How far does it scale, and does it bear attacks?",
        Verdict::Said(
            "1 Gbit/s of packets of 1,500 bytes is 0.74 of a core. All honest flows stay accelerated under floods. Half an hour with attackers has not \
             been run again since its last mend.",
        ),
    ),
    (
        "speed.md",
        "How fast is the simulator?",
        Verdict::Said("50 times as fast as ns-3.37 for one flow. The bound for 1,000 flows is missed."),
    ),
    (
        "fuzz.md",
        "What do fuzzers find?",
        Verdict::Said("300,967,306 executions. Both goals of numbers were missed."),
    ),
    (
        "packetdrill.md",
        "Does `tcp` pass packetdrill's scripts?",
        Verdict::Said("36 of 39 of Google's and all 9 of ours."),
    ),
];

/// A row that is missed and says no more.
const NO_REASON: &str = "| **missed** |  |";

pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    std::fs::write(root.join(REPORT), page(root)?).map_err(|error| format!("{REPORT}: {error}"))?;
    Ok(Vec::new())
}

/// A finding where the page is not what the others say, or a number is not on its page.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for (name, _, verdict) in &PAGES {
        let Verdict::Said(text) = verdict else { continue };
        let page = crate::read(root, &format!("docs/evidence/{name}"))?;
        let missing = numbers(text).into_iter().filter(|number| !page.contains(number));
        findings.extend(missing.map(|number| format!("xtask/src/verdicts.rs: {number} is not in {name}")));
    }
    if crate::read(root, REPORT)? != page(root)? {
        findings.push(format!("{REPORT}: not what the pages say; cargo xtask verdicts"));
    }
    Ok(findings)
}

fn page(root: &Path) -> Result<String, String> {
    let mut text = format!("{INTRODUCTION}\n| question | verdict | page |\n|---|---|---|\n");
    for (name, question, verdict) in &PAGES {
        let page = crate::read(root, &format!("docs/evidence/{name}"))?;
        let short = name.trim_start_matches("../design/").trim_end_matches(".md");
        let _ = writeln!(text, "| {question} | {} | [{short}]({name}) |", told(verdict, &page)?);
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
            let line = page.lines().find(|line| line.ends_with(end));
            line.map(str::to_owned).ok_or_else(|| format!("no line that ends in {end:?}"))
        }
        Verdict::Sums(heading, rows, what) => {
            let sums = rows.iter().map(|&(row, part, whole)| {
                let (part, whole) = (sum(page, heading, row, part), sum(page, heading, row, whole));
                format!("{row} {part} of {whole}")
            });
            Ok(format!("{what}: {}", sums.collect::<Vec<_>>().join(", ")))
        }
        Verdict::Said(text) => Ok((*text).to_owned()),
    }
}

/// The sum of a column over all tables with this heading, of one row of each.
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
        let verdict = Verdict::Sums("| kept by |", &[("split", 1, 2)], "cells");
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
        assert!(told(&Verdict::Line("no such end"), page).is_err());
    }

    #[test]
    fn numbers_are_found_in_a_sentence() {
        assert_eq!(numbers("1,000 flows, 0.47. ns-3.37"), ["1,000", "0.47", "3.37"]);
    }

    /// `make test` runs this, so that a page that is renewed without its verdict turns it red.
    #[test]
    fn verdicts_are_those_of_the_pages() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(check(&root).unwrap(), [""; 0]);
    }
}
