//! C. Lai et al., "Enhancing Wireless TCP: A Serialized-Timer Approach": TCP-NCL and what it was compared with.

mod experiment;
mod scheme;

pub use experiment::{NclExperiment, NclRun};
pub use scheme::Scheme;
