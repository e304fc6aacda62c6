//! Split mode: a flow as two connections back to back, so that the gateway sends to the client with algorithms of its own.

mod config;

pub use config::{SenderConfig, SplitConfig};
