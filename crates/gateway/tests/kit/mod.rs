//! A deterministic world around the gateway: TCP hosts, links, one clock, and a checker on both of its sides.
//!
//! `sim` runs it, and `scenario` sets it up. Its hosts (`host`, `connection`) have the TCP of crates/tcp.
// A kit that finds something amiss is to fail the test.
#![allow(unreachable_pub, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wrong_self_convention)]

pub mod accelerated;
pub mod checker;
pub mod connection;
pub mod host;
pub mod parts;
pub mod scenario;
pub mod script;
pub mod sim;
pub mod stream;
pub mod trace;
