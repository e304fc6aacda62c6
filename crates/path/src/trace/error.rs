//! Errors in the text of a trace, with the number of the line.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Why a text gives no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// There is no row, or no row has an opportunity.
    Empty,
    /// The last opportunity is at millisecond 0. Then the trace would repeat endlessly at one instant.
    NoPeriod,
    /// More opportunities than the type holds (about 4 * 10^9), or a series longer than a day.
    TooLong,
    /// Opportunities out of order.
    Unordered {
        /// The later entry.
        at_ms: u32,
        /// The entry before it.
        previous_ms: u32,
    },
    /// A line cannot be used. Lines count from 1.
    Line {
        /// The number of the line.
        line: usize,
        /// The fault of the line.
        problem: LineProblem,
    },
    /// The CSV header has no such column.
    NoColumn {
        /// The requested column; `None` means any column of a rate.
        wanted: Option<String>,
        /// The columns that exist.
        columns: Vec<String>,
    },
    /// The CSV header has several columns of rates, and none was requested.
    ManyColumns {
        /// The candidates.
        columns: Vec<String>,
    },
}

/// The fault of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineProblem {
    /// Not a whole number of milliseconds.
    NotMilliseconds(String),
    /// A time before that of the line above, in seconds as written.
    TimeGoesBack {
        /// The time of this line.
        time: String,
        /// The time of the line above.
        previous: String,
    },
    /// A row with fewer or more cells than it should have.
    CellCount {
        /// Cells that a row should have.
        wanted: usize,
        /// Cells that this row has.
        found: usize,
    },
    /// An empty cell in place of a number.
    EmptyCell {
        /// The name of the column.
        column: String,
    },
    /// A cell that is not a number, is negative, or is larger than any link's rate.
    NotANumber {
        /// The name of the column.
        column: String,
        /// The text of the cell.
        text: String,
    },
    /// Rows are missing between the line above and this one.
    Gap {
        /// The time of the line above.
        previous: String,
        /// The time of this line.
        time: String,
    },
    /// Cells in quotes are not supported.
    Quotes,
}

impl TraceError {
    pub(super) fn line(line: usize, problem: LineProblem) -> Self {
        TraceError::Line { line, problem }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Empty => f.write_str("no delivery opportunity in it"),
            TraceError::NoPeriod => {
                f.write_str("the last line must be later than 0 ms: it is the period of the trace")
            }
            TraceError::TooLong => {
                f.write_str("too long: more than 4294967295 opportunities, or rates of more than a day")
            }
            TraceError::Unordered { at_ms, previous_ms } => {
                write!(f, "opportunity at {at_ms} ms after one at {previous_ms} ms")
            }
            TraceError::Line { line, problem } => write!(f, "line {line}: {problem}"),
            TraceError::NoColumn { wanted: Some(wanted), columns } => {
                write!(f, "line 1: no column `{wanted}`; there are {}", columns.join(", "))
            }
            TraceError::NoColumn { wanted: None, columns } => {
                write!(f, "line 1: no column with `mbps` in its name; name one of {}", columns.join(", "))
            }
            TraceError::ManyColumns { columns } => {
                write!(f, "line 1: several columns of rates; name one of {}", columns.join(", "))
            }
        }
    }
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineProblem::NotMilliseconds(text) => write!(f, "`{text}` is not a whole number of milliseconds"),
            LineProblem::TimeGoesBack { time, previous } => {
                write!(f, "time {time} is before {previous} of the line above")
            }
            LineProblem::CellCount { wanted, found } => write!(f, "{found} cells instead of {wanted}"),
            LineProblem::EmptyCell { column } => {
                write!(f, "no value in column `{column}`; choose to hold the last value or to count as zero")
            }
            LineProblem::NotANumber { column, text } => {
                write!(f, "`{text}` in column `{column}` is not a number between 0 and 10^6")
            }
            LineProblem::Gap { previous, time } => {
                write!(
                    f,
                    "rows are missing from {previous} to {time} s; choose to hold the last value or to count as zero"
                )
            }
            LineProblem::Quotes => f.write_str("cells in quotes are not supported"),
        }
    }
}

impl core::error::Error for TraceError {}
