//! Properties that must hold for any text. The fuzz targets `trace` and `units` and the replay of their corpora share
//! them.

use paceline_path::units::{
    parse_aqm, parse_bytes, parse_duration, parse_probability, parse_queue, parse_rate,
};
use paceline_path::{Gaps, OPPORTUNITY_BYTES, QueueLimit, Series, Trace, TraceFormat, TraceOptions};
use paceline_wire::{Duration, Rate};

/// `data`: one byte of choices, then the text of a trace.
pub(crate) fn trace(data: &[u8]) {
    let Some((&choices, text)) = data.split_first() else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    let gaps = [Gaps::Refuse, Gaps::Hold, Gaps::Zero][usize::from(choices >> 2) % 3];
    let format = match choices & 3 {
        0 => TraceFormat::Mahimahi,
        1 => TraceFormat::Csv,
        2 => TraceFormat::OneSecond,
        _ => TraceFormat::detect(text),
    };
    let options = TraceOptions { column: None, gaps };
    let series = match format {
        TraceFormat::Mahimahi => None,
        TraceFormat::Csv => Series::parse_csv(text, &options).ok(),
        TraceFormat::OneSecond => Series::parse_one_second(text, &options).ok(),
    };
    // A day, the longest series, expands to 86 million milliseconds, which only takes time.
    if series.is_some_and(|series| series.duration() > Duration::from_secs(100)) {
        return;
    }
    let Ok(trace) = Trace::parse(text, format, &options) else { return };
    assert!(trace.opportunities() > 0 && !trace.period().is_zero());
    let counts: Vec<(u32, u32)> = trace.counts().collect();
    assert!(counts.is_sorted_by(|a, b| a.0 < b.0), "times rise");
    assert_eq!(counts.iter().map(|(_, count)| u64::from(*count)).sum::<u64>(), trace.opportunities());
    let behind = trace.period() + Duration::from_nanos(1);
    assert!(trace.opportunities_before(behind) >= trace.opportunities());
    assert_eq!(Trace::from_counts(counts.iter().copied()), Ok(trace.clone()));
    written_again(&trace);
}

/// Checks that writing the trace and reading it again gives the same trace.
fn written_again(trace: &Trace) {
    if trace.opportunities() < 10_000 {
        let mut text = String::new();
        trace.write_mahimahi(&mut text).unwrap();
        let again = Trace::parse(&text, TraceFormat::Mahimahi, &TraceOptions::default());
        assert_eq!(again.as_ref(), Ok(trace));
    }
    let bin = Duration::from_nanos(trace.period().as_nanos().div_ceil(7));
    let bytes: f64 = trace
        .rates(bin)
        .map(|(start, end, rate)| rate.as_bytes_per_sec() as f64 * (end - start).as_secs_f64())
        .sum();
    // Each rate is rounded to whole bytes per second.
    let room = 1.0 + 7.0 * trace.period().as_secs_f64();
    assert!((bytes - (trace.opportunities() * OPPORTUNITY_BYTES) as f64).abs() <= room, "{bytes} bytes");
}

/// `data`: a text that may be a number with a unit.
pub(crate) fn units(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let tidy = format!(" {} ", text.to_ascii_uppercase());
    if let Ok(time) = parse_duration(text) {
        assert_eq!(parse_duration(&tidy), Ok(time), "blanks and case");
        assert_eq!(parse_duration(&format!("{}ns", time.as_nanos())), Ok(time));
        assert!(parse_rate(text).is_err() && parse_bytes(text).is_err());
    }
    if let Ok(rate) = parse_rate(text) {
        assert_eq!(parse_rate(&tidy), Ok(rate));
        assert_eq!(parse_rate(&format!("{}bit", bits(rate))), Ok(rate));
        assert!(parse_bytes(text).is_err());
    }
    if let Ok(bytes) = parse_bytes(text) {
        assert_eq!(parse_bytes(&tidy), Ok(bytes));
        assert_eq!(parse_bytes(&format!("{bytes}b")), Ok(bytes));
        assert_eq!(parse_queue(text), Ok(QueueLimit::Bytes(bytes)));
    }
    if let Ok(share) = parse_probability(text) {
        assert!(share.as_ppb() <= 1_000_000_000);
    }
    let kinds = [parse_duration(text).is_ok(), parse_rate(text).is_ok(), parse_probability(text).is_ok()];
    let others = [parse_queue(text).is_ok(), parse_aqm(text).is_ok()];
    assert!(kinds.iter().chain(&others).filter(|is| **is).count() <= 1, "one text, one kind");
}

fn bits(rate: Rate) -> u128 {
    u128::from(rate.as_bytes_per_sec()) * 8
}
