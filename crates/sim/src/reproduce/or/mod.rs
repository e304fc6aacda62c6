//! K. Liu et al., "Optimizing TCP Loss Recovery Performance Over Mobile Data Networks": opportunistic retransmission.

mod recovery_meter;

pub use recovery_meter::{RecoveryMeter, RecoveryUse};
