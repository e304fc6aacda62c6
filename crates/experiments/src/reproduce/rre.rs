//! TCP-RRE: compares Figs. 7 to 16 with the statements of the paper's text.

mod beside_upload;
mod clocks;
mod fairness;
mod normal;
mod phones;
mod shown;
mod slow_uplink;
mod steps;

use std::path::Path;

use super::pool::{Job, Records};
use super::report::Report;
use crate::error::Result;
use crate::interrupt;
use crate::options::RreOptions;
use crate::output::say;
use crate::table::{Column, table_of};
use shown::{Cell, Shown, cell, distribution, percent_of, quantile, sorted, values};

/// Runs what is asked for, prints it beside the published results, and judges the bounds.
pub(crate) fn command(options: &RreOptions) -> Result<()> {
    interrupt::watch()?;
    let out = &options.kept.how.out;
    let runs = u64::from(options.kept.how.runs);
    let parts: Vec<&Part> = PARTS.iter().filter(|part| part.is_wanted(&options.figure)).collect();
    let jobs = parts.iter().flat_map(|part| (part.jobs)(runs)).collect();
    let records = super::run_all("rre", &options.kept, jobs)?;
    let mut report = Report::default();
    for part in parts {
        let shown = (part.show)(&records, runs, out)?;
        report.cells.extend(shown.cells);
        report.bounds.extend(shown.bounds);
        report.sections.extend(shown.sections);
    }
    super::conclude("rre", &report, options.figure.is_empty(), &options.kept.how, print)
}

/// Figures that use the same runs.
struct Part {
    figures: &'static [u8],
    jobs: fn(u64) -> Vec<Job<'static>>,
    show: fn(&Records, u64, &Path) -> Result<Shown>,
}

const PARTS: [Part; 7] = [
    Part { figures: &[7, 8], jobs: slow_uplink::jobs, show: slow_uplink::show },
    Part { figures: &[9], jobs: beside_upload::jobs, show: beside_upload::show },
    Part { figures: &[10, 11], jobs: normal::jobs, show: normal::show },
    Part { figures: &[12], jobs: fairness::jobs, show: fairness::show },
    Part { figures: &[13], jobs: steps::jobs, show: steps::show },
    Part { figures: &[14, 15, 16], jobs: phones::jobs, show: phones::show },
    // Not in the paper's figures.
    Part { figures: &[], jobs: clocks::jobs, show: clocks::show },
];

impl Part {
    fn is_wanted(&self, figures: &[u8]) -> bool {
        figures.is_empty() || self.figures.iter().any(|figure| figures.contains(figure))
    }
}

fn print(cells: &[Cell]) {
    say!("{}\n", table_of(2, &COLUMNS, cells));
}

const COLUMNS: [Column<Cell>; 5] = [
    ("figure", |cell| cell.figure.to_string()),
    ("what", |cell| cell.what.clone()),
    ("published", |cell| cell.published.to_string()),
    ("ours", |cell| format!("{:.3}", cell.value)),
    ("unit", |cell| cell.unit.to_string()),
];

/// All jobs with one run each, for samples of the page.
#[cfg(test)]
pub(super) fn sampled() -> Vec<Job<'static>> {
    PARTS.iter().flat_map(|part| (part.jobs)(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_name_of_its_own() {
        let jobs: Vec<Job<'_>> = PARTS.iter().flat_map(|part| (part.jobs)(2)).collect();
        let mut names: Vec<String> = jobs.iter().map(|job| format!("{} {}", job.name, job.seed)).collect();
        names.sort();
        names.dedup();
        assert_eq!(jobs.len(), names.len());
    }

    #[test]
    fn quantiles_are_of_what_there_is() {
        let values = sorted(vec![3.0, f64::NAN, 1.0, 2.0]);
        assert_eq!([0.0, 0.5, 1.0].map(|fraction| quantile(&values, fraction)), [1.0, 2.0, 3.0]);
        assert!((percent_of(&values, |value| value > 1.5) - 66.667).abs() < 0.01);
        assert!(quantile(&[], 0.5).is_nan());
        for values in [vec![1.0, 2.0, 4.0, 9.0], vec![5.0, 7.0], vec![1.0, 2.0, 3.0, 4.0, 6.0]] {
            let judged: paceline_judge::Sample = values.iter().copied().collect();
            assert_eq!(quantile(&values, 0.5), judged.median());
        }
    }
}
