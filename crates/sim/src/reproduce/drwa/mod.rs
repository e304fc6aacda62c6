//! H. Jiang et al., "Improving TCP Performance in Buffer-bloated Cellular Networks via Dynamic Receive Window
//! Adjustment".

mod experiment;
mod network;
mod outcome;
mod published;
mod traces;

pub use experiment::{Experiment, Middlebox, Objects, Server, Signal, Window};
pub use network::Network;
pub use outcome::{Outcome, Row, Trace};
pub use published::{Gain, RmemMax};
pub use traces::{Kind, Varying};
