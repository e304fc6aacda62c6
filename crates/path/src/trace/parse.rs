//! Parses the text of traces.

use alloc::string::ToString;

use paceline_wire::Duration;

use super::Trace;
use super::error::{LineProblem, TraceError};
use super::series::{Gaps, Series};

/// The text formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// Each line is a whole millisecond, and an opportunity for 1,500 bytes.
    Mahimahi,
    /// A header and rows of cells, separated by commas. One column holds Mbit/s, and another may hold seconds.
    Csv,
    /// Rows of seconds, blanks, and mean Mbit/s since the row before. The steps may be irregular.
    OneSecond,
}

/// Options that the text does not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions<'a> {
    /// The column of the rate in Mbit/s. If absent, the only column with `mbps` or `mbit` in its name. CSV only.
    pub column: Option<&'a str>,
    /// Treatment of missing rows and values. Does not apply to mahimahi, where a pause is an outage.
    pub gaps: Gaps,
}

impl TraceFormat {
    /// Detects the format of a text by its first line.
    pub fn detect(text: &str) -> TraceFormat {
        let first = text.lines().next().unwrap_or("");
        match first.split_whitespace().count() {
            _ if first.contains(',') => TraceFormat::Csv,
            0 | 1 => TraceFormat::Mahimahi,
            _ => TraceFormat::OneSecond,
        }
    }
}

impl Trace {
    /// Reads a trace. A series of rates is expanded to opportunities like in [`Series::to_trace`].
    ///
    /// ```
    /// use paceline_path::{Trace, TraceFormat, TraceOptions};
    ///
    /// let trace = Trace::parse("0\n4\n4\n10\n", TraceFormat::Mahimahi, &TraceOptions::default())?;
    /// assert_eq!((trace.opportunities(), trace.period().as_millis()), (4, 10));
    ///
    /// let error = Trace::parse("0\n4\nx\n", TraceFormat::Mahimahi, &TraceOptions::default()).unwrap_err();
    /// assert_eq!(error.to_string(), "line 3: `x` is not a whole number of milliseconds");
    /// # Ok::<(), paceline_path::TraceError>(())
    /// ```
    pub fn parse(text: &str, format: TraceFormat, options: &TraceOptions<'_>) -> Result<Trace, TraceError> {
        match format {
            TraceFormat::Mahimahi => parse_mahimahi(text),
            TraceFormat::Csv => Series::parse_csv(text, options)?.to_trace(),
            TraceFormat::OneSecond => Series::parse_one_second(text, options)?.to_trace(),
        }
    }
}

fn parse_mahimahi(text: &str) -> Result<Trace, TraceError> {
    let mut previous = 0;
    let mut failure = None;
    let times = numbered(text).map_while(|(line, content)| {
        let problem = match content.parse::<u32>() {
            Err(_) => LineProblem::NotMilliseconds(content.to_string()),
            Ok(time) if time < previous => {
                LineProblem::TimeGoesBack { time: content.to_string(), previous: previous.to_string() }
            }
            Ok(time) => {
                previous = time;
                return Some(time);
            }
        };
        failure = Some(TraceError::line(line, problem));
        None
    });
    let trace = Trace::from_opportunities(times);
    failure.map_or(trace, Err)
}

/// Returns lines with their numbers. Blanks at both ends and blank lines at the end of the text are removed.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.trim_end().lines().enumerate().map(|(index, line)| (index + 1, line.trim()))
}

/// Converts seconds to the nearest nanosecond.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9 + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str, format: TraceFormat) -> Result<Trace, TraceError> {
        Trace::parse(text, format, &TraceOptions::default())
    }

    fn error(text: &str, format: TraceFormat) -> alloc::string::String {
        parse(text, format).unwrap_err().to_string()
    }

    #[test]
    fn mahimahi_lines_are_milliseconds() {
        let trace = parse("0\n0\n7\r\n7\n12\n\n", TraceFormat::Mahimahi).unwrap();
        assert_eq!(trace.counts().collect::<alloc::vec::Vec<_>>(), [(0, 2), (7, 2), (12, 1)]);
    }

    #[test]
    fn mahimahi_errors_name_the_line() {
        let format = TraceFormat::Mahimahi;
        assert_eq!(error("0\n7\n5\n", format), "line 3: time 5 is before 7 of the line above");
        assert_eq!(error("0\n\n5\n", format), "line 2: `` is not a whole number of milliseconds");
        assert_eq!(error("0\n-1\n", format), "line 2: `-1` is not a whole number of milliseconds");
        assert_eq!(error("0\n1.5\n", format), "line 2: `1.5` is not a whole number of milliseconds");
        assert_eq!(error("", format), "no delivery opportunity in it");
        assert!(error("0\n0\n", format).starts_with("the last line must be later than 0 ms"));
    }

    #[test]
    fn the_first_line_tells_the_format() {
        assert_eq!(TraceFormat::detect("12\n13\n"), TraceFormat::Mahimahi);
        assert_eq!(TraceFormat::detect("1.0\t8.0\n"), TraceFormat::OneSecond);
        assert_eq!(TraceFormat::detect("second,download_mbps\n"), TraceFormat::Csv);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(
            text in "([0-9]{0,12}[\t ,.eE+-]?[0-9a-z\"]{0,6}\r?\n?){0,20}|(?s).{0,100}",
            header in prop::sample::select(alloc::vec!["", "second,mbps\n", "a_mbps,b\n"]),
            hold: bool,
        ) {
            let text = alloc::format!("{header}{text}");
            let gaps = if hold { Gaps::Hold } else { Gaps::Zero };
            for format in [TraceFormat::detect(&text), TraceFormat::Mahimahi, TraceFormat::Csv, TraceFormat::OneSecond] {
                if let Ok(trace) = Trace::parse(&text, format, &TraceOptions { column: None, gaps }) {
                    prop_assert!(trace.opportunities() > 0 && !trace.period().is_zero());
                }
            }
        }
    }
}
