//! Two hosts, and all events of their packets, drawn from bytes.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, unreachable_pub)]

mod exercise;
#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod world;

#[test]
fn endpoints_replayed() {
    replay::replay("endpoint", 1_000, exercise::endpoint);
}
