//! What is known of cells that are off, or that are not judged. Where nobody knows why, it says so.

use super::cells::CellResult;

/// Off by so many points of utilisation wants an explanation.
const OFF_POINTS: f64 = 10.0;

/// An explanation, and the cells that it is about.
struct Note {
    tables: &'static [u8],
    /// Any, when empty.
    recoveries: &'static [&'static str],
    variants: &'static [&'static str],
    congestion: &'static [&'static str],
    side: Side,
    text: &'static str,
}

/// On which side of the published cell ours lies.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Above,
    Below,
}

/// The first that fits is it.
const NOTES: &[Note] = &[];

const BEYOND_MODEL: &str = "beyond the paper's own model by more than 0.03: reported, not matched";
const NOT_EXPLAINED: &str = "not explained";

/// What there is to say of a measured cell.
pub(super) fn note(cell: &CellResult) -> Option<&'static str> {
    if is_beyond_model(cell) {
        return Some(BEYOND_MODEL);
    }
    if !is_off(cell) {
        return None;
    }
    Some(NOTES.iter().find(|note| note.is_about(cell)).map_or(NOT_EXPLAINED, |note| note.text))
}

/// The four cells of the published Table 1 that differ from the paper's own formulas by more than 0.03.
pub(super) fn is_beyond_model(cell: &CellResult) -> bool {
    let place = (cell.loss_recovery.as_str(), cell.axis_value as u32);
    cell.table == 1
        && cell.variant == "original"
        && cell.kind == "experimental"
        && matches!(place, ("RH" | "QARR" | "BARR", 100) | ("BARR", 50))
}

pub(super) fn is_off(cell: &CellResult) -> bool {
    cell.points().abs() > OFF_POINTS
}

pub(super) fn is_explained(cell: &CellResult) -> bool {
    note(cell).is_some_and(|text| text != NOT_EXPLAINED)
}

impl Note {
    fn is_about(&self, cell: &CellResult) -> bool {
        let any = |of: &[&str], name: &str| of.is_empty() || of.contains(&name);
        let side = if cell.points() > 0.0 { Side::Above } else { Side::Below };
        self.tables.contains(&cell.table)
            && any(self.recoveries, &cell.loss_recovery)
            && any(self.variants, cell.variant)
            && any(self.congestion, &cell.congestion_control)
            && self.side == side
    }
}
