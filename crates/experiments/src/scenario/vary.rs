//! The variations of a scenario: every combination of the values of all `[[vary]]` blocks is a variant.

use paceline_judge::is_named;
use serde::Deserialize;
use toml::{Table, Value};

use super::Scenario;

/// One dimension. Either `key` and `values`, or `cases` that each set several keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Vary {
    pub(crate) key: Option<String>,
    pub(crate) values: Vec<Value>,
    /// Names of the values; `label=value` if absent.
    pub(crate) names: Vec<String>,
    /// Label of the key; its last part if absent.
    pub(crate) label: Option<String>,
    pub(crate) cases: Vec<Case>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) set: Table,
}

/// A cell of the experiment.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// Names of the parts, joined by commas.
    pub(crate) name: String,
    pub(crate) scenario: Scenario,
    /// The settings that determine a run's result, as text. Excludes the number of runs and the bounds.
    pub(crate) settings: String,
}

impl Variant {
    /// True if the name contains every comma-separated part of `selection`.
    pub(crate) fn matches(&self, selection: &str) -> bool {
        is_named(&self.name, selection)
    }

    /// The name as a part of a file name.
    pub(crate) fn file_stem(&self) -> String {
        self.name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_.=%".contains(c) { c } else { '_' })
            .collect()
    }
}

/// Our choice: this many runs take days. A short file can name more variants than fit any memory.
const VARIANTS_MAX: usize = 10_000;

/// Returns every combination; the last dimension changes fastest. Without `[[vary]]` there is one variant, called
/// `base`.
///
/// # Errors
/// The index of the faulty `[[vary]]` block, and its fault.
pub(super) fn expand(document: &Table, vary: &[Vary]) -> Result<Vec<(String, Table)>, (usize, String)> {
    let mut base = document.clone();
    base.remove("vary");
    let mut cells = vec![(String::new(), base)];
    for (index, dimension) in vary.iter().enumerate() {
        let cases = dimension.cases().map_err(|why| (index, why))?;
        if cells.len() * cases.len() > VARIANTS_MAX {
            return Err((index, format!("more than {VARIANTS_MAX} variants; vary less in one file")));
        }
        let mut next = Vec::with_capacity(cells.len() * cases.len());
        for (name, table) in &cells {
            for case in &cases {
                let mut table = table.clone();
                for (key, value) in &case.set {
                    set(&mut table, key, value).map_err(|why| (index, why))?;
                }
                let name = if name.is_empty() { case.name.clone() } else { format!("{name},{}", case.name) };
                next.push((name, table));
            }
        }
        cells = next;
    }
    if vary.is_empty() {
        cells[0].0 = "base".into();
    }
    Ok(cells)
}

impl Vary {
    fn cases(&self) -> Result<Vec<Case>, String> {
        let Some(key) = &self.key else {
            return match (self.cases.is_empty(), self.values.is_empty()) {
                (false, true) => Ok(self.cases.clone()),
                _ => Err("[[vary]] needs `key` with `values`, or [[vary.cases]]".into()),
            };
        };
        if !self.cases.is_empty() || self.values.is_empty() {
            return Err("[[vary]] needs either `key` with `values`, or [[vary.cases]], not both".into());
        }
        if !self.names.is_empty() && self.names.len() != self.values.len() {
            return Err(format!(
                "{} names for {} values: give one each",
                self.names.len(),
                self.values.len()
            ));
        }
        let label = self.label.as_deref().unwrap_or_else(|| key.rsplit('.').next().unwrap_or(key));
        let case = |(index, value): (usize, &Value)| Case {
            name: self.names.get(index).cloned().unwrap_or_else(|| format!("{label}={}", plain(value))),
            set: Table::from_iter([(key.clone(), value.clone())]),
        };
        Ok(self.values.iter().enumerate().map(case).collect())
    }
}

/// Sets the dotted `key` to `value`. `flows.0` is the first flow, `flows.*` all of them.
fn set(table: &mut Table, key: &str, value: &Value) -> Result<(), String> {
    let mut root = Value::Table(std::mem::take(table));
    let parts: Vec<&str> = key.split('.').collect();
    let outcome = set_in(&mut root, &parts, value, key);
    if let Value::Table(inner) = root {
        *table = inner;
    }
    outcome
}

fn set_in(node: &mut Value, parts: &[&str], value: &Value, key: &str) -> Result<(), String> {
    let Some((first, rest)) = parts.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    match node {
        Value::Table(table) => {
            let inner = table.entry(first.to_string()).or_insert_with(|| Value::Table(Table::new()));
            set_in(inner, rest, value, key)
        }
        Value::Array(array) if *first == "*" => {
            array.iter_mut().try_for_each(|inner| set_in(inner, rest, value, key))
        }
        Value::Array(array) => {
            let length = array.len();
            let inner = first.parse::<usize>().ok().and_then(|index| array.get_mut(index));
            let inner =
                inner.ok_or_else(|| format!("`{key}`: there are {length} entries, counted from 0"))?;
            set_in(inner, rest, value, key)
        }
        _ => Err(format!("`{key}`: `{first}` is inside a plain value")),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand_text(text: &str) -> Result<Vec<(String, Table)>, (usize, String)> {
        let table: Table = toml::from_str(text).unwrap();
        let vary: Vec<Vary> = table.get("vary").map(|v| v.clone().try_into().unwrap()).unwrap_or_default();
        expand(&table, &vary)
    }

    #[test]
    fn every_combination_is_a_variant() {
        let cells = expand_text(
            "[radio.down]\nloss=\"0%\"\n[[flows]]\nname=\"a\"\n\
             [[vary]]\nkey=\"gateway.profile\"\nvalues=[\"off\",\"full\"]\nnames=[\"unaccelerated\",\"accelerated\"]\n\
             [[vary]]\nkey=\"radio.down.loss\"\nvalues=[\"0.1%\",\"1%\"]\n",
        )
        .unwrap();
        let names: Vec<&str> = cells.iter().map(|c| c.0.as_str()).collect();
        assert_eq!(
            names,
            [
                "unaccelerated,loss=0.1%", "unaccelerated,loss=1%", "accelerated,loss=0.1%",
                "accelerated,loss=1%"
            ]
        );
        assert_eq!(cells[3].1["radio"]["down"]["loss"].as_str(), Some("1%"));
        assert_eq!(cells[3].1["gateway"]["profile"].as_str(), Some("full"));
    }

    #[test]
    fn a_case_sets_several_keys_and_all_flows() {
        let cells = expand_text(
            "[[flows]]\nname=\"a\"\n[[flows]]\nname=\"b\"\n[[vary]]\n[[vary.cases]]\nname=\"x\"\n\
             set={\"flows.*.size\"=\"1mb\",\"flows.1.weight\"=2}\n",
        )
        .unwrap();
        assert_eq!(cells[0].1["flows"][0]["size"].as_str(), Some("1mb"));
        assert_eq!(cells[0].1["flows"][1]["weight"].as_integer(), Some(2));
        assert_eq!(expand_text("a=1\n").unwrap()[0].0, "base");
    }

    #[test]
    fn a_bad_block_is_named() {
        assert_eq!(expand_text("[[vary]]\nkey=\"a\"\n").unwrap_err().0, 0);
        let error = expand_text("[[flows]]\n[[vary]]\nkey=\"flows.3.size\"\nvalues=[\"1mb\"]\n").unwrap_err();
        assert!(error.1.contains("1 entries"), "{error:?}");
    }
}
