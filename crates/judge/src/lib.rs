//! The `[[bounds]]` of scenarios and the one judge of them: the program prints what the pages say.

mod bounds;
mod statistics;

pub use bounds::{Bound, Measurements, Outcome, Statistic, is_named};
pub use statistics::{Estimate, Interval, Sample};
