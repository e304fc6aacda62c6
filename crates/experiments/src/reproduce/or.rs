//! Opportunistic retransmission: Tables 1 to 15, Figs. 3 to 5, a comparison with Linux 6.1, and experiments beyond the
//! tables.

mod beyond;
mod bounds;
mod cells;
mod figures;
mod formulas;
mod job;
mod linux;
mod notes;
mod speed;

use paceline_sim::reproduce::or::Cell;
use paceline_tcp::DetectionName;

use super::pool::{Job, Records};
use super::report::{Report, Section};
use crate::choices::{DetectionChoice, OrPart};
use crate::error::Result;
use crate::interrupt;
use crate::options::OrOptions;
use cells::CellResult;
use job::{cost, values};

/// Runs what is asked for, prints it beside the published results, and judges the bounds.
pub(crate) fn command(options: &OrOptions) -> Result<()> {
    interrupt::watch()?;
    let plan = Plan::new(options);
    let out = &options.kept.how.out;
    // The speed is measured alone, before all cores are busy.
    let speed = plan.parts.contains(&OrPart::Speed).then(speed::measure).transpose()?;
    let records = super::run_all("or", &options.kept, plan.jobs())?;
    let mut report = Report::default();
    plan.assemble(&records, &mut report)?;
    if plan.parts.contains(&OrPart::Figures) {
        let (sections, bounds) = figures::draw(&records, plan.runs, out)?;
        report.sections.extend(sections);
        report.bounds.extend(bounds);
    }
    if let Some(speed) = speed {
        let whole = plan.is_whole().then(|| records.seconds() * RUNS_OF_A_CELL / plan.runs as f64);
        report.add(speed.report(whole));
    }
    super::conclude("or", &report, plan.is_whole(), &options.kept.how, cells::print)
}

/// What will be run.
struct Plan {
    parts: Vec<OrPart>,
    /// Published cells, computed ones included.
    cells: Vec<Cell>,
    /// True if Table 3 is wanted, which has parameters and no cells.
    parameters: bool,
    runs: u64,
    /// The loss detection of our values.
    detection: DetectionName,
    /// A second loss detection, shown beside it.
    beside: Option<DetectionName>,
}

impl Plan {
    fn new(options: &OrOptions) -> Plan {
        let parts = super::parts(&options.part, OrPart::Tables, !options.table.is_empty());
        let wanted = |cell: &Cell| options.table.is_empty() || options.table.contains(&cell.table);
        let tables = parts.contains(&OrPart::Tables);
        let cells = if tables { Cell::all() } else { Vec::new() };
        let parameters = tables && (options.table.is_empty() || options.table.contains(&3));
        let (detection, beside) = match options.detection {
            DetectionChoice::Fack => (DetectionName::Fack, None),
            DetectionChoice::RackTlp => (DetectionName::RackTlp, None),
            DetectionChoice::Both => (DetectionName::Fack, Some(DetectionName::RackTlp)),
        };
        let cells = cells.into_iter().filter(wanted).collect();
        Plan { parts, cells, parameters, runs: options.kept.how.runs.into(), detection, beside }
    }

    /// True if nothing was left out.
    fn is_whole(&self) -> bool {
        super::are_all(&self.parts) && self.cells.len() == Cell::all().len()
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        let mut jobs = Vec::new();
        for detection in std::iter::once(self.detection).chain(self.beside) {
            jobs.extend(cells::jobs(&self.cells, self.runs, detection));
        }
        for part in &self.parts {
            match part {
                OrPart::Tables => jobs.extend(cells::no_loss_job()),
                OrPart::Linux => jobs.extend(linux::jobs(self.runs)),
                OrPart::Beyond => jobs.extend(beyond::jobs(self.runs)),
                OrPart::Formulas => jobs.extend(formulas::jobs(self.runs)),
                OrPart::Figures => jobs.extend(figures::jobs(self.runs)),
                OrPart::Speed => {}
            }
        }
        jobs
    }

    /// Fills the report from the runs, except for figures and speed.
    fn assemble(&self, records: &Records, report: &mut Report<CellResult>) -> Result<()> {
        report.cells = cells::results(&self.cells, records, self.runs, self.detection, self.beside)?;
        report.bounds = bounds::judge(&report.cells, cells::no_loss_mbps(records));
        if self.parameters {
            report.sections.push(Section::of("or", "table-3").told("runs", self.runs));
        }
        for part in &self.parts {
            match part {
                OrPart::Linux => report.add(linux::report(records, self.runs)),
                OrPart::Beyond => report.add(beyond::report(records, self.runs)),
                OrPart::Formulas => report.add(formulas::report(records, self.runs)),
                OrPart::Tables | OrPart::Figures | OrPart::Speed => {}
            }
        }
        Ok(())
    }
}

/// The bound on the total time is for this number of runs per cell.
const RUNS_OF_A_CELL: f64 = 10.0;

/// All jobs, for samples of the page.
#[cfg(test)]
pub(super) fn sampled(options: &OrOptions) -> Vec<Job<'static>> {
    Box::leak(Box::new(Plan::new(options))).jobs()
}
