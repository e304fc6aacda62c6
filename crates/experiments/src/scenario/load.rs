//! Loads variants from a file. Every error names file and line, and says what to write instead.

use std::path::{Path, PathBuf};

use paceline_service::policy;
use serde::Deserialize;
use toml::Table;

use super::Scenario;
use super::check::check;
use super::vary::{self, Variant, Vary};
use crate::error::{Error, Result};
use crate::toml_text::{explain, line_of};
use crate::units::Time;

/// A scenario file with all its cells.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioFile {
    /// The folder of trace files.
    pub(crate) folder: PathBuf,
    /// The scenario as written, before any variation.
    pub(crate) base: Scenario,
    pub(crate) variants: Vec<Variant>,
}

/// Reads and checks `path`; `duration` overrides the file's.
pub(crate) fn load_file(path: &Path, duration: Option<Time>) -> Result<ScenarioFile> {
    parse(path, &read(path)?, duration)
}

/// Like [`load_file`], but from a text. `path` is for messages and for finding traces.
pub(crate) fn parse(path: &Path, text: &str, duration: Option<Time>) -> Result<ScenarioFile> {
    parse_varied(path, text, duration, &[])
}

/// Like [`load_file`], with further dimensions, which change faster than those of the file.
pub(crate) fn load_varied(path: &Path, duration: Option<Time>, further: &[Vary]) -> Result<ScenarioFile> {
    parse_varied(path, &read(path)?, duration, further)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        Error::input(format!(
            "cannot read scenario {}: {error}; give the path of a .toml file",
            path.display()
        ))
    })
}

/// Like [`load_varied`], but from a text.
pub(crate) fn parse_varied(
    path: &Path,
    text: &str,
    duration: Option<Time>,
    further: &[Vary],
) -> Result<ScenarioFile> {
    let at = |line: usize, message: String| Error::input(format!("{}:{line}: {message}", path.display()));
    let typed = |error: toml::de::Error| at(line_of(text, error.span()), explain(error.message()));
    let base: Scenario = toml::from_str(text).map_err(typed)?;
    // `Scenario` keeps the gateway's keys as a table. Parsing them here finds errors with their lines.
    toml::from_str::<GatewayKeys>(text).map_err(typed)?;
    let mut document: Table = toml::from_str(text).map_err(typed)?;
    if let Some(duration) = duration {
        document.insert("duration".into(), duration.to_string().into());
    }
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let dimensions: Vec<Vary> = base.vary.iter().chain(further).cloned().collect();
    let cells = vary::expand(&document, &dimensions).map_err(|(index, why)| {
        match index.checked_sub(base.vary.len()) {
            None => at(vary_line(text, index), why),
            Some(_) => Error::input(format!("--vary: {why}")),
        }
    })?;
    let mut variants: Vec<Variant> = Vec::with_capacity(cells.len());
    for (name, table) in cells {
        let settings = settings(&table);
        let scenario: Scenario = table.try_into().map_err(|error: toml::de::Error| {
            at(vary_line(text, 0), format!("variant `{name}`: {}", explain(error.message())))
        })?;
        check(&scenario, &folder)
            .map_err(|(key, why)| at(key_line(text, key), format!("variant `{name}`: {why}")))?;
        if variants.iter().any(|other| other.name == name) {
            return Err(at(
                vary_line(text, 0),
                format!("two variants are named `{name}`; give each its own name"),
            ));
        }
        variants.push(Variant { name, scenario, settings });
    }
    Ok(ScenarioFile { folder, base, variants })
}

fn settings(table: &Table) -> String {
    let mut table = table.clone();
    for key in ["title", "runs", "seed", "bounds"] {
        table.remove(key);
    }
    toml::to_string(&table).unwrap_or_default()
}

#[derive(Deserialize)]
struct GatewayKeys {
    #[serde(default, rename = "gateway")]
    _gateway: Option<ConfigKeys>,
}

#[derive(Deserialize)]
struct ConfigKeys {
    #[serde(default, rename = "config")]
    _config: Option<policy::File>,
}

/// The line of the n-th `[[vary]]`.
fn vary_line(text: &str, index: usize) -> usize {
    let mut blocks = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("[[vary]]"));
    blocks.nth(index).map_or(1, |(line, _)| line + 1)
}

/// Returns the line of a dotted key in the text, or of the longest part of the key that is there.
fn key_line(text: &str, key: &str) -> usize {
    let Ok(table) = toml::de::DeTable::parse(text) else {
        return 1;
    };
    let mut start = 0;
    let mut here = Some(table.get_ref());
    for part in key.split('.') {
        let Some((found, value)) = here.and_then(|table| table.get_key_value(part)) else {
            break;
        };
        start = found.span().start;
        here = value.get_ref().as_table();
    }
    line_of(text, Some(start..start))
}

#[cfg(test)]
pub(crate) fn parse_text(text: &str) -> Result<ScenarioFile> {
    parse(Path::new("x.toml"), text, None)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
