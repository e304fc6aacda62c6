//! What every reproduction yields: cells, bounds, and sections of whatever else there is to show.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::files::write_whole;
use crate::output::say;
use crate::table::new_table;
use crate::units::tidy;

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report<C> {
    /// Published cells with ours beside them.
    pub(super) cells: Vec<C>,
    pub(super) bounds: Vec<Bound>,
    pub(super) sections: Vec<Section>,
}

/// Something that is wanted, and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Bound {
    pub(super) name: String,
    /// What is wanted of `measured`.
    pub(super) bound: String,
    pub(super) measured: f64,
    pub(super) holds: bool,
    /// What else there is to know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// A table beside the published cells, or a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) title: String,
    /// How it was made, and what it shows.
    pub(super) text: String,
    pub(super) columns: Vec<&'static str>,
    /// Numbers and texts, one for each column.
    pub(super) rows: Vec<Vec<Value>>,
    /// Plots and series in the folder of results.
    pub(super) files: Vec<String>,
}

impl Bound {
    pub(super) fn at_most(name: impl Into<String>, bound: f64, measured: f64) -> Bound {
        Bound::new(name, format!("<= {bound}"), measured, measured <= bound)
    }

    pub(super) fn at_least(name: impl Into<String>, bound: f64, measured: f64) -> Bound {
        Bound::new(name, format!(">= {bound}"), measured, measured >= bound)
    }

    pub(super) fn between(name: impl Into<String>, low: f64, high: f64, measured: f64) -> Bound {
        Bound::new(name, format!("{low} to {high}"), measured, (low..=high).contains(&measured))
    }

    /// A published value: ours lies within `margin` on either side of it.
    pub(super) fn near(name: impl Into<String>, published: f64, margin: f64, measured: f64) -> Bound {
        let holds = (measured - published).abs() <= margin;
        Bound::new(name, format!("{published} ± {}", tidy(margin)), measured, holds)
    }

    /// More is better, and what was published is only to be exceeded.
    pub(super) fn exceeds(name: impl Into<String>, bound: f64, measured: f64) -> Bound {
        Bound::new(name, format!("exceeds {bound}"), measured, measured >= bound)
    }

    pub(super) fn new(name: impl Into<String>, bound: String, measured: f64, holds: bool) -> Bound {
        Bound { name: name.into(), bound, measured, holds, note: None }
    }

    pub(super) fn with_note(self, note: impl Into<String>) -> Bound {
        Bound { note: Some(note.into()), ..self }
    }
}

impl<C: Serialize> Report<C> {
    /// As one JSON object.
    pub(super) fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|error| Error::failed(error.to_string()))
    }

    /// Keeps it for docs/evidence/reproduction.md.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        write_whole(path, &(self.to_json()? + "\n"))
    }
}

impl<C> Report<C> {
    /// Sections and bounds for the terminal.
    pub(super) fn print_rest(&self, folder: &Path) {
        for section in &self.sections {
            say!("{}\n{}", section.title, section.text);
            if !section.rows.is_empty() {
                let mut table = new_table(1, &section.columns);
                section.rows.iter().for_each(|row| {
                    table.add_row(row.iter().map(shown));
                });
                say!("{table}");
            }
            if !section.files.is_empty() {
                say!("Files in {}: {}", folder.display(), section.files.join(", "));
            }
            say!();
        }
        let mut table = new_table(1, &["bound on", "measured", "wanted", "", ""]);
        for bound in &self.bounds {
            table.add_row([
                bound.name.clone(),
                format!("{:.4}", bound.measured),
                bound.bound.clone(),
                if bound.holds { "ok" } else { "MISSED" }.to_string(),
                bound.note.clone().unwrap_or_default(),
            ]);
        }
        say!("{table}");
    }

    /// With `check`, a bound that is missed is an error.
    pub(super) fn judge(&self, check: bool) -> Result<()> {
        let missed = self.bounds.iter().filter(|bound| !bound.holds).count();
        if check && missed > 0 {
            return Err(Error::failed(format!("{missed} of {} bounds are missed", self.bounds.len())));
        }
        Ok(())
    }
}

/// A number with no more than it needs.
pub(super) fn number(value: f64, digits: i32) -> Value {
    let scale = 10f64.powi(digits);
    serde_json::Number::from_f64((value * scale).round() / scale).map_or(Value::Null, Value::Number)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_may_be_missing() {
        assert_eq!(number(1.23456, 2).to_string(), "1.23");
        assert_eq!(number(f64::INFINITY, 2), Value::Null);
        assert_eq!(shown(&Value::Null), "-");
    }

    #[test]
    fn a_missed_bound_is_an_error_only_when_asked() {
        let bounds = vec![Bound::at_most("x", 1.0, 2.0)];
        let report: Report<()> = Report { cells: Vec::new(), bounds, sections: Vec::new() };
        assert!(report.judge(false).is_ok() && report.judge(true).is_err());
        assert!(!Bound::at_least("x", 1.0, f64::NAN).holds);
    }

    #[test]
    fn a_published_value_has_two_sides() {
        let of = |measured| Bound::near("x", 2.6, 0.6, measured).holds;
        assert_eq!([1.9, 2.1, 3.1, 5.5, f64::NAN].map(of), [false, true, true, false, false]);
        assert_eq!(Bound::exceeds("x", 2.0, 5.5).bound, "exceeds 2");
    }
}
