//! Published numbers and the runs that answer them.

use paceline_sim::statistics::Sample;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::scenarios::{Outcome, Outcomes};
use super::series::Series;
use crate::error::Result;
use crate::result::{Run, values};

/// A published number with the columns of its file, and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Cell {
    /// A number as in the published file, or `Fig. N`.
    pub(super) table: Value,
    pub(super) case: String,
    pub(super) metric: &'static str,
    /// `with`, `without`.
    pub(super) accelerator: &'static str,
    /// Of Table 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    sending_rate_mbps: Option<f64>,
    pub(super) published: Option<f64>,
    /// The mean over runs.
    pub(super) value: Option<f64>,
    /// Half of Student's 95 % interval; null for one run.
    pub(super) ci95: Option<f64>,
    pub(super) runs: usize,
    scenario: &'static str,
    variant: &'static str,
    pub(super) note: &'static str,
}

/// What was published, and where it is measured.
#[derive(Clone, Debug)]
pub(super) struct Published {
    table: Value,
    pub(super) figure: Option<u8>,
    case: String,
    metric: &'static str,
    accelerator: &'static str,
    sending_rate_mbps: Option<f64>,
    published: Option<f64>,
    pub(super) scenario: &'static str,
    pub(super) variant: &'static str,
    measure: Measure,
    note: &'static str,
}

/// How a run answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    /// A number of the result, times a factor.
    Metric(&'static str, f64),
    /// Bit/s of payload of the download from a time on.
    Since(f64),
    /// Ratio of the bytes of two flows in a stretch of the run, to those of the first flow.
    Ratio(&'static str, &'static str, f64, f64),
    /// Share of a constant rate of datagrams that did not arrive.
    Missing(f64),
    /// The largest congestion window, MB.
    LargestWindow,
    /// When the sender first sent something again, s.
    FirstRepair,
}

impl Cell {
    /// For people.
    pub(super) fn place(&self) -> String {
        match &self.table {
            Value::String(figure) => figure.clone(),
            table if table.as_f64() == Some(8.5) => "Section 8.5".into(),
            table => format!("Table {table}"),
        }
    }
}

impl Published {
    pub(super) fn table_number(&self) -> Option<u8> {
        self.table.as_u64().and_then(|number| u8::try_from(number).ok())
    }
}

/// Every number of the published files, and those of the text that belong to a figure.
pub(super) fn published() -> Vec<Published> {
    let mut all = losses();
    all.extend(tables());
    all.extend(FIGURES.iter().map(|row| Published {
        table: json!(format!("Fig. {}", row.figure)),
        figure: Some(row.figure),
        case: row.case.into(),
        metric: row.metric,
        accelerator: if row.scenario == "datagrams" || row.variant.starts_with("unaccelerated") {
            "without"
        } else {
            "with"
        },
        sending_rate_mbps: None,
        published: row.published,
        scenario: row.scenario,
        variant: row.variant,
        measure: row.measure,
        note: row.note,
    }));
    all
}

/// Measures each. Of runs that were not made, only what was published remains.
pub(super) fn measured(published: &[Published], outcomes: &Outcomes) -> Result<Vec<Cell>> {
    published.iter().map(|cell| cell.measured(outcomes)).collect()
}

impl Published {
    fn measured(&self, outcomes: &Outcomes) -> Result<Cell> {
        let outcome = outcomes.get(self.scenario);
        let values: Vec<f64> =
            outcome.map_or(Ok(Vec::new()), |outcome| self.measure.of(outcome, self.variant))?;
        let runs = values.len();
        let estimate = values.into_iter().collect::<Sample>().estimate();
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        Ok(Cell {
            table: self.table.clone(),
            case: self.case.clone(),
            metric: self.metric,
            accelerator: self.accelerator,
            sending_rate_mbps: self.sending_rate_mbps,
            published: self.published,
            value: finite(estimate.mean),
            ci95: finite(estimate.half_width),
            runs,
            scenario: self.scenario,
            variant: self.variant,
            note: self.note,
        })
    }
}

impl Measure {
    /// One value for each run, of those that need time series for the first run only.
    fn of(self, outcome: &Outcome, variant: &str) -> Result<Vec<f64>> {
        let of_run =
            |measure: &dyn Fn(&Run) -> Option<f64>| outcome.of(variant).filter_map(measure).collect();
        let series = || outcome.files(variant).map(|files| Series::read(&files)).transpose();
        let of_series = |measure: &dyn Fn(&Series) -> Option<f64>| -> Result<Vec<f64>> {
            Ok(series()?.as_ref().and_then(measure).into_iter().collect())
        };
        match self {
            Measure::Metric(name, factor) => {
                Ok(of_run(&|run| Some(mean(&values(run, name, None))? * factor)))
            }
            Measure::Missing(mbps) => Ok(of_run(&|run| {
                let got = values(run, "bytes", None).first()? * 8e-6;
                let sent = mbps * DATAGRAM_SHARE * values(run, "duration_s", None).first()?;
                Some((1.0 - got / sent).max(0.0))
            })),
            Measure::Since(from_s) => of_series(&|series| {
                let to_s = series.senders.last()?.time_s;
                Some(series.bytes("download", from_s, to_s) * 8.0 / (to_s - from_s))
            }),
            Measure::Ratio(flow, to, from_s, to_s) => {
                of_series(&|series| Some(series.bytes(flow, from_s, to_s) / series.bytes(to, from_s, to_s)))
            }
            Measure::LargestWindow => of_series(&|series| {
                series.senders.iter().map(|row| row.cwnd_segments * SEGMENT_BYTES / 1e6).reduce(f64::max)
            }),
            Measure::FirstRepair => of_series(&|series| {
                series.senders.iter().find(|row| row.retransmitted_segments > 0).map(|row| row.time_s)
            }),
        }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// IP bytes of a datagram over its payload.
const DATAGRAM_SHARE: f64 = 1_480.0 / 1_452.0;
const SEGMENT_BYTES: f64 = 1_460.0;

#[derive(Deserialize)]
struct Loss {
    sending_rate_mbps: f64,
    loss_fraction: f64,
}

fn losses() -> Vec<Published> {
    let text =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../published/mobile-accelerator-loss.csv"));
    let rows =
        csv::Reader::from_reader(text.as_bytes()).into_deserialize::<Loss>().filter_map(|row| row.ok());
    rows.zip(VARIANTS_OF_TABLE_1)
        .map(|(row, variant)| Published {
            table: json!(1),
            figure: None,
            case: format!("{} Mbit/s", row.sending_rate_mbps),
            metric: "loss_fraction",
            accelerator: "without",
            sending_rate_mbps: Some(row.sending_rate_mbps),
            published: Some(row.loss_fraction),
            scenario: "datagrams",
            variant,
            measure: Measure::Missing(row.sending_rate_mbps),
            note: "the losses of the link are this table: what is checked is the model of a link whose losses grow with the rate",
        })
        .collect()
}

const VARIANTS_OF_TABLE_1: [&str; 7] = [
    "table-1,rate=1mbit",
    "table-1,rate=2mbit",
    "table-1,rate=3mbit",
    "table-1,rate=4mbit",
    "table-1,rate=5mbit",
    "table-1,rate=6mbit",
    "table-1,rate=7mbit",
];

#[derive(Deserialize)]
struct Row {
    table: f64,
    case: String,
    metric: String,
    without_accelerator: f64,
    with_accelerator: f64,
}

fn tables() -> Vec<Published> {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../published/mobile-accelerator.csv"));
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize::<Row>().filter_map(|row| row.ok());
    let mut all = Vec::new();
    for row in rows {
        let Some(answer) =
            ANSWERS.iter().find(|answer| answer.case == row.case && answer.metric == row.metric)
        else {
            continue;
        };
        let table = if row.table.fract() == 0.0 { json!(row.table as u64) } else { json!(row.table) };
        let columns = [("without", row.without_accelerator), ("with", row.with_accelerator)];
        for ((accelerator, published), variant) in columns.into_iter().zip(answer.variants) {
            all.push(Published {
                table: table.clone(),
                figure: None,
                case: row.case.clone(),
                metric: answer.metric,
                accelerator,
                sending_rate_mbps: None,
                published: Some(published),
                scenario: answer.scenario,
                variant,
                measure: answer.measure,
                note: answer.note,
            });
        }
    }
    all
}

/// How a row of the published file is answered.
struct Answer {
    case: &'static str,
    metric: &'static str,
    scenario: &'static str,
    /// Without and with the accelerator.
    variants: [&'static str; 2],
    measure: Measure,
    note: &'static str,
}

const EQUAL: [&str; 2] = ["unaccelerated,equal", "accelerated,equal"];
const FAIRNESS_NOTE: &str = "no random loss, queue of 1,000 packets, which the text leaves open; over the time in which both flows ran, \
                             from two seconds after the second began";
const HANDSET_NOTE: &str = "128 KB of buffer and the rate at which the application reads are chosen so that the accelerated handset \
                            reaches what was published: the text says that it processes slowly, not how slowly";

const ANSWERS: [Answer; 9] = [
    Answer {
        case: "fairness 1000 ms",
        metric: "jain_index",
        scenario: "fairness",
        variants: EQUAL,
        measure: Measure::Metric("fairness.jain_1s", 1.0),
        note: FAIRNESS_NOTE,
    },
    Answer {
        case: "fairness 100 ms",
        metric: "jain_index",
        scenario: "fairness",
        variants: EQUAL,
        measure: Measure::Metric("fairness.jain_100ms", 1.0),
        note: FAIRNESS_NOTE,
    },
    Answer {
        case: "fairness 10 ms",
        metric: "jain_index",
        scenario: "fairness",
        variants: EQUAL,
        measure: Measure::Metric("fairness.jain_10ms", 1.0),
        note: FAIRNESS_NOTE,
    },
    Answer {
        case: "overall",
        metric: "throughput_bps",
        scenario: "transfer",
        variants: ["unaccelerated", "accelerated"],
        measure: Measure::Metric("goodput_mbps", 1e6),
        note: "5.4 Mbit/s and 0.6 % loss as measured in Section 8.2; round trip of 85 ms, which the 17 KB client's throughput implies",
    },
    Answer {
        case: "steady state",
        metric: "throughput_bps",
        scenario: "transfer",
        variants: ["unaccelerated", "accelerated"],
        measure: Measure::Since(5.0),
        note: "from 5 s on: when the ramp-up ends is not said; one run",
    },
    Answer {
        case: "iPhone 3G",
        metric: "throughput_mbps",
        scenario: "receiver-buffers",
        variants: ["unaccelerated,client=iphone-3g", "accelerated,client=iphone-3g"],
        measure: Measure::Metric("goodput_mbps", 1.0),
        note: HANDSET_NOTE,
    },
    Answer {
        case: "iPhone 3GS",
        metric: "throughput_mbps",
        scenario: "receiver-buffers",
        variants: ["unaccelerated,client=iphone-3gs", "accelerated,client=iphone-3gs"],
        measure: Measure::Metric("goodput_mbps", 1.0),
        note: HANDSET_NOTE,
    },
    Answer {
        case: "Nexus One",
        metric: "throughput_mbps",
        scenario: "receiver-buffers",
        variants: ["unaccelerated,client=nexus-one", "accelerated,client=nexus-one"],
        measure: Measure::Metric("goodput_mbps", 1.0),
        note: "81 KB from the start: how the handset adapts is not said; 0.6 % of independent losses leave an unaccelerated sender less",
    },
    Answer {
        case: "fairness measured network 100 ms",
        metric: "jain_index",
        scenario: "fairness",
        variants: ["unaccelerated,measured", "accelerated,measured"],
        measure: Measure::Metric("fairness.jain_100ms", 1.0),
        note: "128 KB of window without, 17 KB with the accelerator, as published; without, independent losses keep both flows small \
               and even",
    },
];

/// A number of the text.
struct InText {
    figure: u8,
    case: &'static str,
    metric: &'static str,
    published: Option<f64>,
    scenario: &'static str,
    variant: &'static str,
    measure: Measure,
    note: &'static str,
}

const GOODPUT: Measure = Measure::Metric("goodput_mbps", 1.0);
const STEPS: InText = InText {
    figure: 0,
    case: "",
    metric: "throughput_mbps",
    published: None,
    scenario: "steps",
    variant: "",
    measure: GOODPUT,
    note: "",
};
const BLACKOUT: InText = InText {
    metric: "blackout_s",
    measure: Measure::Metric("longest_gap_s", 1.0),
    note: "the longest stretch with less than a tenth of the link; published: more than that. It lasts until all that the client \
           discarded is repaired, a packet in a round trip or a timeout: the server's timers decide",
    ..STEPS
};
const BUFFER: InText = InText {
    figure: 25,
    scenario: "load",
    note: "read off no figure: only 17 KB and 192 KB are in the text; losses as a function of load are chosen, see the scenario",
    ..STEPS
};

const FIGURES: [InText; 23] = [
    InText {
        figure: 4,
        case: "17 KB window",
        published: Some(1.41),
        variant: "unaccelerated,loss=0%",
        ..STEPS
    },
    InText {
        figure: 5,
        case: "largest congestion window",
        metric: "cwnd_mb",
        published: Some(3.0),
        variant: "window,loss=0%",
        measure: Measure::LargestWindow,
        ..STEPS
    },
    InText {
        figure: 5,
        case: "first repair",
        metric: "time_s",
        published: Some(8.49),
        variant: "window,loss=0%",
        measure: Measure::FirstRepair,
        note: "published: when duplicate ACKs begin; the queue of netem is not said, 1,000 packets are its default",
        ..STEPS
    },
    InText { figure: 6, case: "window alone", published: Some(600.0), variant: "window,loss=0%", ..BLACKOUT },
    InText {
        figure: 8,
        case: "window and schedule",
        published: Some(6.71),
        variant: "schedule,loss=0%",
        note: "payload; published without: 1.34",
        ..STEPS
    },
    InText {
        figure: 8,
        case: "paceline's default",
        published: Some(6.71),
        variant: "accelerated,loss=0%",
        note: "with a sized window in place of 10 MB",
        ..STEPS
    },
    InText {
        figure: 9,
        case: "window and schedule",
        published: Some(400.0),
        variant: "schedule,loss=0.01%",
        ..BLACKOUT
    },
    InText {
        figure: 13,
        case: "and proactive retransmission",
        metric: "blackout_s",
        variant: "proactive,loss=0.01%",
        measure: Measure::Metric("longest_gap_s", 1.0),
        note: "published: none",
        ..STEPS
    },
    InText { figure: 13, case: "and proactive retransmission", variant: "proactive,loss=0.01%", ..STEPS },
    InText {
        figure: 15,
        case: "timeouts without modulation",
        metric: "timeouts",
        scenario: "rtt-modulation",
        variant: "accelerated,modulation=none,server=rto-20ms",
        measure: Measure::Metric("timeouts", 1.0),
        note: "published: a loss leads to one",
        ..STEPS
    },
    InText {
        figure: 15,
        case: "timeouts with modulation",
        metric: "timeouts",
        published: Some(0.0),
        scenario: "rtt-modulation",
        variant: "accelerated,modulation=modulated,server=rto-20ms",
        measure: Measure::Metric("timeouts", 1.0),
        ..STEPS
    },
    InText {
        figure: 22,
        case: "weight 2 to weight 1, 20 to 40 s",
        metric: "ratio",
        published: Some(2.0001),
        scenario: "fairness",
        variant: "accelerated,weights",
        measure: Measure::Ratio("weight-2", "weight-1", 20.0, 40.0),
        ..STEPS
    },
    InText {
        figure: 22,
        case: "weight 3 to weight 1, 20 to 40 s",
        metric: "ratio",
        published: Some(3.0003),
        scenario: "fairness",
        variant: "accelerated,weights",
        measure: Measure::Ratio("weight-3", "weight-1", 20.0, 40.0),
        ..STEPS
    },
    InText {
        figure: 24,
        case: "3 Mbit/s",
        metric: "loss_fraction",
        published: Some(0.006),
        scenario: "datagrams",
        variant: "fig-24,rate=3mbit",
        measure: Measure::Missing(3.0),
        note: "a link of 5.4 Mbit/s with 0.6 % loss below it and a queue of 60 packets, which is chosen",
    },
    InText {
        figure: 24,
        case: "6.5 Mbit/s",
        metric: "loss_fraction",
        scenario: "datagrams",
        variant: "fig-24,rate=6.5mbit",
        measure: Measure::Missing(6.5),
        note: "above the limit of 5.4 Mbit/s; the figure's value is not in the text",
        ..STEPS
    },
    InText { case: "17 KB", published: Some(1.62), variant: "unaccelerated,client=17kb", ..BUFFER },
    InText { case: "32 KB", variant: "unaccelerated,client=32kb", ..BUFFER },
    InText { case: "64 KB", variant: "unaccelerated,client=64kb", ..BUFFER },
    InText { case: "128 KB", variant: "unaccelerated,client=128kb", ..BUFFER },
    InText { case: "192 KB", published: Some(3.80), variant: "unaccelerated,client=192kb", ..BUFFER },
    InText { case: "17 KB", published: Some(4.03), variant: "accelerated,client=17kb", ..BUFFER },
    InText { case: "192 KB", variant: "accelerated,client=192kb", ..BUFFER },
    InText {
        case: "192 KB, losses independent of load",
        published: Some(3.80),
        scenario: "receiver-buffers",
        variant: "unaccelerated,client=192kb",
        note: "0.6 % of all packets leave CUBIC less than published, on Linux 6.1 as here: the losses that TCP saw were fewer",
        ..BUFFER
    },
];

#[cfg(test)]
mod tests {
    use super::super::scenarios::SOURCES;
    use super::*;

    #[test]
    fn every_published_number_has_a_variant_that_answers_it() {
        let all = published();
        let of_tables = all.iter().filter(|cell| cell.figure.is_none()).count();
        assert_eq!(of_tables, 7 + 2 * 9);
        for cell in &all {
            let source = SOURCES.iter().find(|source| source.name == cell.scenario).unwrap();
            let file = source.load(&[cell.variant]).unwrap();
            let exact = file.variants.iter().filter(|variant| variant.name == cell.variant).count();
            assert_eq!(exact, 1, "{} {}", cell.scenario, cell.variant);
        }
    }
}
