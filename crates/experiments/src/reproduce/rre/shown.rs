//! The output of a part of the reproduction, and statistics that the parts share.

use serde::Serialize;

use crate::plot::Line;
use crate::reproduce::report::Report;
use crate::run_cache::Values;

/// The output of a part.
pub(super) type Shown = Report<Cell>;

/// A statement of the paper, and our value. The numbers of the figures themselves are lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Cell {
    pub(super) figure: u8,
    pub(super) what: String,
    /// The paper's words.
    pub(super) published: &'static str,
    pub(super) value: f64,
    pub(super) unit: &'static str,
}

pub(super) fn cell(
    figure: u8,
    what: impl Into<String>,
    published: &'static str,
    value: f64,
    unit: &'static str,
) -> Cell {
    Cell { figure, what: what.into(), published, value, unit }
}

/// Returns the values by name.
pub(super) fn values<S: Into<String>>(of: impl IntoIterator<Item = (S, f64)>) -> Values {
    of.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

pub(super) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    values
}

/// Returns a quantile of sorted values by nearest rank. If two ranks are equally near, returns their mean, so that the
/// median equals the judge's.
pub(super) fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let rank = sorted.len().saturating_sub(1) as f64 * fraction;
    let value = |rank: f64| sorted.get(rank as usize).copied().unwrap_or(f64::NAN);
    f64::midpoint(value((rank - 0.5).ceil()), value((rank + 0.5).floor()))
}

/// Returns the share of values that satisfy `holds`, in percent.
pub(super) fn percent_of(values: &[f64], holds: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|value| holds(**value)).count() as f64 / values.len() as f64 * 100.0
}

/// Returns the distribution of values as a curve of 51 points.
pub(super) fn distribution(label: impl Into<String>, colour: usize, values: Vec<f64>) -> Line {
    let values = sorted(values);
    let point = |n: u32| (quantile(&values, f64::from(n) / 50.0), f64::from(n) * 2.0);
    Line { label: label.into(), colour, points: (0..=50).map(point).collect() }
}
