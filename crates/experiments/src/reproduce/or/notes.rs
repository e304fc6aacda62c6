//! Explanations of cells that differ from the paper or are not judged. Cells without a known reason are marked as
//! unexplained.

use std::sync::LazyLock;

use serde::Deserialize;

use super::cells::CellResult;

/// A larger difference, in points of utilization, needs an explanation.
const OFF_POINTS: f64 = 10.0;

/// The contents of notes.toml.
#[derive(Deserialize)]
struct Notes {
    note: Vec<Note>,
}

/// An explanation and its cells. An empty list means any.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    tables: Vec<u8>,
    #[serde(default)]
    recoveries: Vec<String>,
    #[serde(default)]
    variants: Vec<String>,
    #[serde(default)]
    congestion: Vec<String>,
    /// Values on the table's axis.
    #[serde(default)]
    places: Vec<f64>,
    side: Side,
    text: String,
}

/// The side of the published value on which our value lies.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Above,
    Below,
}

#[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
static NOTES: LazyLock<Notes> =
    LazyLock::new(|| toml::from_str(include_str!("notes.toml")).expect("notes.toml is as described here"));

const BEYOND_MODEL: &str = "beyond the paper's own model by more than 0.03: reported, not matched";
const NOT_EXPLAINED: &str = "not explained";

/// The note on a measured cell.
pub(super) fn note(cell: &CellResult) -> Option<&'static str> {
    if is_beyond_model(cell) {
        return Some(BEYOND_MODEL);
    }
    if !is_off(cell) {
        return None;
    }
    Some(NOTES.note.iter().find(|note| note.is_about(cell)).map_or(NOT_EXPLAINED, |note| &note.text))
}

/// True for the four cells of the published Table 1 that differ from the paper's own formulas by more than 0.03.
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
        let any = |of: &[String], name: &str| of.is_empty() || of.iter().any(|one| one == name);
        let side = if cell.points() > 0.0 { Side::Above } else { Side::Below };
        self.tables.contains(&cell.table)
            && any(&self.recoveries, &cell.loss_recovery)
            && any(&self.variants, cell.variant)
            && any(&self.congestion, &cell.congestion_control)
            && (self.places.is_empty() || self.places.contains(&cell.axis_value))
            && self.side == side
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::sample;
    use super::*;

    fn cell(table: u8, loss_recovery: &str, variant: &'static str, published: f64, value: f64) -> CellResult {
        let cell = sample(table, variant, "experimental", published, value);
        CellResult { loss_recovery: loss_recovery.into(), ..cell }
    }

    #[test]
    fn only_what_is_off_has_a_note() {
        assert_eq!(note(&cell(10, "BARR", "original", 52.0, 60.0)), None);
        assert!(is_explained(&cell(10, "BARR", "original", 52.0, 65.0)));
        // The note does not apply to cells on the other side.
        assert_eq!(note(&cell(10, "BARR", "original", 65.0, 52.0)), Some(NOT_EXPLAINED));
        assert!(!is_explained(&cell(10, "QARR", "original", 52.0, 65.0)));
        // No note covers both sides of the same cells.
        for value in [85.0, 15.0] {
            assert!(!is_explained(&cell(14, "QARR", "optimized", 50.0, value)));
        }
    }

    #[test]
    fn four_cells_are_beyond_the_model() {
        let at = |recovery: &str, burst| CellResult {
            axis_value: burst,
            ..cell(1, recovery, "original", 0.5, 0.5)
        };
        let all = ["RH", "PRR", "QARR", "BARR"]
            .into_iter()
            .flat_map(|name| [10.0, 50.0, 100.0].map(|n| at(name, n)));
        assert_eq!(all.filter(is_beyond_model).count(), 4);
    }
}
