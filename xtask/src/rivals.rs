//! docs/evidence/rivals.md: compares the gateway with its alternatives, from the runs of scenarios/rivals.

use std::fmt::Write as _;
use std::path::Path;

use paceline_judge::{Measurements as _, distinct};
use serde::Deserialize;

use crate::model::Results;

const FOLDER: &str = "scenarios/rivals";
const REPORT: &str = "docs/evidence/rivals.md";
/// Reasons for misses.
const REASONS: &str = "docs/evidence/rivals.toml";
/// Folders of runs: results/PLACE/SCENARIO/.
const PLACES: [(&str, &str); 3] =
    [("sim", "the simulator"), ("virtual", "the virtual-time kernel"), ("live", "this machine's kernel")];
/// The alternatives, by the first part of a variant's name. Every other scheme is ours.
const RIVALS: [&str; 3] = ["server-cubic", "server-bbr", "proxy-bbr"];

/// Smallest share of the best rival's throughput.
const THROUGHPUT_MIN: f64 = 0.98;
/// Largest share of the delay of the rival with the highest throughput.
const DELAY_MAX: f64 = 0.5;
/// The bound on the delay is never smaller than this.
const DELAY_MS_LEAST: f64 = 30.0;
/// Largest multiple of the best rival's median.
const COMPLETION_MAX: f64 = 1.02;

const INTRODUCTION: &str = include_str!("../pages/rivals.txt");

#[derive(Deserialize)]
struct Scenario {
    name: String,
    title: String,
    wired: Link,
    radio: Link,
}

#[derive(Deserialize)]
struct Link {
    rtt: String,
}

#[derive(Deserialize)]
struct Reasons {
    why: Vec<Reason>,
}

/// A reason for misses in a scenario, for some schemes and parts of a cell's name. The page gives the first reason
/// that fits.
#[derive(Deserialize)]
struct Reason {
    scenario: String,
    schemes: Vec<String>,
    #[serde(default)]
    cell: String,
    reason: String,
}

/// The compared figures of one scheme in one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    /// Throughput in Mbit/s and delay in ms, or median and p99 of the completion in s.
    first: f64,
    second: f64,
}

/// One cell: a combination of the scenario's variations other than the scheme.
#[derive(Clone, Debug)]
struct Cell {
    name: String,
    is_objects: bool,
    rivals: Vec<(String, Figures)>,
    ours: Vec<(String, Figures)>,
    oracle: Option<Figures>,
}

/// Writes the page. Misses are on the page and are no findings.
pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    let mut page = String::from(INTRODUCTION);
    let earlier = crate::seal::unsealed(&std::fs::read_to_string(root.join(REPORT)).unwrap_or_default());
    let mut kept = false;
    let reasons: Reasons = crate::read_toml(root, REASONS)?;
    for file in crate::tidy::tracked(root, &format!(":(glob){FOLDER}/*.toml"))? {
        let scenario: Scenario = crate::read_toml(root, &file)?;
        let _ = write!(page, "\n## {}\n\n{}\n", scenario.name, scenario.title);
        for (place, name) in PLACES {
            let results = Results::load(&root.join("results").join(place).join(&scenario.name))?;
            let cells = cells(&results);
            let heading = format!("\n### {}, in {name}\n", scenario.name);
            page.push_str(&heading);
            if cells.is_empty() {
                page.push_str(earlier_part(&earlier, &heading));
                kept = true;
                continue;
            }
            let _ = write!(page, "\n{} runs.\n\n", results.runs.len());
            write_cells(&mut page, &cells, scenario.rtt_s());
            write_misses(&mut page, &misses(&cells, scenario.rtt_s()), &scenario.name, &reasons.why);
        }
    }
    let origin = crate::seal::Origin::of_folder(root, &root.join("results")).in_part(kept);
    crate::write(root, REPORT, &crate::seal::sealed(&page, &origin))?;
    Ok(Vec::new())
}

/// Returns the earlier page's text below a heading. It stays if no runs replace it.
fn earlier_part<'a>(page: &'a str, heading: &str) -> &'a str {
    let own = page.split_once(heading).map_or("\nNot measured.\n", |(_, rest)| rest);
    own.split("\n## ").next().and_then(|own| own.split("\n### ").next()).unwrap_or(own)
}

impl Scenario {
    fn rtt_s(&self) -> f64 {
        [&self.wired, &self.radio]
            .into_iter()
            .filter_map(|link| link.rtt.strip_suffix("ms")?.parse::<f64>().ok())
            .sum::<f64>()
            / 1e3
    }
}

fn cells(results: &Results) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for variant in results.variants() {
        let (scheme, name) = variant.split_once(',').unwrap_or((variant, ""));
        let objects = results.sample(variant, Some("object"), "completion_s");
        let is_objects = results.flow_names(variant).contains(&"object");
        let figures = if is_objects {
            Figures { first: objects.median(), second: objects.quantile(0.99) }
        } else {
            Figures {
                first: results.sample(variant, Some("download"), "goodput_mbps").mean(),
                second: results.sample(variant, None, "path_delay_ms.p95").mean(),
            }
        };
        if is_objects && objects.is_empty() {
            continue;
        }
        let place = cells.iter().position(|cell| cell.name == name).unwrap_or_else(|| {
            let oracle = |key| Some(results.sample(variant, None, key)).filter(|sample| !sample.is_empty());
            let oracle =
                oracle("oracle.goodput_mbps").zip(oracle("oracle.path_delay_p95_ms")).filter(|_| !is_objects);
            cells.push(Cell {
                name: name.into(),
                is_objects,
                rivals: Vec::new(),
                ours: Vec::new(),
                oracle: oracle.map(|(mbps, ms)| Figures { first: mbps.mean(), second: ms.mean() }),
            });
            cells.len() - 1
        });
        let cell = &mut cells[place];
        let list = if RIVALS.contains(&scheme) { &mut cell.rivals } else { &mut cell.ours };
        list.push((scheme.into(), figures));
    }
    cells
}

impl Cell {
    /// Judges each of the two figures. `None` without a rival to compare with.
    fn verdict(&self, own: Figures, rtt_s: f64) -> Option<[bool; 2]> {
        let figures = || self.rivals.iter().map(|(_, figures)| *figures);
        if self.is_objects {
            let least = |of: fn(Figures) -> f64| figures().map(of).min_by(f64::total_cmp);
            let (median, p99) = (least(|f| f.first)?, least(|f| f.second)?);
            return Some([own.first <= median * COMPLETION_MAX, own.second <= p99 + rtt_s]);
        }
        let best = figures().max_by(|a, b| a.first.total_cmp(&b.first))?;
        let delay_max = (best.second * DELAY_MAX).max(DELAY_MS_LEAST);
        Some([own.first >= best.first * THROUGHPUT_MIN, own.second <= delay_max])
    }

    fn show(&self, figures: Figures, verdict: Option<[bool; 2]>) -> String {
        let [first, second] = verdict.unwrap_or([true; 2]);
        let mark = |holds: bool, mark: &'static str| if holds { "" } else { mark };
        if self.is_objects {
            return format!(
                "{:.3}{}, {:.3}{}",
                figures.first,
                mark(first, " ✗"),
                figures.second,
                mark(second, " ✗")
            );
        }
        format!("{:.2}{}, {:.0}{}", figures.first, mark(first, " ▼"), figures.second, mark(second, " ▲"))
    }
}

fn write_cells(page: &mut String, cells: &[Cell], rtt_s: f64) {
    let schemes = distinct(cells.iter().flat_map(|cell| &cell.ours).map(|(name, _)| name.as_str()));
    let names = if cells[0].is_objects { ["median", "p99"] } else { ["throughput", "delay"] };
    let _ = write!(
        page,
        "| kept by | {} | {} | both | of cells |\n|---|---:|---:|---:|---:|\n",
        names[0], names[1]
    );
    for scheme in &schemes {
        let verdicts: Vec<[bool; 2]> =
            cells.iter().filter_map(|cell| cell.verdict(find(&cell.ours, scheme)?, rtt_s)).collect();
        let count = |holds: &dyn Fn(&[bool; 2]) -> bool| verdicts.iter().filter(|v| holds(v)).count();
        let [first, second, both] = [count(&|v| v[0]), count(&|v| v[1]), count(&|v| v[0] && v[1])];
        let _ = writeln!(page, "| {scheme} | {first} | {second} | {both} | {} |", verdicts.len());
    }
    let unit = if cells[0].is_objects {
        "Completion in s, median and p99."
    } else {
        "Mbit/s, and p95 of the path's delay in ms."
    };
    let has_oracle = cells.iter().any(|cell| cell.oracle.is_some());
    let mut columns: Vec<&str> = RIVALS.to_vec();
    columns.extend(has_oracle.then_some("oracle"));
    columns.extend(&schemes);
    let _ = write!(
        page,
        "\n{unit}\n\n| cell | {} |\n|---|{}\n",
        columns.join(" | "),
        "---:|".repeat(columns.len())
    );
    for cell in cells {
        let show = |name: &&str| {
            if *name == "oracle" {
                return cell.oracle.map(|figures| cell.show(figures, None));
            }
            let rival = find(&cell.rivals, name).map(|figures| cell.show(figures, None));
            rival.or_else(|| {
                find(&cell.ours, name).map(|figures| cell.show(figures, cell.verdict(figures, rtt_s)))
            })
        };
        let shown: Vec<String> =
            columns.iter().map(|name| show(name).unwrap_or_else(|| "-".into())).collect();
        let _ = writeln!(page, "| {} | {} |", cell.name, shown.join(" | "));
    }
}

/// Returns cell and scheme of each miss.
fn misses(cells: &[Cell], rtt_s: f64) -> Vec<(&str, &str)> {
    let all = cells.iter().flat_map(|cell| cell.ours.iter().map(move |own| (cell, own)));
    all.filter(|(cell, own)| cell.verdict(own.1, rtt_s).is_some_and(|held| held.contains(&false)))
        .map(|(cell, own)| (cell.name.as_str(), own.0.as_str()))
        .collect()
}

fn write_misses(page: &mut String, misses: &[(&str, &str)], scenario: &str, reasons: &[Reason]) {
    if misses.is_empty() {
        return;
    }
    page.push_str("\nWhat is missed, and why as far as is known:\n\n");
    let fits = |reason: &Reason, (cell, scheme): (&str, &str)| {
        reason.scenario == scenario
            && reason.schemes.iter().any(|name| name == scheme)
            && reason.cell.split(',').all(|part| {
                part.is_empty() || part.split('|').any(|one| cell.split(',').any(|own| own == one))
            })
    };
    let first = |miss| reasons.iter().position(|reason| fits(reason, miss));
    let known = reasons.iter().enumerate().map(|(n, reason)| (Some(n), reason.reason.as_str()));
    for (place, why) in known.chain([(None, "not known")]) {
        let cells: Vec<String> = misses
            .iter()
            .filter(|miss| first(**miss) == place)
            .map(|(cell, scheme)| format!("`{scheme} {cell}`"))
            .collect();
        if !cells.is_empty() {
            let _ = writeln!(page, "- {why}: {}", cells.join("; "));
        }
    }
}

fn find(schemes: &[(String, Figures)], name: &str) -> Option<Figures> {
    schemes.iter().find(|(scheme, _)| scheme == name).map(|(_, figures)| *figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_run_again_stays_as_it_was() {
        let page =
            "\n## a\n\n### a, in x\n\n1 run.\n\n### a, in y\n\n2 runs.\n\n## b\n\n### b, in x\n\n3 runs.\n";
        let part = |heading| earlier_part(page, heading);
        assert_eq!(part("\n### a, in x\n"), "\n1 run.\n");
        assert_eq!(part("\n### a, in y\n"), "\n2 runs.\n");
        assert_eq!(part("\n### b, in x\n"), "\n3 runs.\n");
        assert_eq!(part("\n### b, in y\n"), "\nNot measured.\n");
    }

    fn results(runs: &[(&str, f64, f64)]) -> Results {
        let mut results = Results::default();
        for (variant, mbps, p95) in runs {
            let flows = format!(r#"[{{"name": "download", "goodput_mbps": {mbps}}}]"#);
            let run = format!(
                r#"{{"variant": "{variant}", "seed": 1, "flows": {flows}, "path_delay_ms": {{"p95": {p95}}}}}"#
            );
            results.add(&format!(r#"{{"schema": 1, "runs": [{run}]}}"#)).unwrap();
        }
        results
    }

    #[test]
    fn the_delay_is_held_against_the_fastest_of_the_others() {
        let cells = cells(&results(&[
            ("server-cubic,a", 9.0, 900.0),
            ("server-bbr,a", 8.0, 100.0),
            ("transparent,a", 8.9, 451.0),
            ("split,a", 8.8, 10.0),
        ]));
        let cell = &cells[0];
        let verdict = |name| cell.verdict(find(&cell.ours, name).unwrap(), 0.1);
        assert_eq!((cells.len(), cell.rivals.len()), (1, 2));
        assert_eq!(verdict("transparent"), Some([true, false]));
        assert_eq!(verdict("split"), Some([false, true]));
        let mut page = String::new();
        write_cells(&mut page, &cells, 0.1);
        assert!(page.contains("| a | 9.00, 900 | 8.00, 100 | - | 8.90, 451 ▲ | 8.80 ▼, 10 |"), "{page}");
        assert!(page.contains("| split | 0 | 1 | 0 | 1 |"), "{page}");
    }

    #[test]
    fn each_miss_is_named_once_with_the_first_reason_that_fits() {
        let why = |schemes: &[&str], cell: &str, reason: &str| Reason {
            scenario: "s".into(),
            schemes: schemes.iter().map(|name| (*name).into()).collect(),
            cell: cell.into(),
            reason: reason.into(),
        };
        let reasons =
            [why(&["split"], "size=1,loss=0", "one"), why(&["split", "auto"], "loss=1|loss=0", "two")];
        let missed = [
            ("size=1,loss=0", "split"),
            ("size=2,loss=0", "split"),
            ("size=1,loss=0", "auto"),
            ("x", "auto"),
        ];
        let mut page = String::new();
        write_misses(&mut page, &missed, "s", &reasons);
        assert!(page.contains("- one: `split size=1,loss=0`\n- two: `split size=2,loss=0`; `auto size=1,loss=0`\n- not known: `auto x`\n"), "{page}");
    }

    #[test]
    fn objects_are_held_against_the_best_median_and_the_best_tail() {
        let figures = |first, second| Figures { first, second };
        let cell = Cell {
            name: "size=10kb".into(),
            is_objects: true,
            rivals: vec![
                ("server-bbr".into(), figures(0.20, 0.50)),
                ("proxy-bbr".into(), figures(0.25, 0.40)),
            ],
            ours: Vec::new(),
            oracle: None,
        };
        assert_eq!(cell.verdict(figures(0.203, 0.49), 0.1), Some([true, true]));
        assert_eq!(cell.verdict(figures(0.21, 0.51), 0.1), Some([false, false]));
    }
}
