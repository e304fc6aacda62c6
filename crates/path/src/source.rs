//! The source of a link's rate, as written in a scenario file.

use alloc::string::String;
use alloc::vec::Vec;

use paceline_wire::Rate;

use crate::error::ConfigError;
use crate::generate::TraceModel;
use crate::rate::{RateProcess, RateStep};
use crate::trace::{Gaps, Trace, TraceError, TraceFormat, TraceOptions};

/// The rate of a link before trace files are read and traces are generated.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RateSource {
    /// No limit.
    #[default]
    Unlimited,
    /// A constant rate.
    Constant(Rate),
    /// Consecutive rates.
    Steps(Vec<RateStep>),
    /// A trace from a file.
    Trace(TraceFile),
    /// A synthetic trace.
    Generate(TraceModel),
}

/// A trace in a file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// Name of the file.
    pub file: String,
    /// Format of the file; detected from the first line if absent.
    #[serde(default)]
    pub format: Option<TraceFormat>,
    /// Column of the rate in a CSV file with several rates.
    #[serde(default)]
    pub column: Option<String>,
    /// Treatment of missing values.
    #[serde(default)]
    pub gaps: Gaps,
}

/// Why a source gives no rate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SourceError<E> {
    /// The file could not be read.
    #[error("{0}")]
    Read(E),
    /// The file is not a trace.
    #[error("{file}: {error}")]
    Trace {
        /// The name of the file.
        file: String,
        /// The fault of the file.
        error: TraceError,
    },
    /// The model cannot give a trace.
    #[error("{0}")]
    Model(ConfigError),
}

impl RateSource {
    /// Returns the rate. `read` returns the text of a file by its name.
    pub fn resolve<E>(
        self,
        read: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<RateProcess, SourceError<E>> {
        Ok(match self {
            RateSource::Unlimited => RateProcess::Unlimited,
            RateSource::Constant(rate) => RateProcess::Constant(rate),
            RateSource::Steps(steps) => RateProcess::Steps(steps),
            RateSource::Trace(source) => {
                let text = read(&source.file).map_err(SourceError::Read)?;
                let trace = source.parse(&text);
                RateProcess::Opportunities(
                    trace.map_err(|error| SourceError::Trace { file: source.file, error })?,
                )
            }
            RateSource::Generate(model) => {
                RateProcess::Opportunities(model.generate().map_err(SourceError::Model)?)
            }
        })
    }
}

impl TraceFile {
    fn parse(&self, text: &str) -> Result<Trace, TraceError> {
        let format = self.format.unwrap_or_else(|| TraceFormat::detect(text));
        Trace::parse(text, format, &TraceOptions { column: self.column.as_deref(), gaps: self.gaps })
    }
}
