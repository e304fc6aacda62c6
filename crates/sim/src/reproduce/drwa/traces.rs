//! Links that vary: recorded traces, if they are there, and generated ones.

use std::path::Path;

use paceline_path::{Gaps, RateProcess, Trace, TraceFormat, TraceModel, TraceOptions};
use paceline_wire::{Duration, Rate};

/// A link that varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Varying {
    /// Name. For a recorded trace, this is the file within the folder of traces.
    pub name: &'static str,
    /// Kind of the trace. Kinds are never averaged together.
    pub kind: Kind,
    /// Column of the rate in a CSV file.
    column: Option<&'static str>,
    /// Duration of a download over it. Our choice: shorter if the link carries much in a second.
    pub seconds: u64,
}

/// Origin of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Recorded delivery opportunities of packets.
    Opportunities,
    /// Recorded goodput of an application in steps of a second. It has no variation below that.
    Goodput,
    /// Generated.
    Model,
}

const fn recorded(name: &'static str, kind: Kind, seconds: u64) -> Varying {
    Varying { name, kind, column: None, seconds }
}

const fn column(name: &'static str, column: &'static str, seconds: u64) -> Varying {
    Varying { name, kind: Kind::Goodput, column: Some(column), seconds }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 3] = [Kind::Opportunities, Kind::Goodput, Kind::Model];

    /// The kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Opportunities => "recorded opportunities",
            Kind::Goodput => "recorded goodput",
            Kind::Model => "generated",
        }
    }
}

impl Varying {
    /// All links, recorded or not.
    pub const ALL: [Varying; 15] = [
        recorded("mahimahi/TMobile-LTE-short.down", Kind::Opportunities, 120),
        recorded("mahimahi/TMobile-UMTS-driving.down", Kind::Opportunities, 120),
        recorded("mahimahi/ATT-LTE-driving.down", Kind::Opportunities, 120),
        recorded("nyc-orca/trace-2925703-home1", Kind::Opportunities, 120),
        recorded("nyc-orca/trace-3114405-bus", Kind::Opportunities, 120),
        column("5gophers/car-driving-trace-1.csv", "Verizon_throughput_mbps", 15),
        recorded("5gophers/walking-trace.csv", Kind::Goodput, 15),
        recorded("lumos5g/5g_trace_95_driving", Kind::Goodput, 15),
        recorded("lumos5g/5g_trace_21_walking", Kind::Goodput, 15),
        recorded("norway-hsdpa/norway_bus_12", Kind::Goodput, 120),
        recorded("norway-hsdpa/norway_train_1", Kind::Goodput, 120),
        column("starlink/autobahn.csv", "download_mbps", 30),
        recorded("hspa", Kind::Model, 120),
        recorded("lte-driving", Kind::Model, 120),
        recorded("steady", Kind::Model, 120),
    ];

    /// The rate; `None` if the folder does not have the trace.
    pub fn rate(&self, folder: &Path) -> Option<RateProcess> {
        let generated = |model: TraceModel| model.generate().ok().map(RateProcess::Opportunities);
        match (self.kind, self.name) {
            (Kind::Model, "steady") => Some(RateProcess::Constant(Rate::from_mbps(8.0))),
            (Kind::Model, "hspa") => generated(TraceModel::hspa()),
            (Kind::Model, _) => generated(TraceModel::lte_driving()),
            _ => {
                let text = std::fs::read_to_string(folder.join(self.name)).ok()?;
                let options = TraceOptions { column: self.column, gaps: Gaps::Hold };
                let format = TraceFormat::detect(&text);
                let options = if format == TraceFormat::Mahimahi { TraceOptions::default() } else { options };
                Trace::parse(&text, format, &options).ok().map(RateProcess::Opportunities)
            }
        }
    }

    /// Duration of a download.
    pub fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}
