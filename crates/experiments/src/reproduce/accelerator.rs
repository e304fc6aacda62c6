//! The mobile accelerator (W. S. Wan, CUHK 2010): its figures and tables, the bounds of its scenarios, and the
//! virtual-time lab. Each is compared with the simulator, which runs the gateway that also handles live packets.

mod agreement;
mod bounds;
mod cells;
mod figures;
mod published;
mod scenarios;
mod series;

use crate::choices::AcceleratorPart;
use crate::common::make_folder;
use crate::error::Result;
use crate::interrupt;
use crate::options::AcceleratorOptions;
use crate::output::say;
use crate::table::{Column, table_of};

use super::report::Report;
use cells::Cell;
use scenarios::{Outcomes, Wanted};

/// Runs what is asked for, prints it beside the published results, and judges the bounds.
pub(crate) fn command(options: &AcceleratorOptions) -> Result<()> {
    interrupt::watch()?;
    let plan = Plan::new(options);
    make_folder(&options.how.out)?;
    let outcomes = scenarios::run(&plan.wanted(), options)?;
    let report = plan.report(&outcomes, options)?;
    super::conclude("accelerator", &report, plan.is_whole(), &options.how, print_cells)
}

/// What will be shown.
struct Plan {
    parts: Vec<AcceleratorPart>,
    figures: Vec<&'static figures::Figure>,
    cells: Vec<cells::Published>,
    whole: bool,
}

impl Plan {
    fn new(options: &AcceleratorOptions) -> Plan {
        let some = !options.figure.is_empty() || !options.table.is_empty();
        let parts = super::parts(&options.part, AcceleratorPart::Figures, some);
        let figures = parts.contains(&AcceleratorPart::Figures);
        let of_figure = |figure: &&figures::Figure| {
            figures && (!some || figure.numbers.iter().any(|number| options.figure.contains(number)))
        };
        let of_cell = |cell: &cells::Published| {
            let by_figure = cell.figure.is_some_and(|number| options.figure.contains(&number));
            let by_table = cell.table_number().is_some_and(|number| options.table.contains(&number));
            figures && (!some || by_figure || by_table)
        };
        Plan {
            whole: !some && super::are_all(&parts),
            figures: published::PAPER.figures.iter().filter(of_figure).collect(),
            cells: published::published().into_iter().filter(of_cell).collect(),
            parts,
        }
    }

    fn is_whole(&self) -> bool {
        self.whole
    }

    fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        self.figures.iter().for_each(|figure| figure.want(&mut wanted));
        self.cells.iter().for_each(|cell| wanted.add(cell.scenario, cell.variant));
        if self.parts.contains(&AcceleratorPart::Bounds) || self.parts.contains(&AcceleratorPart::Lab) {
            wanted.add_judged();
        }
        wanted
    }

    fn report(&self, outcomes: &Outcomes, options: &AcceleratorOptions) -> Result<Report<Cell>> {
        let cells = cells::measured(&self.cells, outcomes)?;
        let mut report = Report { cells, ..Report::default() };
        for figure in &self.figures {
            report.sections.push(figure.section(outcomes, &options.how.out)?);
        }
        if self.parts.contains(&AcceleratorPart::Bounds) {
            report.add(bounds::judge(outcomes)?);
        }
        if self.parts.contains(&AcceleratorPart::Lab) {
            report.add(agreement::compare(outcomes)?);
        }
        Ok(report)
    }
}

fn print_cells(cells: &[Cell]) {
    if cells.is_empty() {
        return;
    }
    say!("{}\n", table_of(4, &COLUMNS, cells));
}

const COLUMNS: [Column<Cell>; 9] = [
    ("", |cell| cell.place()),
    ("case", |cell| cell.case.clone()),
    ("metric", |cell| cell.metric.to_string()),
    ("accelerator", |cell| cell.accelerator.to_string()),
    ("published", |cell| cell.published.map_or("-".into(), |value| format!("{value}"))),
    ("ours", |cell| cell.value.map_or("-".into(), |value| format!("{value:.3}"))),
    ("95 %", |cell| cell.ci95.map_or("-".into(), |width| format!("± {width:.3}"))),
    ("runs", |cell| cell.runs.to_string()),
    ("note", |cell| cell.note.to_string()),
];
