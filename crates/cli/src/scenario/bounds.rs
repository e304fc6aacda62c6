//! What a result must satisfy.

use serde::Deserialize;

/// A statement on one number of the result, over all runs of the variants that it names.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Bound {
    /// Parts of the variant's name, joined by commas; all variants when empty.
    #[serde(default)]
    pub(crate) variant: String,
    /// A number of the result by its name: `goodput_mbps` (of flows), `path_delay_ms.p95`, `links.radio_down.utilization`.
    pub(crate) metric: String,
    /// Only flows with this name.
    #[serde(default)]
    pub(crate) flow: Option<String>,
    /// Over runs and flows.
    #[serde(default)]
    pub(crate) statistic: Statistic,
    #[serde(default)]
    pub(crate) min: Option<f64>,
    #[serde(default)]
    pub(crate) max: Option<f64>,
    /// The number is divided by that of the variant in which this replaces the same part of the name.
    #[serde(default)]
    pub(crate) relative_to: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Statistic {
    #[default]
    Median,
    Mean,
    P99,
    Smallest,
    Largest,
    Sum,
}
