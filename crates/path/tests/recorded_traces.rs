//! Tests with the recorded traces beside the repository, if they exist.

use std::path::PathBuf;

use paceline_path::{Gaps, Oracle, OraclePath, RateProcess, Trace, TraceFormat, TraceOptions};
use paceline_wire::{Duration, Rate};

/// Returns the text of a recorded trace. Returns `None` with a message if the machine has none.
fn recorded(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        eprintln!("skipped: ../shared/traces/{name} is not on this machine");
    }
    text
}

fn parse(name: &str, options: &TraceOptions<'_>) -> Option<Trace> {
    let text = recorded(name)?;
    let format = TraceFormat::detect(&text);
    let trace = Trace::parse(&text, format, options);
    assert!(trace.is_ok(), "{name}: {trace:?}");
    trace.ok()
}

fn plain(name: &str) -> Option<Trace> {
    parse(name, &TraceOptions::default())
}

#[track_caller]
fn assert_near(measured: f64, expected: f64, tolerance: f64) {
    assert!((measured / expected - 1.0).abs() < tolerance, "{measured}, not {expected}");
}

#[test]
fn packet_traces_have_their_known_means() {
    let known = [
        ("mahimahi/TMobile-LTE-short.down", 16.7),
        ("mahimahi/TMobile-LTE-short.up", 13.3),
        ("mahimahi/TMobile-UMTS-driving.down", 2.0),
        ("mahimahi/TMobile-UMTS-driving.up", 0.9),
        ("mahimahi/ATT-LTE-driving.down", 5.2),
        ("mahimahi/ATT-LTE-driving.up", 0.8),
        ("nyc-orca/trace-2925703-home1", 7.6),
        ("nyc-orca/trace-3114405-bus", 8.1),
    ];
    for (name, mbps) in known {
        let Some(trace) = plain(name) else { return };
        // The means are known to one decimal.
        assert!((trace.mean_rate().as_mbps() - mbps).abs() < 0.06, "{name}: {trace:?}");
    }
}

#[test]
fn the_long_outage_is_found() {
    let Some(trace) = plain("mahimahi/ATT-LTE-driving.up") else { return };
    let longest = trace.pauses(Duration::from_secs(60));
    assert_eq!(longest.len(), 1);
    assert_eq!(longest[0].length, Duration::from_millis(78_319));
}

#[test]
fn a_packet_trace_survives_writing() {
    let Some(text) = recorded("mahimahi/TMobile-UMTS-driving.down") else { return };
    let trace = Trace::parse(&text, TraceFormat::Mahimahi, &TraceOptions::default()).unwrap();
    let mut written = String::new();
    trace.write_mahimahi(&mut written).unwrap();
    assert_eq!(written, text);
    let stats = trace.rate_stats(Duration::from_millis(100));
    assert_near(stats.variation, 0.83, 0.01);
}

#[test]
fn goodput_series_expand_to_their_means() {
    let known = [
        ("lumos5g/5g_trace_95_driving", 419.35),
        ("lumos5g/5g_trace_21_walking", 433.15),
        ("5gophers/walking-trace.csv", 332.89),
    ];
    for (name, mbps) in known {
        let Some(trace) = plain(name) else { return };
        assert_near(trace.mean_rate().as_mbps(), mbps, 0.001);
    }
    let Some(bus) = plain("norway-hsdpa/norway_bus_12") else { return };
    // The mean over time. The mean over rows is higher, because rows of fast spells are closer together.
    assert_near(bus.mean_rate().as_mbps(), 1.45, 0.01);
}

#[test]
fn columns_and_gaps_of_csv_files_are_told_apart() {
    let name = "5gophers/car-driving-trace-1.csv";
    let Some(text) = recorded(name) else { return };
    let parse = |column, gaps| Trace::parse(&text, TraceFormat::Csv, &TraceOptions { column, gaps });
    let several = parse(None, Gaps::Refuse).unwrap_err().to_string();
    assert!(several.starts_with("line 1: several columns of rates"), "{several}");
    let column = Some("Sprint_throughput_mbps");
    let gap = parse(column, Gaps::Refuse).unwrap_err().to_string();
    assert!(gap.starts_with("line 105: rows are missing from 102 to 109 s"), "{gap}");
    let (held, zero) = (parse(column, Gaps::Hold).unwrap(), parse(column, Gaps::Zero).unwrap());
    assert_eq!(held.period(), zero.period());
    assert!(held.opportunities() > zero.opportunities());

    let download = TraceOptions { column: Some("download_mbps"), ..TraceOptions::default() };
    let Some(text) = recorded("starlink/autobahn.csv") else { return };
    let starlink =
        Trace::parse(&text, TraceFormat::Csv, &TraceOptions { gaps: Gaps::Hold, ..download }).unwrap();
    assert_eq!(starlink.period(), Duration::from_secs(4_861));
}

#[test]
fn the_oracle_of_a_trace_fills_every_opportunity() {
    let Some(trace) = plain("mahimahi/TMobile-LTE-short.down") else { return };
    let mean = trace.mean_rate();
    let path = OraclePath {
        rtt: Duration::from_millis(80),
        packet_bytes: 1_500,
        from: Duration::ZERO,
        to: trace.period(),
    };
    let oracle = Oracle::new(&RateProcess::Opportunities(trace), &path).unwrap();
    assert_eq!(oracle.queue_delay_p95, Duration::ZERO);
    assert!(oracle.throughput <= mean && oracle.throughput > mean.mul_ratio(99, 100));
    assert!(oracle.throughput > Rate::from_mbps(16.0));
}
