//! C. Lai et al., "Enhancing Wireless TCP: A Serialized-Timer Approach": TCP-NCL and what it was compared with.

mod path;
mod run;
mod scheme;

pub use path::{DelayedPath, Dumbbell, LastHop};
pub use run::{NclRun, NclScenario, Span};
pub use scheme::Scheme;
