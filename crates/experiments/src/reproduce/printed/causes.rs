//! Causes of differing cells: applies our changes to QARR, BARR and the path one at a time.

use paceline_path::LossScope;
use paceline_sim::reproduce::or::{Cell, Variant};
use paceline_tcp::{ReductionName, SendBufferName};

use super::tables::{case, name, with_server};
use super::{Case, GOODPUT, Measured, TIMEOUTS};
use crate::reproduce::report::{Section, number};

/// A published cell in several forms.
pub(super) struct Row {
    pub(super) name: String,
    cell: Cell,
    pub(super) cases: Vec<Case>,
}

/// A table, a congestion control, a value of its axis, and the variant. These are the cells where the printed forms or
/// ours differ most, and some where they do not.
const CELLS: [(u8, &str, f64, Variant); 7] = [
    (6, "CUBIC", 0.1, Variant::Original),
    (7, "Vegas", 200.0, Variant::Original),
    (10, "CUBIC", 0.1, Variant::Original),
    (11, "Vegas", 200.0, Variant::Original),
    (14, "CUBIC", 100.0, Variant::Original),
    (14, "CUBIC", 50.0, Variant::Optimized),
    (14, "CUBIC", 100.0, Variant::Optimized),
];

pub(super) fn all() -> Vec<Row> {
    let is_one = |cell: &Cell| {
        let place = (cell.table, cell.congestion_control.as_str(), cell.axis_value, cell.variant);
        matches!(cell.loss_recovery.as_str(), "QARR" | "BARR") && CELLS.contains(&place)
    };
    Cell::all().into_iter().filter(is_one).map(row).collect()
}

fn row(cell: Cell) -> Row {
    use ReductionName::{
        Barr, BarrText, BarrTextDelivered, BarrTextHighest, BarrTextKeeps, BarrTextRecord, BarrTextSlowStart,
        Qarr, QarrText, QarrTextRaises, QarrTextRecord, QarrTextRound, QarrTextShortest,
    };
    let forms: &[ReductionName] = match cell.loss_recovery.as_str() {
        "QARR" => &[QarrText, QarrTextRaises, QarrTextRecord, QarrTextRound, QarrTextShortest, Qarr],
        _ => &[
            BarrText, BarrTextDelivered, BarrTextHighest, BarrTextRecord, BarrTextSlowStart, BarrTextKeeps,
            Barr,
        ],
    };
    let as_named = |form: &ReductionName| case(&cell, form.as_str(), Some(*form), |scenario| scenario);
    let mut cases: Vec<Case> = forms.iter().map(as_named).collect();
    if cell.variant == Variant::Original {
        // Shows the effect of the application's stall (Section V).
        cases.push(case(&cell, "as printed, factor 3", Some(forms[0]), |scenario| {
            with_server(scenario, |server| server.send_buffer = SendBufferName::Refined)
        }));
    } else {
        // Shows the effect of the timeouts (Section VIII).
        cases.push(case(&cell, "ours, repairs not lost", None, |mut scenario| {
            scenario.path.iter_mut().for_each(|link| link.down.loss_on = LossScope::Originals);
            scenario
        }));
        cases.push(case(&cell, "ours, hack1-text", None, |scenario| {
            with_server(scenario, |server| server.hack1_text = true)
        }));
    }
    Row { name: format!("why: {}", name(&cell)), cell, cases }
}

pub(super) fn report(rows: &[Row], measured: &Measured<'_>) -> Section {
    let mut all = Vec::new();
    for row in rows {
        for case in &row.cases {
            let goodput = measured.sample(case, GOODPUT).estimate();
            let points = |mbps: f64| mbps / row.cell.setup().mbps * 100.0;
            let published = row.cell.published_percent.unwrap_or(f64::NAN);
            all.push(vec![
                case.name.clone().into(),
                number(published, 1),
                number(points(goodput.mean), 1),
                number(points(goodput.half_width), 1),
                number(points(goodput.mean) - published, 1),
                number(measured.sample(case, TIMEOUTS).mean(), 1),
            ]);
        }
    }
    Section { rows: all, ..Section::of("printed", "printed-causes") }
}
