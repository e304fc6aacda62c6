//! TCP-RRE: Figs. 7 to 16, each beside what the text says of it.

mod beside_upload;
mod clocks;
mod fairness;
mod normal;
mod phones;
mod slow_uplink;
mod steps;

use std::path::Path;

use serde::Serialize;

use super::pool::{Job, Records};
use super::report::{Bound, Report, Section};
use crate::error::Result;
use crate::interrupt;
use crate::kept::Values;
use crate::options::RreOptions;
use crate::output::say;
use crate::plot::Line;
use crate::table::new_table;

/// Runs what is asked for, prints it beside what was published, and judges the bounds.
pub fn command(options: &RreOptions) -> Result<()> {
    interrupt::watch()?;
    let out = &options.kept.how.out;
    let runs = u64::from(options.kept.how.runs);
    let parts: Vec<&Part> = PARTS.iter().filter(|part| part.is_wanted(&options.figure)).collect();
    let jobs = parts.iter().flat_map(|part| (part.jobs)(runs)).collect();
    let records = super::run_all("rre", &options.kept, jobs)?;
    let mut report = Report { cells: Vec::new(), bounds: Vec::new(), sections: Vec::new() };
    for part in parts {
        let shown = (part.show)(&records, runs, out)?;
        report.cells.extend(shown.cells);
        report.bounds.extend(shown.bounds);
        report.sections.extend(shown.sections);
    }
    super::conclude("rre", &report, options.figure.is_empty(), &options.kept.how, print)
}

/// Figures that show the same runs.
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
    // Beyond the figures.
    Part { figures: &[], jobs: clocks::jobs, show: clocks::show },
];

impl Part {
    fn is_wanted(&self, figures: &[u8]) -> bool {
        figures.is_empty() || self.figures.iter().any(|figure| figures.contains(figure))
    }
}

/// What a part yields.
#[derive(Default)]
struct Shown {
    cells: Vec<Cell>,
    bounds: Vec<Bound>,
    sections: Vec<Section>,
}

/// Something that the text says, and ours. The figures' own numbers are lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Cell {
    figure: u8,
    what: String,
    /// In words, as the text has it.
    published: &'static str,
    value: f64,
    unit: &'static str,
}

fn cell(
    figure: u8,
    what: impl Into<String>,
    published: &'static str,
    value: f64,
    unit: &'static str,
) -> Cell {
    Cell { figure, what: what.into(), published, value, unit }
}

fn print(cells: &[Cell]) {
    let mut table = new_table(2, &["figure", "what", "published", "ours", "unit"]);
    for cell in cells {
        table.add_row([
            cell.figure.to_string(),
            cell.what.clone(),
            cell.published.to_string(),
            format!("{:.3}", cell.value),
            cell.unit.to_string(),
        ]);
    }
    say!("{table}\n");
}

/// Values by name.
fn values<S: Into<String>>(of: impl IntoIterator<Item = (S, f64)>) -> Values {
    of.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values, by nearest rank; the mean of two that are equally near, so that a median is the judge's.
fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let rank = sorted.len().saturating_sub(1) as f64 * fraction;
    let value = |rank: f64| sorted.get(rank as usize).copied().unwrap_or(f64::NAN);
    f64::midpoint(value((rank - 0.5).ceil()), value((rank + 0.5).floor()))
}

/// Share of values that satisfy something, in percent.
fn percent_of(values: &[f64], holds: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|value| holds(**value)).count() as f64 / values.len() as f64 * 100.0
}

/// The distribution of values as a curve of 51 points.
fn distribution(label: impl Into<String>, colour: usize, values: Vec<f64>) -> Line {
    let values = sorted(values);
    let point = |n: u32| (quantile(&values, f64::from(n) / 50.0), f64::from(n) * 2.0);
    Line { label: label.into(), colour, points: (0..=50).map(point).collect() }
}

/// Every run, for samples of the page.
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
