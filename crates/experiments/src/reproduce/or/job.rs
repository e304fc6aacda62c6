//! Functions that the jobs of this paper share.

use crate::run_cache::Values;

/// Returns the values by name.
pub(super) fn values(of: &[(&str, f64)]) -> Values {
    of.iter().map(|(name, value)| (name.to_string(), *value)).collect()
}

/// Our choice: the cost of a run grows with the data that its link carries.
pub(super) fn cost(mbps: f64, duration_s: f64) -> f64 {
    mbps * duration_s / 200.0
}
