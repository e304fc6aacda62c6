//! The gateway as a whole, and everything that may happen around it, drawn from bytes: fuzz targets and the replay of their corpora.

pub mod exercise;
pub mod packets;
#[path = "../../../../tcp/tests/whole/world.rs"]
pub mod world;

#[cfg(test)]
#[path = "../../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn packets_replayed() {
    replay::replay("gateway", 1_000, packets::gateway);
}

#[test]
fn transparent_flows_replayed() {
    replay::replay("transparent", 500, exercise::transparent);
}

#[test]
fn split_flows_replayed() {
    replay::replay("split", 500, exercise::split);
}

#[cfg(feature = "serde")]
#[test]
fn handovers_replayed() {
    replay::replay("handover", 100, exercise::handover);
}
