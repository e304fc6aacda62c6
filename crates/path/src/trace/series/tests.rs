use super::*;
use crate::trace::TraceFormat;

fn mbps(series: &Series) -> Vec<(u64, f64)> {
    series.samples().iter().map(|sample| (sample.start.as_millis(), sample.rate.as_mbps())).collect()
}

fn csv(text: &str, column: Option<&str>, gaps: Gaps) -> Result<Series, TraceError> {
    Series::parse_csv(text, &TraceOptions { column, gaps })
}

fn csv_error(text: &str) -> String {
    csv(text, None, Gaps::Refuse).unwrap_err().to_string()
}

#[test]
fn irregular_steps_are_means_since_the_row_above() {
    let text = "3.0\t8.0\n4.5\t4\n5.25\t0\n";
    let series = Series::parse_one_second(text, &TraceOptions::default()).unwrap();
    assert_eq!(mbps(&series), [(0, 8.0), (1_500, 4.0), (3_000, 0.0)]);
    assert_eq!(series.duration(), Duration::from_millis(3_750));
    let gap = "1 8\n2 8\n20 4\n";
    let options = TraceOptions { gaps: Gaps::Zero, ..TraceOptions::default() };
    let series = Series::parse_one_second(gap, &options).unwrap();
    assert_eq!(mbps(&series), [(0, 8.0), (1_000, 8.0), (2_000, 0.0), (19_000, 4.0)]);
    let refused = Series::parse_one_second(gap, &TraceOptions::default()).unwrap_err().to_string();
    assert!(refused.starts_with("line 3: rows are missing from 2 to 20 s"), "{refused}");
}

#[test]
fn csv_columns_are_found_by_name() {
    let text = "second,download_mbps,note\n0,10,a\n1,20,\n2,5.5,c\n";
    assert_eq!(mbps(&csv(text, None, Gaps::Refuse).unwrap()), [(0, 10.0), (1_000, 20.0), (2_000, 5.5)]);
    let no_time = "a_mbps,b_mbps\n1,2\n3,4\n";
    assert_eq!(mbps(&csv(no_time, Some("b_mbps"), Gaps::Refuse).unwrap()), [(0, 2.0), (1_000, 4.0)]);
    assert_eq!(csv_error(no_time), "line 1: several columns of rates; name one of a_mbps, b_mbps");
    assert_eq!(csv_error("x,y\n1,2\n"), "line 1: no column with `mbps` in its name; name one of x, y");
    assert_eq!(
        csv(no_time, Some("c"), Gaps::Refuse).unwrap_err().to_string(),
        "line 1: no column `c`; there are a_mbps, b_mbps"
    );
}

#[test]
fn csv_errors_name_the_line() {
    assert!(csv_error("second,mbps\n0,1\n1,\n").starts_with("line 3: no value in column `mbps`"));
    assert!(csv_error("second,mbps\n0,1\n3,1\n").starts_with("line 3: rows are missing from 0 to 3 s"));
    assert!(
        csv_error("second,mbps\n0,1\n1,-2\n").starts_with("line 3: `-2` in column `mbps` is not a number")
    );
    assert!(csv_error("second,mbps\n0,1\n1,nan\n").starts_with("line 3: `nan`"));
    assert!(csv_error("second,mbps\n0,1\n1,1e9\n").starts_with("line 3: `1e9`"));
    assert_eq!(csv_error("second,mbps\n5,1\n4,1\n"), "line 3: time 4 is before 5 of the line above");
    assert_eq!(csv_error("second,mbps\n0,1\n1\n"), "line 3: 1 cells instead of 2");
    assert_eq!(csv_error("second,mbps\n\"0\",1\n"), "line 2: cells in quotes are not supported");
    assert_eq!(csv_error("second,mbps\n"), "no delivery opportunity in it");
}

#[test]
fn gaps_are_held_or_count_as_zero() {
    let text = "second,mbps\n0,8\n1,\n2,4\n5,2\n";
    let held = csv(text, None, Gaps::Hold).unwrap();
    assert_eq!(mbps(&held), [(0, 8.0), (1_000, 8.0), (2_000, 4.0), (5_000, 2.0)]);
    let zero = csv(text, None, Gaps::Zero).unwrap();
    assert_eq!(mbps(&zero), [(0, 8.0), (1_000, 0.0), (2_000, 4.0), (3_000, 0.0), (5_000, 2.0)]);
}

#[test]
fn expansion_spreads_opportunities_evenly() {
    // 6 Mbit/s = 750 bytes per ms give one opportunity per 2 ms, and 12 Mbit/s one per ms.
    let sample = |at, rate| Sample { start: Duration::from_millis(at), rate: Rate::from_mbps(rate) };
    let samples = alloc::vec![sample(0, 6.0), sample(6, 12.0), sample(10, 0.0)];
    let trace = Series::new(samples, Duration::from_millis(30)).unwrap().to_trace().unwrap();
    let times: Vec<_> = trace.counts().collect();
    assert_eq!(times, [(2, 1), (4, 1), (6, 1), (7, 1), (8, 1), (9, 1), (10, 1), (30, 1)]);
}

#[test]
fn expansion_keeps_the_mean_at_high_rates() {
    let text = "0\t1234.5\n1\t0.7\n2\t800\n";
    let trace = Trace::parse(text, TraceFormat::OneSecond, &TraceOptions::default()).unwrap();
    let bytes = (1234.5 + 0.7 + 800.0) * 125_000.0;
    let difference = trace.opportunities() as f64 * 1_500.0 - bytes;
    assert!(difference.abs() <= 1_500.0, "{difference} bytes off");
}

#[test]
fn times_beyond_a_day_are_refused() {
    let held = csv("second,mbps\n0,8\n1e15,4\n", None, Gaps::Hold);
    assert_eq!(held, Err(TraceError::TooLong));
}
