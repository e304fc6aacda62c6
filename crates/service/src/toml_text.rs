//! Messages about wrong TOML, with the line, and merging of one table into another.

/// Turns serde's "unknown field `los`, expected one of `loss`, ..." into a suggestion.
pub fn explain(message: &str) -> String {
    let message = message.lines().next().unwrap_or(message);
    if let Some((given, _)) =
        message.strip_prefix("invalid type: ").and_then(|m| m.split_once(", expected a string"))
    {
        return format!(
            "found {given} where text is expected; write a number with its unit as text: \"7.2mbit\", \"100ms\", \"17kb\", \"0.6%\""
        );
    }
    let Some(rest) =
        message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `"))
    else {
        return message.replace("missing field", "missing key");
    };
    let what = if message.starts_with("unknown field") { "key" } else { "value" };
    // rest: given`, expected one of `a`, `b`
    let mut quoted = rest.split('`').step_by(2);
    let given = quoted.next().unwrap_or(rest);
    let known: Vec<&str> = quoted.filter(|name| !name.is_empty()).collect();
    // Only the table `sharing` has `capacity-mbps`.
    if known.contains(&"capacity-mbps")
        && let Some((_, table)) = FORMER.iter().find(|(key, _)| *key == given)
    {
        return format!("`sharing.{given}` is no longer a key; write each rule as {table}");
    }
    match nearest(given, &known) {
        Some(name) => format!("unknown {what} `{given}`; did you mean `{name}`?"),
        _ if known.is_empty() => format!("unknown {what} `{given}`"),
        _ => format!("unknown {what} `{given}`; known here: {}", known.join(", ")),
    }
}

/// Former keys of `sharing`, and the tables that replaced them.
const FORMER: [(&str, &str); 2] = [("flows", "[[rule]]"), ("subscribers", "[[subscriber]]")];

/// Returns the name of `known` that was probably meant.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, name) =
        known.iter().map(|name| (strsim::damerau_levenshtein(given, name), *name)).min()?;
    (distance <= 1 + given.len() / 4).then_some(name)
}

/// Returns the line, counted from 1, at which a span starts.
pub fn line_of(text: &str, span: Option<std::ops::Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start.min(text.len()));
    1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count()
}

/// Copies every leaf of `changes` into `table`.
pub fn merge(table: &mut toml::Table, changes: &toml::Table) {
    for (key, value) in changes {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(changes)) => merge(inner, changes),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}
