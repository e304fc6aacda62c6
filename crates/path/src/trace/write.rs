//! Writes traces as text.

use core::fmt::{self, Write};

use paceline_wire::{Duration, Rate};

use super::{OPPORTUNITY_BYTES, Trace};

impl Trace {
    /// Writes one line per opportunity with its millisecond. Reading the text gives the same trace.
    pub fn write_mahimahi(&self, out: &mut impl Write) -> fmt::Result {
        for (at_ms, count) in self.counts() {
            for _ in 0..count {
                writeln!(out, "{at_ms}")?;
            }
        }
        Ok(())
    }

    /// Writes a header, and a row for each `bin` of one period. A row has the second at which the bin begins, and the
    /// rate in Mbit/s.
    pub fn write_csv(&self, out: &mut impl Write, bin: Duration) -> fmt::Result {
        writeln!(out, "second,mbps")?;
        for (start, _, rate) in self.rates(bin) {
            writeln!(out, "{:.3},{:.6}", start.as_secs_f64(), rate.as_mbps())?;
        }
        Ok(())
    }

    /// Writes a row for each second of one period: the second at which it ends, a tab, and the rate in Mbit/s.
    pub fn write_one_second(&self, out: &mut impl Write) -> fmt::Result {
        for (_, end, rate) in self.rates(Duration::from_secs(1)) {
            writeln!(out, "{:.3}\t{:.6}", end.as_secs_f64(), rate.as_mbps())?;
        }
        Ok(())
    }

    /// Start, end and rate of each `bin` of one period. The last bin may be shorter, and includes the end of the
    /// period.
    pub fn rates(&self, bin: Duration) -> impl Iterator<Item = (Duration, Duration, Rate)> + '_ {
        let bin_ns = bin.as_nanos().max(1);
        let period = self.period();
        (0..period.as_nanos().div_ceil(bin_ns)).map(move |index| {
            let start = Duration::from_nanos(index * bin_ns);
            let end = (start + Duration::from_nanos(bin_ns)).min(period);
            let through = if end < period { self.opportunities_before(end) } else { self.opportunities() };
            let bytes = (through - self.opportunities_before(start)) * OPPORTUNITY_BYTES;
            (start, end, Rate::from_bytes_in(bytes, end - start))
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
        assert_eq!(rows, "1.000\t0.036000\n2.000\t0.024000\n");
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
