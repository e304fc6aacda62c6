//! The `[[bounds]]` of scenarios, and the only judge of them. So the program prints the same as the pages.

mod bounds;
mod misses;
mod statistics;

pub use bounds::{Bound, Measurements, Outcome, Statistic, is_named};
pub use misses::Misses;
pub use statistics::{Estimate, Interval, Sample};

/// Each value once, in the order in which they first appear.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}
