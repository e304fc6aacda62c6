//! The published experiments. The code takes the cells from `published/` and gives our results beside them.

pub mod drwa;
pub mod linux;
pub mod ncl;
pub mod or;
pub mod rre;
