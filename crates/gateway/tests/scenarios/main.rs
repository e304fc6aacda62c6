//! The gateway packet by packet. It runs without I/O, in virtual time. Between hosts and links it is tested in
//! crates/sim/tests/gateway.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub)]
#[path = "../kit/mod.rs"]
mod kit;

mod corners;
mod passthrough;
mod repeated_syn;
mod resumed;
mod shown;
mod split;
mod twins;
mod vanished;
mod whole;
