//! A rate in steps of time, as applications record it, and its expansion to opportunities.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use paceline_wire::{Duration, Rate};

use super::error::{LineProblem, TraceError};
use super::parse::{TraceOptions, numbered, seconds};
use super::{NANOS_PER_MS, OPPORTUNITY_BYTES, Trace};

/// A rate that holds from `start` until the next sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time since the start of the series.
    pub start: Duration,
    /// The rate from then on.
    pub rate: Rate,
}

/// Treatment of missing rows and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Refuses the file, and names the line.
    #[default]
    Refuse,
    /// Continues the last value.
    Hold,
    /// Delivers nothing.
    Zero,
}

/// Rates in steps. The first begins at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    samples: Vec<Sample>,
    end: Duration,
}

/// Names of a column that holds seconds.
const TIME_COLUMNS: [&str; 7] = ["second", "seconds", "time", "time_s", "timestamp", "seq_num", "seq"];

/// Duration of a single row of a CSV file, and of any row next to a gap that counts as zero.
const ROW: Duration = Duration::from_secs(1);

/// Our choice: CSV rows come once a second, so a longer step is a gap. Rounded times may be off by half a second.
const CSV_STEP_MAX: Duration = Duration::from_millis(1_500);

/// Our choice: recorders of the irregular format write when the download has data to report. The longest step of the
/// recorded trains and buses is below 7 s.
const IRREGULAR_STEP_MAX: Duration = Duration::from_secs(10);

/// Our choice: a longer series indicates a mistake in the time column.
const SERIES_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A higher rate indicates a mistake in the unit.
const MBPS_MAX: f64 = 1e6;

impl Series {
    /// Makes a series from samples in rising order of time, the first at zero. It lasts until `end`.
    pub fn new(samples: Vec<Sample>, end: Duration) -> Result<Series, TraceError> {
        let starts_at_zero = samples.first().is_some_and(|first| first.start.is_zero());
        if !starts_at_zero || !samples.is_sorted_by(|a, b| a.start < b.start) {
            return Err(TraceError::Empty);
        }
        match samples.last() {
            _ if end > SERIES_MAX => Err(TraceError::TooLong),
            Some(last) if last.start < end => Ok(Series { samples, end }),
            _ => Err(TraceError::NoPeriod),
        }
    }

    /// Parses rows of seconds and Mbit/s, separated by blanks, without header. Steps may be irregular. A value is the
    /// mean since the row before, because recorders of this format count bytes and then write. (In the recorded trains
    /// and buses, the product of value and step varies least with this reading.)
    pub fn parse_one_second(text: &str, options: &TraceOptions<'_>) -> Result<Series, TraceError> {
        let mut rows = Rows::new(options.gaps, IRREGULAR_STEP_MAX);
        for (line, content) in numbered(text) {
            let mut cells = content.split_whitespace();
            let (Some(time), rate, None) = (cells.next(), cells.next(), cells.next()) else {
                let found = content.split_whitespace().count();
                return Err(TraceError::line(line, LineProblem::CellCount { wanted: 2, found }));
            };
            rows.push(line, time, ("Mbit/s", rate.unwrap_or("")))?;
        }
        rows.ending_at_their_times()
    }

    /// Parses rows of cells under a header, separated by commas. The column of the rate is `options.column`, or else
    /// the only one with `mbps` or `mbit` in its name. A column called `second`, `time`, `seq_num` or similar holds
    /// seconds. Without one, rows are a second apart. A value holds from the time of its row.
    pub fn parse_csv(text: &str, options: &TraceOptions<'_>) -> Result<Series, TraceError> {
        let mut lines = numbered(text);
        let (_, header) = lines.next().ok_or(TraceError::Empty)?;
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let rate_column = find_rate_column(&names, options.column)?;
        let time_column =
            names.iter().position(|name| TIME_COLUMNS.contains(&name.to_ascii_lowercase().as_str()));
        let mut rows = Rows::new(options.gaps, CSV_STEP_MAX);
        for (line, content) in lines {
            if content.contains('"') {
                return Err(TraceError::line(line, LineProblem::Quotes));
            }
            let cells: Vec<&str> = content.split(',').map(str::trim).collect();
            if cells.len() != names.len() {
                let problem = LineProblem::CellCount { wanted: names.len(), found: cells.len() };
                return Err(TraceError::line(line, problem));
            }
            let counted = (line - 2).to_string();
            let time = time_column.map_or(counted.as_str(), |column| cells[column]);
            rows.push(line, time, (names[rate_column], cells[rate_column]))?;
        }
        rows.starting_at_their_times()
    }

    /// Returns the samples.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Returns the length of the series.
    pub fn duration(&self) -> Duration {
        self.end
    }

    /// Expands the series to opportunities. An opportunity is at the end of each millisecond in which the sum of bytes
    /// reaches the next multiple of 1,500. The trace is never ahead of the series, and less than one opportunity
    /// behind. The period ends with one more opportunity.
    ///
    /// Recorded goodput counts as the rate of IP bytes. It is a lower bound of the link's rate, so adding the headers'
    /// share would pretend a false precision.
    pub fn to_trace(&self) -> Result<Trace, TraceError> {
        let mut counts = Vec::new();
        let mut work = Work::default();
        let ends = self.samples.iter().skip(1).map(|sample| sample.start).chain([self.end]);
        for (sample, end) in self.samples.iter().zip(ends) {
            let mut at = sample.start.as_nanos();
            while at < end.as_nanos() {
                let next = end.as_nanos().min((at / NANOS_PER_MS + 1) * NANOS_PER_MS);
                let due = work.add(sample.rate, next - at);
                if due > 0 {
                    counts.push((milliseconds_up(next)?, due));
                }
                at = next;
            }
        }
        close_period(&mut counts, milliseconds_up(self.end.as_nanos())?);
        Trace::from_counts(counts)
    }
}

/// Bytes that do not fill an opportunity yet, in bytes * nanoseconds per second.
#[derive(Default)]
pub(crate) struct Work(u128);

impl Work {
    const OPPORTUNITY: u128 = OPPORTUNITY_BYTES as u128 * 1_000_000_000;

    /// Adds `nanos` at `rate`, and takes the full opportunities.
    pub(crate) fn add(&mut self, rate: Rate, nanos: u64) -> u32 {
        self.0 += u128::from(rate.as_bytes_per_sec()) * u128::from(nanos);
        let due = u32::try_from(self.0 / Self::OPPORTUNITY).unwrap_or(u32::MAX);
        self.0 -= u128::from(due) * Self::OPPORTUNITY;
        due
    }
}

/// Ends the trace with an opportunity, which states its period.
pub(crate) fn close_period(counts: &mut Vec<(u32, u32)>, end_ms: u32) {
    if counts.last().is_none_or(|(at_ms, _)| *at_ms < end_ms) {
        counts.push((end_ms, 1));
    }
}

fn milliseconds_up(nanos: u64) -> Result<u32, TraceError> {
    u32::try_from(nanos.div_ceil(NANOS_PER_MS)).map_err(|_| TraceError::TooLong)
}

fn find_rate_column(names: &[&str], wanted: Option<&str>) -> Result<usize, TraceError> {
    let is_rate = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.contains("mbps") || name.contains("mbit")
    };
    let matches = |name: &str| wanted.map_or_else(|| is_rate(name), |wanted| name == wanted);
    let found: Vec<usize> = (0..names.len()).filter(|index| matches(names[*index])).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(TraceError::NoColumn {
            wanted: wanted.map(String::from),
            columns: names.iter().map(|name| name.to_string()).collect(),
        }),
        many => Err(TraceError::ManyColumns {
            columns: many.iter().map(|index| names[*index].to_string()).collect(),
        }),
    }
}

/// Rows that will become a series, with times since the first row.
struct Rows {
    gaps: Gaps,
    step_max: Duration,
    rows: Vec<Row>,
    /// The time of the first row, and the time text of the last.
    first_s: f64,
    last_text: String,
}

struct Row {
    time: Duration,
    rate: Rate,
    after_gap: bool,
}

impl Rows {
    fn new(gaps: Gaps, step_max: Duration) -> Self {
        Rows { gaps, step_max, rows: Vec::new(), first_s: 0.0, last_text: String::new() }
    }

    fn push(&mut self, line: usize, time: &str, (column, rate): (&str, &str)) -> Result<(), TraceError> {
        let fail = |problem| Err(TraceError::line(line, problem));
        let Some(time_s) = number(time) else {
            return fail(LineProblem::NotANumber { column: "time".to_string(), text: time.to_string() });
        };
        let previous = core::mem::replace(&mut self.last_text, time.to_string());
        let last = self.rows.last().map(|row| row.time);
        if last.is_none() {
            self.first_s = time_s;
        }
        let since_first = seconds(time_s - self.first_s);
        if last.is_some_and(|last| since_first <= last) {
            return fail(LineProblem::TimeGoesBack { time: time.to_string(), previous });
        }
        let after_gap = last.is_some_and(|last| since_first - last > self.step_max);
        if after_gap && self.gaps == Gaps::Refuse {
            return fail(LineProblem::Gap { previous, time: time.to_string() });
        }
        let rate = match (number(rate), self.gaps) {
            (Some(mbps), _) if mbps <= MBPS_MAX => Rate::from_mbps(mbps),
            (None, Gaps::Hold) if rate.is_empty() => self.rows.last().map_or(Rate::ZERO, |last| last.rate),
            (None, Gaps::Zero) if rate.is_empty() => Rate::ZERO,
            _ if rate.is_empty() => return fail(LineProblem::EmptyCell { column: column.to_string() }),
            _ => return fail(LineProblem::NotANumber { column: column.to_string(), text: rate.to_string() }),
        };
        self.rows.push(Row { time: since_first, rate, after_gap });
        Ok(())
    }

    /// Makes a series whose values hold from the times of their rows. The last row lasts as long as the step before it.
    fn starting_at_their_times(self) -> Result<Series, TraceError> {
        let mut samples = Vec::with_capacity(self.rows.len());
        let mut last = Duration::ZERO;
        for row in &self.rows {
            if row.after_gap && self.gaps == Gaps::Zero {
                samples.push(Sample { start: last + ROW, rate: Rate::ZERO });
            }
            samples.push(Sample { start: row.time, rate: row.rate });
            last = row.time;
        }
        let step = match self.rows.as_slice() {
            [.., before, last] => last.time - before.time,
            _ => ROW,
        };
        Series::new(samples, last + step)
    }

    /// Makes a series whose values hold from the time of the row before to that of their own row. The first row lasts
    /// as long as the second.
    fn ending_at_their_times(self) -> Result<Series, TraceError> {
        let lead = self.rows.get(1).map_or(ROW, |second| second.time);
        let mut samples = Vec::with_capacity(self.rows.len());
        let mut start = Duration::ZERO;
        for row in &self.rows {
            let end = lead + row.time;
            if row.after_gap && self.gaps == Gaps::Zero {
                samples.push(Sample { start, rate: Rate::ZERO });
                start = end - ROW;
            }
            samples.push(Sample { start, rate: row.rate });
            start = end;
        }
        Series::new(samples, start)
    }
}

/// Parses a finite number that is not negative.
fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests;
