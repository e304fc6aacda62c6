//! The gateway packet by packet, and between hosts and links that do whatever they may. It runs without I/O, in virtual
//! time. What throughput and delay must be, scenarios/accelerator and scenarios/regression say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub)]
#[path = "../kit/mod.rs"]
mod kit;

mod corners;
mod counted;
mod hostile;
mod model;
mod passthrough;
mod repeated_syn;
mod resumed;
mod sharing;
mod shown;
mod split;
mod twins;
mod upgrade;
mod vanished;
mod whole;
mod whole_pieces;
