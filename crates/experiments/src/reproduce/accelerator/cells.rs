//! Published numbers, and their measurement from our runs.

use paceline_judge::Sample;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::scenarios::{Outcome, Outcomes};
use super::series::Series;
use crate::error::Result;
use crate::result::{Run, values};

/// A published number with the columns of its file, and our value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Cell {
    /// A number as in the published file, or `Fig. N`.
    pub(super) table: Value,
    pub(super) case: String,
    pub(super) metric: &'static str,
    /// `with`, `without`.
    pub(super) accelerator: &'static str,
    /// Set for Table 1 only.
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

/// A published number, and where we measure it.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) table: Value,
    pub(super) figure: Option<u8>,
    pub(super) case: String,
    pub(super) metric: &'static str,
    pub(super) accelerator: &'static str,
    pub(super) sending_rate_mbps: Option<f64>,
    pub(super) published: Option<f64>,
    pub(super) scenario: &'static str,
    pub(super) variant: &'static str,
    pub(super) measure: Measure,
    pub(super) note: &'static str,
}

/// How to compute the number from a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// A number of the result, times a factor.
    Metric(String, f64),
    /// Payload rate of the download from a time on, in bit/s.
    Since(f64),
    /// Ratio of the bytes of two flows within a part of the run. The second flow is the denominator.
    Ratio(String, String, f64, f64),
    /// Share of a constant rate of datagrams that did not arrive.
    Missing(f64),
    /// The largest congestion window, MB.
    LargestWindow,
    /// Time of the sender's first retransmission, s.
    FirstRepair,
}

impl Cell {
    /// The table or figure, for people.
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

/// Measures each cell. Without runs, a cell has only the published number.
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
    /// Returns one value for each run. Measures of time series return only that of the first run.
    fn of(&self, outcome: &Outcome, variant: &str) -> Result<Vec<f64>> {
        let of_run =
            |measure: &dyn Fn(&Run) -> Option<f64>| outcome.of(variant).filter_map(measure).collect();
        let series = || outcome.files(variant).map(|files| Series::read(&files)).transpose();
        let of_series = |measure: &dyn Fn(&Series) -> Option<f64>| -> Result<Vec<f64>> {
            Ok(series()?.as_ref().and_then(measure).into_iter().collect())
        };
        match *self {
            Measure::Metric(ref name, factor) => {
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
            Measure::Ratio(ref flow, ref to, from_s, to_s) => {
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

/// IP bytes of a datagram divided by its payload.
const DATAGRAM_SHARE: f64 = 1_480.0 / 1_452.0;
const SEGMENT_BYTES: f64 = 1_460.0;
