//! C. Lai et al., "Enhancing Wireless TCP: A Serialized-Timer Approach": TCP-NCL and the senders that it is compared
//! with.

mod experiment;
mod scheme;
mod sts;
mod sts_meter;

pub use experiment::{NclExperiment, NclRun};
pub use scheme::Scheme;
pub use sts::{ModelComparison, StsCounts, StsPath, StsRun, TIMES_BEFORE_TAU_U};
