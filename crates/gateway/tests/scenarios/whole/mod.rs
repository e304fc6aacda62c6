//! The whole gateway and everything that may happen around it, drawn from bytes. Used by fuzz targets and by the replay
//! of their corpora.

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

#[test]
fn handovers_replayed() {
    replay::replay("handover", 100, exercise::handover);
}

/// Two segments in the server's name, one before its first and one 2^31 behind that. The gateway believes neither.
/// The checker once took the largest number for what the server had sent. Numbers so far apart have no largest.
#[test]
fn an_ack_after_numbers_far_apart_is_judged() {
    exercise::split(include_bytes!("../../../../../fuzz/corpus/split/forged-far-apart"));
}
