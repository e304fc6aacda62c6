//! Published cells and ours as tables. With a known axis, rows and columns are as in the paper. Otherwise each cell
//! has a line.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{figure, shown};

type Cell = Map<String, Value>;

/// Cells that differ by more points of utilisation are bold.
const OFF_POINTS: f64 = 10.0;

/// Our choice: nobody reads more lines, and `--json` has them.
const LINES_MAX: usize = 200;

/// Returns all tables.
pub(super) fn tables(cells: &[Cell]) -> String {
    let mut text = String::new();
    for of_table in cells.chunk_by(|one, other| one.get("table") == other.get("table")) {
        match of_table[0].get("table") {
            Some(Value::Number(number)) => {
                let _ = write!(text, "\n### Table {number}\n");
            }
            Some(name) => {
                let _ = write!(text, "\n### {}\n", shown(name));
            }
            // The sections show these cells.
            None if of_table.len() > LINES_MAX => continue,
            None => text.push_str("\n### Cells\n"),
        }
        if of_table.iter().all(|cell| cell.contains_key("axis_value")) {
            text.push_str(&as_published(of_table));
        } else {
            text.push_str(&line_by_line(of_table));
        }
    }
    text
}

/// Returns one table for each variant and kind, with a row for each algorithm and a column for each value of the axis.
fn as_published(cells: &[Cell]) -> String {
    let mut text = String::from("\nPublished / ours ± half of the 95 % interval");
    text.push_str(if cells.iter().any(|cell| is_number(cell, "rack_tlp")) {
        ", in brackets ours with RACK-TLP; "
    } else {
        "; "
    });
    text.push_str("**bold** is more than 10 points off.\n");
    let mut notes: Vec<String> = Vec::new();
    let block =
        |one: &Cell, other: &Cell| ["variant", "kind"].iter().all(|key| one.get(*key) == other.get(*key));
    let mut blocks: Vec<Vec<&Cell>> = Vec::new();
    for cell in cells {
        match blocks.iter_mut().find(|of| block(of[0], cell)) {
            Some(of) => of.push(cell),
            None => blocks.push(vec![cell]),
        }
    }
    for of_block in &blocks {
        write_block(&mut text, of_block, &mut notes);
    }
    for (number, note) in notes.iter().enumerate() {
        let _ = write!(text, "\n({}) {note}\n", number + 1);
    }
    text
}

fn write_block(text: &mut String, cells: &[&Cell], notes: &mut Vec<String>) {
    let mut columns: Vec<&Value> = Vec::new();
    for value in cells.iter().filter_map(|cell| cell.get("axis_value")) {
        if !columns.contains(&value) {
            columns.push(value);
        }
    }
    let of = |cell: &Cell, key: &str| cell.get(key).map(shown).unwrap_or_default();
    let first = cells[0];
    let heading = format!("{}, {}", of(first, "variant"), of(first, "kind")).replace('_', " ");
    let axis = of(first, "axis").replace('_', " ");
    let values: Vec<String> = columns.iter().map(|value| format!("{axis} {}", tidy(value))).collect();
    let _ = write!(text, "\n| {heading} | {} |\n|---|{}\n", values.join(" | "), "---|".repeat(values.len()));
    let row = |cell: &Cell| format!("{} {}", of(cell, "congestion_control"), of(cell, "loss_recovery"));
    let mut done: Vec<String> = Vec::new();
    for name in cells.iter().map(|cell| row(cell)) {
        if done.contains(&name) {
            continue;
        }
        let of_column = |column: &&Value| {
            let cell = cells.iter().find(|cell| row(cell) == name && cell.get("axis_value") == Some(*column));
            cell.map_or("-".to_string(), |cell| entry(cell, notes))
        };
        let entries: Vec<String> = columns.iter().map(of_column).collect();
        let _ = writeln!(text, "| {} | {} |", name.trim(), entries.join(" | "));
        done.push(name);
    }
}

/// Formats a cell: utilisation in percent if the paper published it, or the value.
fn entry(cell: &Cell, notes: &mut Vec<String>) -> String {
    let number = |key: &str| cell.get(key).and_then(Value::as_f64);
    let (Some(value), Some(published)) = (number("value"), number("published")) else { return "-".into() };
    let percent = number("utilization_percent").zip(number("published_percent"));
    let (ours, theirs, scale, points) = match percent {
        Some((ours, theirs)) => (ours, theirs, ours / value, ours - theirs),
        None => (value, published, 1.0, (value - published) * 100.0),
    };
    let digits = if percent.is_some() { 1 } else { 3 };
    let unit = if percent.is_some() { " %" } else { "" };
    let mut text = format!("{theirs:.digits$} / {ours:.digits$}");
    if let Some(width) = number("ci95") {
        let _ = write!(text, " ± {:.digits$}", width * scale);
    }
    text.push_str(unit);
    if let Some(rack) = number("rack_tlp") {
        let _ = write!(text, " [{:.digits$}]", rack * scale);
    }
    if points.abs() > OFF_POINTS {
        text = format!("**{text}**");
    }
    if let Some(note) = cell.get("note").and_then(Value::as_str) {
        let number = notes.iter().position(|known| known == note).unwrap_or_else(|| {
            notes.push(note.into());
            notes.len() - 1
        });
        let _ = write!(text, " ({})", number + 1);
    }
    text
}

/// Returns a table with a line for each cell, whatever its columns are.
fn line_by_line(cells: &[Cell]) -> String {
    let columns: Vec<&String> = cells[0]
        .keys()
        .filter(|key| {
            *key != "table" && cells.iter().any(|cell| cell.get(*key).is_some_and(|v| !v.is_null()))
        })
        .collect();
    let names: Vec<String> = columns.iter().map(|name| name.replace('_', " ")).collect();
    let mut text = format!("\n| {} |\n|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for cell in cells {
        let row: Vec<String> =
            columns.iter().map(|key| cell.get(*key).map(tidy).unwrap_or_default()).collect();
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

fn tidy(value: &Value) -> String {
    match value.as_f64() {
        Some(number) => figure(number),
        None => shown(value),
    }
}

fn is_number(cell: &Cell, key: &str) -> bool {
    cell.get(key).is_some_and(Value::is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<Cell> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_axis_becomes_columns() {
        let cells = cells(
            r#"[{"table": 6, "congestion_control": "CUBIC", "loss_recovery": "RH", "variant": "original", "kind": "experimental",
                 "axis": "loss_percent", "axis_value": 0.01, "value": 16.0, "utilization_percent": 80.0, "published": 17.0,
                 "published_percent": 85.0, "ci95": 0.2, "note": null},
                {"table": 6, "congestion_control": "CUBIC", "loss_recovery": "RH", "variant": "original", "kind": "experimental",
                 "axis": "loss_percent", "axis_value": 0.1, "value": 4.0, "utilization_percent": 20.0, "published": 8.0,
                 "published_percent": 40.0, "ci95": null, "note": "because"}]"#,
        );
        let text = tables(&cells);
        assert!(
            text.contains("### Table 6") && text.contains("| loss percent 0.01 | loss percent 0.1 |"),
            "{text}"
        );
        assert!(text.contains("| CUBIC RH | 85.0 / 80.0 ± 1.0 % | **40.0 / 20.0 %** (1) |"), "{text}");
        assert!(text.contains("(1) because"));
    }

    #[test]
    fn other_cells_stand_line_by_line() {
        let cells = cells(r#"[{"table": "Fig. 8", "case": "a", "value": 1.50, "published": null}]"#);
        assert_eq!(tables(&cells), "\n### Fig. 8\n\n| case | value |\n|---|---|\n| a | 1.5 |\n");
    }
}
