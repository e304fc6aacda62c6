//! TCP-NCL: Figs. 3 to 5, 7 and 9. The paper's text lacks the figures themselves, so we judge its statements about
//! them.

mod at_once;
mod bounds;
mod cells;
mod figures;
mod grid;
mod model;
mod sts;

use super::pool::{Job, Records};
use super::report::{Report, Section};
use crate::choices::NclPart;
use crate::error::Result;
use crate::interrupt;
use crate::options::NclOptions;
use crate::run_cache::Values;
use cells::Cell;

/// Runs what is asked for, prints it beside the published results, and judges the bounds.
pub(crate) fn command(options: &NclOptions) -> Result<()> {
    interrupt::watch()?;
    let plan = Plan::new(options);
    let out = &options.kept.how.out;
    let records = super::run_all("ncl", &options.kept, plan.jobs())?;
    let cells = plan.cells.iter().map(|cell| cell.result(&records)).collect();
    let mut report = Report { cells, ..Report::default() };
    report.sections = figures::draw(&report.cells, out)?;
    report.sections.extend(grid::section(&report.cells));
    report.sections.extend(grid::rests(&report.cells));
    report.sections.extend(model::section(&report.cells));
    report.bounds = bounds::judge(&report.cells);
    if plan.sts {
        report.add(sts::report(&records, plan.runs, plan.seconds));
    }
    if plan.at_once {
        report.add(at_once::report(&report.cells, &records, plan.runs, plan.seconds));
    }
    if plan.whole {
        report.sections.push(time(&records, options));
    }
    super::conclude("ncl", &report, plan.whole, &options.kept.how, cells::print)
}

/// What will be run.
struct Plan {
    cells: Vec<Cell>,
    /// Count the model's probabilities.
    sts: bool,
    /// Examine the value 0 of Eq. (23).
    at_once: bool,
    runs: u64,
    seconds: u64,
    /// True if nothing was left out.
    whole: bool,
}

impl Plan {
    fn new(options: &NclOptions) -> Plan {
        let parts = super::parts(&options.part, NclPart::Figures, !options.figure.is_empty());
        let (runs, seconds) = (u64::from(options.kept.how.runs), u64::from(options.seconds));
        let mut cells = Vec::new();
        for part in &parts {
            match part {
                NclPart::Figures => {
                    let wanted = |cell: &Cell| {
                        options.figure.is_empty() || options.figure.contains(&cell.figure.number())
                    };
                    cells.extend(cells::of_figures(runs, seconds).into_iter().filter(wanted));
                }
                NclPart::Grid => cells.extend(cells::of_grid(runs, seconds)),
                NclPart::Model => cells.extend(cells::of_model(runs, seconds)),
                NclPart::Sts => {}
            }
        }
        let whole = options.figure.is_empty() && super::are_all(&parts);
        Plan {
            cells,
            sts: parts.contains(&NclPart::Sts),
            at_once: parts.contains(&NclPart::Model),
            runs,
            seconds,
            whole,
        }
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        let mut jobs = cells::jobs(&self.cells);
        if self.sts {
            jobs.extend(sts::jobs(self.runs, self.seconds));
        }
        if self.at_once {
            jobs.extend(at_once::jobs(self.runs, self.seconds));
        }
        jobs
    }
}

/// Processor time of the runs.
fn time(records: &Records, options: &NclOptions) -> Section {
    let minutes = records.seconds() / 60.0;
    let published = minutes * PUBLISHED_RUNS / f64::from(options.kept.how.runs) * PUBLISHED_SECONDS
        / f64::from(options.seconds);
    Section::of("ncl", "time")
        .told("runs", options.kept.how.runs)
        .told("seconds", options.seconds)
        .told("minutes", format!("{minutes:.1}"))
        .told("hours", format!("{:.1}", published / 60.0))
}

const PUBLISHED_RUNS: f64 = 20.0;
const PUBLISHED_SECONDS: f64 = 2_000.0;

/// All jobs, for samples of the page.
#[cfg(test)]
pub(super) fn sampled(options: &NclOptions) -> Vec<Job<'static>> {
    Box::leak(Box::new(Plan::new(options))).jobs()
}
