//! The gateway between hosts and links that do whatever they may, in virtual time. The gateway packet by packet is in
//! crates/gateway/tests. What throughput and delay must be, scenarios/accelerator and scenarios/regression say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "as in crates/gateway/tests, with which it shares a file")]

mod checked;
mod counted;
mod hostile;
mod parts;
mod passthrough;
mod sharing;
#[path = "../../../gateway/tests/scenarios/twins.rs"]
mod twins;
mod upgrade;
mod vanished;
mod whole_pieces;
mod world;
