//! `paceline reproduce`: published experiments run anew in the simulator, side by side with what was published.

pub(crate) mod accelerator;
pub(crate) mod drwa;
mod kept;
pub(crate) mod ncl;
pub(crate) mod or;
mod pool;
mod report;
pub(crate) mod rre;
