//! The published experiments, as code that takes its cells from `published/` and gives ours beside them.

pub mod drwa;
pub mod linux;
pub mod ncl;
pub mod or;
pub mod rre;
