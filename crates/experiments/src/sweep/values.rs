//! Parses `--vary KEY=VALUES`: lists, and ranges of numbers with units.

use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::scenario::Vary;
use crate::units::format_number;

/// A key and all its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dimension {
    pub(super) key: String,
    pub(super) values: Vec<Value>,
}

impl Dimension {
    pub(super) fn parse(text: &str) -> Result<Dimension> {
        let fault = |why: &str| {
            Error::input(format!(
                "--vary {text}: {why}; write KEY=VALUE,VALUE or KEY=FROM..TO:STEPS, such as radio.rtt=50ms..200ms:4"
            ))
        };
        let (key, values) = text.split_once('=').ok_or_else(|| fault("no `=`"))?;
        let (key, values) = (key.trim(), values.trim());
        if key.is_empty() || values.is_empty() {
            return Err(fault("a key and its values are needed"));
        }
        let values = match range(values) {
            Some(range) => range.map_err(|why| fault(&why))?,
            None => list(values),
        };
        Ok(Dimension { key: key.into(), values })
    }

    pub(super) fn to_vary(&self) -> Vary {
        Vary { key: Some(self.key.clone()), values: self.values.clone(), ..Vary::default() }
    }
}

/// A value as text for people.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Parses a list like TOML, with or without quotes around words.
fn list(text: &str) -> Vec<Value> {
    let of_toml = |text: &str| {
        let table: Table = toml::from_str(&format!("x = [{text}]")).ok()?;
        table.get("x")?.as_array().cloned()
    };
    let word = |part: &str| match of_toml(part).as_deref() {
        Some([one]) => one.clone(),
        _ => Value::String(part.into()),
    };
    of_toml(text).unwrap_or_else(|| text.split(',').map(|part| word(part.trim())).collect())
}

/// Parses `FROM..TO:STEPS` or `FROM..TO:STEPSlog`. Returns `None` for other forms.
fn range(text: &str) -> Option<std::result::Result<Vec<Value>, String>> {
    let (ends, steps) = text.rsplit_once(':')?;
    let (from, to) = ends.split_once("..")?;
    let (steps, even_ratios) = match steps.strip_suffix("log") {
        Some(steps) => (steps, true),
        None => (steps, false),
    };
    let (from, unit) = number(from.trim())?;
    let (to, unit_to) = number(to.trim())?;
    let steps: u32 = steps.trim().parse().ok()?;
    if unit != unit_to {
        return Some(Err(format!("both ends need the same unit, not `{unit}` and `{unit_to}`")));
    }
    if !(2..=STEPS_MAX).contains(&steps) {
        return Some(Err(format!("a range has 2 to {STEPS_MAX} steps")));
    }
    if even_ratios && (from <= 0.0 || to <= 0.0) {
        return Some(Err("even ratios need ends above zero".into()));
    }
    let at = |step: u32| {
        let share = f64::from(step) / f64::from(steps - 1);
        if even_ratios { from * (to / from).powf(share) } else { from + (to - from) * share }
    };
    let whole = unit.is_empty() && !even_ratios && (0..steps).all(|step| at(step).fract() == 0.0);
    let value = |step: u32| match (unit, whole) {
        ("", true) => Value::Integer(at(step) as i64),
        ("", false) => Value::Float(at(step)),
        _ => Value::String(format!("{}{unit}", format_number(at(step)))),
    };
    Some(Ok((0..steps).map(value).collect()))
}

/// Splits a number from its unit.
fn number(text: &str) -> Option<(f64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

/// Our choice: far more steps than anybody waits for.
const STEPS_MAX: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Dimension::parse(text).unwrap().values.iter().map(plain).collect()
    }

    #[test]
    fn lists_are_split() {
        assert_eq!(values("radio.rtt=50ms,100ms"), ["50ms", "100ms"]);
        assert_eq!(values("server.congestion-control=cubic, bbr"), ["cubic", "bbr"]);
        assert_eq!(values("flows.0.size=10kb..1mb"), ["10kb..1mb"]);
        let count = Dimension::parse("flows.0.count=1,2").unwrap();
        assert_eq!(count.values, [Value::Integer(1), Value::Integer(2)]);
        let sack = Dimension::parse("client.sack=true").unwrap();
        assert_eq!(sack.values, [Value::Boolean(true)]);
        let quoted = Dimension::parse("flows.0.ip=\"4\",\"6\"").unwrap();
        assert_eq!(quoted.values, [Value::String("4".into()), Value::String("6".into())]);
        assert_eq!(
            Dimension::parse("radio.down.loss={independent=\"1%\"},{independent=\"2%\"}")
                .unwrap()
                .values
                .len(),
            2
        );
    }

    #[test]
    fn ranges_are_even() {
        assert_eq!(values("radio.rtt=50ms..200ms:4"), ["50ms", "100ms", "150ms", "200ms"]);
        assert_eq!(values("radio.down.loss.independent=0.01%..1%:3log"), ["0.01%", "0.1%", "1%"]);
        assert_eq!(values("flows.0.count=1..9:3"), ["1", "5", "9"]);
    }

    #[test]
    fn what_is_no_dimension_is_told() {
        for (text, why) in [
            ("radio.rtt", "no `=`"),
            ("radio.rtt=", "a key and its values"),
            ("radio.rtt=1ms..2s:3", "the same unit"),
            ("radio.rtt=1ms..2ms:1", "2 to 1000 steps"),
            ("radio.rtt=0ms..2ms:3log", "above zero"),
        ] {
            let error = Dimension::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--vary {text}: ")) && error.contains(why), "{error}");
        }
    }
}
