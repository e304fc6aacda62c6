//! Trace to text.

use core::fmt::{self, Write};

use paceline_wire::{Duration, Rate};

use super::{OPPORTUNITY_BYTES, Trace};

impl Trace {
    /// One line per opportunity: its millisecond. Reading it again gives the same trace.
    pub fn write_mahimahi(&self, out: &mut impl Write) -> fmt::Result {
        for (at_ms, count) in self.counts() {
            for _ in 0..count {
                writeln!(out, "{at_ms}")?;
            }
        }
        Ok(())
    }

    /// A header and one row for each `bin` of one period: the second at which it begins, and the rate in Mbit/s.
    pub fn write_csv(&self, out: &mut impl Write, bin: Duration) -> fmt::Result {
        writeln!(out, "second,mbps")?;
        self.write_rows(out, bin, ',')
    }

    /// One row for each second of one period: the second, a tab, the rate in Mbit/s.
    pub fn write_one_second(&self, out: &mut impl Write) -> fmt::Result {
        self.write_rows(out, Duration::from_secs(1), '\t')
    }

    fn write_rows(&self, out: &mut impl Write, bin: Duration, separator: char) -> fmt::Result {
        for (start, rate) in self.rates(bin) {
            writeln!(out, "{:.3}{separator}{:.6}", start.as_secs_f64(), rate.as_mbps())?;
        }
        Ok(())
    }

    /// The rate over each `bin` of one period, with the time at which the bin starts. The last bin may be shorter; it
    /// includes the end of the period.
    pub fn rates(&self, bin: Duration) -> impl Iterator<Item = (Duration, Rate)> + '_ {
        let bin_ns = bin.as_nanos().max(1);
        let period = self.period();
        (0..period.as_nanos().div_ceil(bin_ns)).map(move |index| {
            let start = Duration::from_nanos(index * bin_ns);
            let end = start + Duration::from_nanos(bin_ns);
            let through = if end < period { self.opportunities_before(end) } else { self.opportunities() };
            let bytes = (through - self.opportunities_before(start)) * OPPORTUNITY_BYTES;
            (start, Rate::from_bytes_in(bytes, end.min(period) - start))
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::trace::{TraceFormat, TraceOptions};

    fn parse(text: &str, format: TraceFormat) -> Trace {
        Trace::parse(text, format, &TraceOptions::default()).unwrap()
    }

    #[test]
    fn mahimahi_text_survives_reading_and_writing() {
        let text = "0\n0\n3\n1700\n1700\n";
        let mut written = String::new();
        parse(text, TraceFormat::Mahimahi).write_mahimahi(&mut written).unwrap();
        assert_eq!(written, text);
    }

    #[test]
    fn rates_are_written_per_bin() {
        let trace = parse("0\n0\n3\n1700\n2000\n", TraceFormat::Mahimahi);
        let mut csv = String::new();
        trace.write_csv(&mut csv, Duration::from_millis(500)).unwrap();
        assert_eq!(csv, "second,mbps\n0.000,0.072000\n0.500,0.000000\n1.000,0.000000\n1.500,0.048000\n");
        let mut rows = String::new();
        trace.write_one_second(&mut rows).unwrap();
        assert_eq!(rows, "0.000\t0.036000\n1.000\t0.024000\n");
    }

    #[test]
    fn a_converted_trace_keeps_its_rates() {
        let text: String =
            (0..=4_000).step_by(3).map(|ms| alloc::format!("{ms}\n")).chain(["4000\n".into()]).collect();
        let trace = parse(&text, TraceFormat::Mahimahi);
        let (mut csv, mut rows) = (String::new(), String::new());
        trace.write_csv(&mut csv, Duration::from_secs(1)).unwrap();
        trace.write_one_second(&mut rows).unwrap();
        for again in [parse(&csv, TraceFormat::Csv), parse(&rows, TraceFormat::OneSecond)] {
            assert_eq!(again.period(), trace.period());
            assert!(again.opportunities().abs_diff(trace.opportunities()) <= 1);
        }
    }
}
