//! The effect of each of our changes to Hack 1, added alone to the printed form.

use paceline_sim::reproduce::or::{Cell, Variant};
use paceline_tcp::Hack1Changes;
use serde_json::Value;

use super::tables::{case, hack1, name};
use super::{Case, GOODPUT, Measured, TIMEOUTS};
use crate::reproduce::report::{Section, number};

/// A published cell with the forms of Hack 1: as printed, with one change each, and ours with all changes.
pub(super) struct Row {
    pub(super) name: String,
    cell: Cell,
    pub(super) cases: Vec<Case>,
}

const FORMS: [(&str, Hack1Changes); 4] = [
    ("hack1-text", Hack1Changes::NONE),
    ("hack1-text, at the third", Hack1Changes { at_third: true, ..Hack1Changes::NONE }),
    ("hack1-text, marks", Hack1Changes { marks: true, ..Hack1Changes::NONE }),
    ("hack1-text, holds", Hack1Changes { holds: true, ..Hack1Changes::NONE }),
];

/// The cells of Tables 14 and 15.
pub(super) fn all() -> Vec<Row> {
    Cell::all().into_iter().filter(|cell| cell.variant == Variant::OptimizedHack1).map(row).collect()
}

fn row(cell: Cell) -> Row {
    let mut cases: Vec<Case> = FORMS.iter().map(|(form, changes)| hack1(&cell, form, *changes)).collect();
    cases.push(case(&cell, "hack1", None, |scenario| scenario));
    Row { name: format!("what brings what: {}", name(&cell)), cell, cases }
}

impl Row {
    fn points(&self, mbps: f64, digits: i32) -> Value {
        number(mbps / self.cell.setup().mbps * 100.0, digits)
    }

    /// Goodput as printed, then the increase of each other form, then the timeouts of all forms.
    fn to_row(&self, measured: &Measured<'_>) -> Vec<Value> {
        let goodput = |case| measured.sample(case, GOODPUT);
        let printed = goodput(&self.cases[0]);
        let mut row = vec![
            name(&self.cell).into(),
            number(self.cell.published_percent.unwrap_or(f64::NAN), 1),
            self.points(printed.mean(), 1),
        ];
        for case in &self.cases[1..] {
            let more = goodput(case).minus(&printed);
            row.extend([self.points(more.mean, 1), self.points(more.half_width, 1)]);
        }
        row.extend(self.cases.iter().map(|case| number(measured.sample(case, TIMEOUTS).mean(), 1)));
        row
    }
}

pub(super) fn report(rows: &[Row], measured: &Measured<'_>) -> Section {
    let rows = rows.iter().map(|row| row.to_row(measured)).collect();
    Section { rows, ..Section::of("printed", "printed-hack1-changes") }
}
