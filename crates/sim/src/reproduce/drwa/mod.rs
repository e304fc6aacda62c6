//! H. Jiang et al., "Tackling Bufferbloat in 3G/4G Networks": dynamic receive window adjustment.

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
