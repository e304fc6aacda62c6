//! Cells of opportunistic retransmission with QARR, BARR and Hack 1 in both forms.

use paceline_sim::Scenario;
use paceline_sim::reproduce::or::{Cell, SenderSetup, Variant};
use paceline_sim::scenario::{TcpFlow, Transport};
use paceline_tcp::{Config, DetectionName, Hack1Changes, ReductionName};

use super::{Case, GOODPUT, Measured, PAIR_COLUMNS};
use crate::reproduce::report::{Bound, Section, number};

/// A published cell and its two forms.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) cell: Cell,
    pub(super) printed: Case,
    pub(super) improved: Case,
}

/// A larger difference, in points of utilization, means that the cell differs.
pub(super) const OFF_POINTS: f64 = 10.0;

/// Tables 6, 7, 10, 11, 14 and 15, original variant, and 14 and 15 with Hack 1.
pub(super) fn all() -> Vec<Row> {
    Cell::all().into_iter().filter(is_wanted).map(row).collect()
}

pub(super) fn is_wanted(cell: &Cell) -> bool {
    let adaptive = matches!(cell.loss_recovery.as_str(), "QARR" | "BARR");
    let table = matches!(cell.table, 6 | 7 | 10 | 11 | 14 | 15);
    adaptive && table && matches!(cell.variant, Variant::Original | Variant::OptimizedHack1)
}

fn row(cell: Cell) -> Row {
    let name = name(&cell);
    let (printed, improved) = match cell.variant {
        Variant::OptimizedHack1 => {
            (hack1(&cell, "hack1-text", Hack1Changes::NONE), case(&cell, "hack1", None, |scenario| scenario))
        }
        _ => (
            case(&cell, "as printed", Some(as_printed(&cell)), |scenario| scenario),
            case(&cell, "ours", None, |scenario| scenario),
        ),
    };
    Row { name, cell, printed, improved }
}

pub(super) fn name(cell: &Cell) -> String {
    let Cell { table, congestion_control, loss_recovery, axis_value, .. } = cell;
    format!("Table {table} {congestion_control} {loss_recovery} {} {axis_value}", cell.variant.name())
}

pub(super) fn as_printed(cell: &Cell) -> ReductionName {
    if cell.loss_recovery == "QARR" { ReductionName::QarrText } else { ReductionName::BarrText }
}

/// Builds a cell with another rate reduction and a further change.
pub(super) fn case(
    cell: &Cell,
    form: &str,
    reduction: Option<ReductionName>,
    change: impl Fn(Scenario) -> Scenario + Send + Sync + 'static,
) -> Case {
    let (setup, of_cell) = (cell.setup(), SenderSetup::of(cell, DetectionName::Fack).unwrap_or_default());
    let sender = SenderSetup { reduction: reduction.unwrap_or(of_cell.reduction), ..of_cell };
    Case::new(format!("{}, {form}", name(cell)), setup.mbps, move |seed| {
        change(setup.scenario(&sender, seed))
    })
}

/// Builds a cell with Hack 1 as printed and some of our changes to it.
pub(super) fn hack1(cell: &Cell, form: &str, changes: Hack1Changes) -> Case {
    case(cell, form, None, move |scenario| {
        with_server(scenario, |server| (server.hack1_text, server.hack1_changes) = (true, changes))
    })
}

pub(super) fn with_server(scenario: Scenario, change: impl Fn(&mut Config)) -> Scenario {
    with_tcp(scenario, |tcp| change(&mut tcp.server))
}

pub(super) fn with_client(scenario: Scenario, change: impl Fn(&mut Config)) -> Scenario {
    with_tcp(scenario, |tcp| change(&mut tcp.client))
}

fn with_tcp(mut scenario: Scenario, change: impl Fn(&mut TcpFlow)) -> Scenario {
    for flow in &mut scenario.flows {
        if let Transport::Tcp(tcp) = &mut flow.transport {
            change(tcp);
        }
    }
    scenario
}

impl Row {
    fn percent(&self, measured: &Measured<'_>, case: &Case) -> f64 {
        measured.sample(case, GOODPUT).mean() / self.cell.setup().mbps * 100.0
    }

    fn is_off(&self, measured: &Measured<'_>, case: &Case) -> bool {
        let published = self.cell.published_percent.unwrap_or(f64::NAN);
        (self.percent(measured, case) - published).abs() > OFF_POINTS
    }
}

/// Returns a section for each algorithm.
pub(super) fn report(rows: &[Row], measured: &Measured<'_>) -> Vec<(Section, Vec<Bound>)> {
    type IsOne = fn(&Cell) -> bool;
    let of: [(&'static str, &str, IsOne); 3] = [
        ("printed-qarr", "QARR", |cell| cell.variant == Variant::Original && cell.loss_recovery == "QARR"),
        ("printed-barr", "BARR", |cell| cell.variant == Variant::Original && cell.loss_recovery == "BARR"),
        ("printed-hack1", "Hack 1", |cell| cell.variant == Variant::OptimizedHack1),
    ];
    let section = |(name, title, is_one): (&'static str, &str, IsOne)| {
        let own: Vec<&Row> = rows.iter().filter(|row| is_one(&row.cell)).collect();
        (!own.is_empty()).then(|| of_algorithm(name, title, &own, measured))
    };
    of.into_iter().filter_map(section).collect()
}

fn of_algorithm(
    name: &'static str,
    title: &str,
    rows: &[&Row],
    measured: &Measured<'_>,
) -> (Section, Vec<Bound>) {
    let off = |form: fn(&Row) -> &Case| rows.iter().filter(|row| row.is_off(measured, form(row))).count();
    let (printed, improved) = (off(|row| &row.printed), off(|row| &row.improved));
    let to_row = |row: &&Row| {
        let percent = |case| number(row.percent(measured, case), 1);
        let mut all = vec![
            row.name.clone().into(),
            number(row.cell.published_percent.unwrap_or(f64::NAN), 1),
            percent(&row.printed),
            percent(&row.improved),
        ];
        all.extend(measured.pair(&row.printed, &row.improved));
        all
    };
    let mut columns = vec!["cell", "published, %", "as printed, %", "ours, %"];
    columns.extend(PAIR_COLUMNS);
    let section = Section {
        name,
        title: format!("{title} as printed, beside ours"),
        text: format!(
            "FACK, as in the tables; {} runs a cell, halves of 95 % intervals. Of {} cells {printed} are more than 10 points off as \
             printed, {improved} in our form.",
            measured.runs,
            rows.len()
        ),
        columns,
        rows: rows.iter().map(to_row).collect(),
        files: Vec::new(),
    };
    let worst = rows.iter().map(|row| {
        let mean = |case| measured.sample(case, GOODPUT).mean();
        mean(&row.improved) / mean(&row.printed)
    });
    let bounds = vec![
        Bound::at_least(
            format!("{title}: ours over as printed, Mbit/s, least"),
            0.97,
            worst.fold(f64::INFINITY, f64::min),
        )
        .with_note("our choice of a bound: what we recommend is nowhere worse but by noise"),
        Bound::at_most(format!("{title} as printed: cells more than 10 points off"), 0.0, printed as f64)
            .with_note("what brings them near stands in the table of other readings"),
    ];
    (section, bounds)
}
