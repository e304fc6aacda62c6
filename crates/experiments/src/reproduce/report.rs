//! The output of every reproduction: cells, bounds and further sections.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common::json;
use crate::error::{Error, Result};
use crate::files::write_whole;
use crate::output::say;
use crate::table::new_table;
use crate::units::format_number;

/// The object that `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report<C> {
    /// Published cells with our values.
    pub(super) cells: Vec<C>,
    pub(super) bounds: Vec<Bound>,
    pub(super) sections: Vec<Section>,
}

/// A requirement, and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Bound {
    pub(super) name: String,
    /// The requirement on `measured`.
    pub(super) bound: String,
    pub(super) measured: f64,
    pub(super) holds: bool,
    /// Further explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// A further table or a figure.
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

/// A section and its bounds.
pub(super) type Part = (Section, Vec<Bound>);

/// The texts of a section in sections.toml, by paper and name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    title: String,
    text: String,
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    rows: Vec<Vec<String>>,
    #[serde(default)]
    files: Vec<String>,
}

#[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
static WORDS: LazyLock<BTreeMap<String, BTreeMap<String, Words>>> = LazyLock::new(|| {
    toml::from_str(include_str!("sections.toml")).expect("sections.toml is as described here")
});

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

    /// The measurement must lie within `margin` of the published value, on either side.
    pub(super) fn near(name: impl Into<String>, published: f64, margin: f64, measured: f64) -> Bound {
        let holds = (measured - published).abs() <= margin;
        Bound::new(name, format!("{published} ± {}", format_number(margin)), measured, holds)
    }

    /// More is better: the measurement must reach the bound.
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

impl Section {
    /// Loads the texts of a section from sections.toml. A test finds names that the file does not have.
    pub(super) fn of(paper: &str, name: &'static str) -> Section {
        let words = &WORDS[paper][name];
        Section {
            name,
            title: words.title.clone(),
            text: words.text.clone(),
            columns: words.columns.iter().map(String::as_str).collect(),
            rows: words.rows.iter().map(|row| row.iter().map(|cell| cell.clone().into()).collect()).collect(),
            files: words.files.clone(),
        }
    }

    /// Replaces `{name}` by `value` in the text and the rows.
    pub(super) fn told(mut self, name: &str, value: impl Display) -> Section {
        let (place, value) = (format!("{{{name}}}"), value.to_string());
        self.text = self.text.replace(&place, &value);
        for cell in self.rows.iter_mut().flatten() {
            if cell.as_str() == Some(&place) {
                *cell = value.clone().into();
            }
        }
        self
    }
}

impl<C: Serialize> Report<C> {
    /// Stores the report for docs/evidence/reproduction.md.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        write_whole(path, &(json(self)? + "\n"))
    }
}

impl<C> Default for Report<C> {
    fn default() -> Self {
        Report { cells: Vec::new(), bounds: Vec::new(), sections: Vec::new() }
    }
}

impl<C> Report<C> {
    pub(super) fn add(&mut self, (section, bounds): Part) {
        self.sections.push(section);
        self.bounds.extend(bounds);
    }

    /// Prints sections and bounds on the terminal.
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

    /// Returns an error if `check` is set and a bound is missed.
    pub(super) fn judge(&self, check: bool) -> Result<()> {
        let missed = self.bounds.iter().filter(|bound| !bound.holds).count();
        if check && missed > 0 {
            return Err(Error::failed(format!("{missed} of {} bounds are missed", self.bounds.len())));
        }
        Ok(())
    }
}

/// Rounds to `digits` decimals. Values that are not finite become null.
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

    /// Checks every `Section::of("PAPER", "NAME")` of the sources, and `section("NAME", ...)` of DRWA's downloads.
    #[test]
    fn every_section_has_its_words() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reproduce");
        let papers = WORDS.keys().map(|paper| (paper, folder.join(paper)));
        let mut named = 0;
        for (paper, folder) in papers {
            let parts = std::fs::read_dir(&folder).unwrap().map(|part| part.unwrap().path());
            for file in parts.chain([folder.with_extension("rs")]) {
                let text = std::fs::read_to_string(file).unwrap();
                let names = [format!("Section::of(\"{paper}\", \""), "measured.section(\"".into()];
                for name in names.iter().flat_map(|call| text.split(call).skip(1)) {
                    let name = name.split('"').next().unwrap();
                    assert!(!Section::of(paper, name.to_owned().leak()).title.is_empty());
                    named += 1;
                }
            }
        }
        assert_eq!(named, WORDS.values().map(BTreeMap::len).sum::<usize>(), "none is of no use");
    }

    #[test]
    fn a_missed_bound_is_an_error_only_when_asked() {
        let bounds = vec![Bound::at_most("x", 1.0, 2.0)];
        let report: Report<()> = Report { bounds, ..Report::default() };
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
