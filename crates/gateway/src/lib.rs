//! The accelerator between servers and the clients of a radio link, in transparent mode. No I/O and no clock.
#![no_std]

extern crate alloc;

pub mod config;

pub use config::GatewayConfig;
