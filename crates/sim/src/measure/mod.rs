//! Meters that run with a network.

mod link_meter;
mod path_probe;
mod quantiles;
mod reordering;

pub use link_meter::LinkMeter;
pub use path_probe::{PathProbe, RadioSide, WiredSide};
pub use quantiles::{Percentiles, Quantiles};
pub use reordering::{Arrivals, Departures, Reordering, ReorderingMeter};
