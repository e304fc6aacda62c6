//! Tests of the packet's public interface, against packets that `etherparse` builds and checks.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod building;
mod editing;
mod exercise;
mod joining;
mod options;
mod oracle;
mod parsing;
mod replay;
#[path = "../../../../fuzz/replay.rs"]
mod replayed;
mod segments;
