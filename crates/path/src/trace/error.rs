//! Errors in the text of a trace, with the number of the line.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Why a text gives no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// There is no row, or no row has an opportunity.
    #[error("no delivery opportunity in it")]
    Empty,
    /// The last opportunity is at millisecond 0. Then the trace would repeat endlessly at one instant.
    #[error("the last line must be later than 0 ms: it is the period of the trace")]
    NoPeriod,
    /// More opportunities than the type holds (about 4 * 10^9), or a series longer than a day.
    #[error("too long: more than 4294967295 opportunities, or rates of more than a day")]
    TooLong,
    /// Opportunities out of order.
    #[error("opportunity at {at_ms} ms after one at {previous_ms} ms")]
    Unordered {
        /// The later entry.
        at_ms: u32,
        /// The entry before it.
        previous_ms: u32,
    },
    /// A line cannot be used. Lines count from 1.
    #[error("line {line}: {problem}")]
    Line {
        /// The number of the line.
        line: usize,
        /// The fault of the line.
        problem: LineProblem,
    },
    /// The CSV header has no such column.
    #[error("line 1: no column {}", missing(wanted.as_deref(), columns))]
    NoColumn {
        /// The requested column; `None` means any column of a rate.
        wanted: Option<String>,
        /// The columns that exist.
        columns: Vec<String>,
    },
    /// The CSV header has several columns of rates, and none was requested.
    #[error("line 1: several columns of rates; name one of {}", columns.join(", "))]
    ManyColumns {
        /// The candidates.
        columns: Vec<String>,
    },
}

/// The fault of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineProblem {
    /// Not a whole number of milliseconds.
    #[error("`{0}` is not a whole number of milliseconds")]
    NotMilliseconds(String),
    /// A time before that of the line above, in seconds as written.
    #[error("time {time} is before {previous} of the line above")]
    TimeGoesBack {
        /// The time of this line.
        time: String,
        /// The time of the line above.
        previous: String,
    },
    /// A row with fewer or more cells than it should have.
    #[error("{found} cells instead of {wanted}")]
    CellCount {
        /// Cells that a row should have.
        wanted: usize,
        /// Cells that this row has.
        found: usize,
    },
    /// An empty cell in place of a number.
    #[error("no value in column `{column}`; choose to hold the last value or to count as zero")]
    EmptyCell {
        /// The name of the column.
        column: String,
    },
    /// A cell that is not a number, is negative, or is larger than any link's rate.
    #[error("`{text}` in column `{column}` is not a number between 0 and 10^6")]
    NotANumber {
        /// The name of the column.
        column: String,
        /// The text of the cell.
        text: String,
    },
    /// Rows are missing between the line above and this one.
    #[error(
        "rows are missing from {previous} to {time} s; choose to hold the last value or to count as zero"
    )]
    Gap {
        /// The time of the line above.
        previous: String,
        /// The time of this line.
        time: String,
    },
    /// Cells in quotes are not supported.
    #[error("cells in quotes are not supported")]
    Quotes,
}

impl TraceError {
    pub(super) fn line(line: usize, problem: LineProblem) -> Self {
        TraceError::Line { line, problem }
    }
}

fn missing(wanted: Option<&str>, columns: &[String]) -> String {
    let columns = columns.join(", ");
    match wanted {
        Some(wanted) => format!("`{wanted}`; there are {columns}"),
        None => format!("with `mbps` in its name; name one of {columns}"),
    }
}
