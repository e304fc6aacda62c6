//! K. Liu et al., "Optimizing TCP Loss Recovery Performance Over Mobile Data Networks": opportunistic retransmission.

mod beyond;
mod cells;
mod experiment;
pub mod grid;
mod outcome;
mod recovery_meter;
mod rtt_after;
mod sender_trace;
#[cfg(test)]
mod stalls;

pub use beyond::{BeyondFlow, FAST_READER, Question, SlowStart};
pub use cells::{Cell, Setup, SetupLoss, Variant};
pub use experiment::SenderSetup;
pub use outcome::CellRun;
pub use recovery_meter::{RecoveryMeter, RecoveryUse};
pub use rtt_after::{RttAfter, RttTrace};
pub use sender_trace::{SenderRow, SenderTrace};
