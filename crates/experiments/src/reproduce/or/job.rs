//! What jobs of this paper have in common.

use crate::kept::Values;

/// Values by name.
pub(super) fn values(of: &[(&str, f64)]) -> Values {
    of.iter().map(|(name, value)| (name.to_string(), *value)).collect()
}

/// Our choice: what a run costs grows with what its link carries.
pub(super) fn cost(mbps: f64, duration_s: f64) -> f64 {
    mbps * duration_s / 200.0
}
