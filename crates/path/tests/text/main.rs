//! Tests of text that is read: traces, and numbers with units.
#![allow(missing_docs, clippy::unwrap_used)]

mod exercise;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn traces_replayed() {
    replay("trace", 3_000, exercise::trace);
}

#[test]
fn units_replayed() {
    replay("units", 20_000, exercise::units);
}
