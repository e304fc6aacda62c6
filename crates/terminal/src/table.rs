//! Tables for the terminal.

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Row, Table, presets,
};

/// Creates a table. Its first `labels` columns are words, which wrap on a narrow terminal. The others are numbers.
pub fn new_table(labels: usize, header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.iter().map(|name| name.to_string()));
    for column in table.column_iter_mut().skip(labels) {
        column.set_cell_alignment(CellAlignment::Right);
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}

/// A column: its head, and the function that returns its text for a row.
pub type Column<T> = (&'static str, fn(&T) -> String);

/// Returns the table of `rows`, whose first `labels` columns are words.
pub fn table_of<'a, T: 'a>(
    labels: usize,
    columns: &[Column<T>],
    rows: impl IntoIterator<Item = &'a T>,
) -> Table {
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let mut table = new_table(labels, &heads);
    for row in rows {
        table.add_row(columns.iter().map(|(_, of)| of(row)));
    }
    table
}

/// Formats a table for the terminal's width. Without enough room, it leaves out columns of `spare`, from the first
/// on, and says so.
pub fn fitted(table: Table, spare: &[&str]) -> String {
    match table.width() {
        Some(width) => fit(table, usize::from(width), spare),
        None => table.to_string(),
    }
}

fn fit(mut table: Table, width: usize, spare: &[&str]) -> String {
    table.set_content_arrangement(ContentArrangement::Disabled);
    let names: Vec<String> = table.header().into_iter().flat_map(Row::cell_iter).map(Cell::content).collect();
    let mut left_out = Vec::new();
    for name in spare {
        if table.lines().all(|line| line.chars().count() <= width) {
            break;
        }
        let place = names.iter().position(|other| other == name);
        if let Some(column) = place.and_then(|place| table.column_mut(place)) {
            column.set_constraint(ColumnConstraint::Hidden);
            left_out.push(name.replace('\n', " "));
        }
    }
    table.set_content_arrangement(ContentArrangement::Dynamic);
    match left_out.as_slice() {
        [] => table.to_string(),
        some => format!("{table}\nnot shown, because the terminal is narrow: {}", some.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_is_told() {
        let table = || {
            let mut table = new_table(1, &["name", "least", "most\nms"]);
            table.add_row(["a flow with a name of some length", "1234567890", "2345678901"]);
            table
        };
        let width = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
        let spare = ["most\nms", "least"];
        let whole = fit(table(), 200, &spare);
        assert!(whole.contains("2345678901") && !whole.contains("not shown"), "{whole}");
        let narrow = fit(table(), width(&whole) - 1, &spare);
        assert!(narrow.contains("1234567890") && !narrow.contains("2345678901"), "{narrow}");
        assert!(narrow.ends_with("\nnot shown, because the terminal is narrow: most ms"), "{narrow}");
    }
}
