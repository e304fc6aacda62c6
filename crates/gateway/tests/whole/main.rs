//! The gateway as a whole, and everything that may happen around it, drawn from bytes.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, unreachable_pub)]

mod exercise;
mod packets;
#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[cfg(feature = "serde")]
mod twins;
#[path = "../../../tcp/tests/whole/world.rs"]
mod world;

use replay::replay;

#[test]
fn packets_replayed() {
    replay("gateway", 2_000, packets::gateway);
}

#[test]
fn transparent_flows_replayed() {
    replay("transparent", 1_000, exercise::transparent);
}

#[test]
fn split_flows_replayed() {
    replay("split", 1_000, exercise::split);
}

#[cfg(feature = "serde")]
#[test]
fn handovers_replayed() {
    replay("handover", 500, exercise::handover);
}
