//! Any bytes as a packet: `cargo +nightly fuzz run packet`. `cargo test` replays the corpus through the same function.
#![no_main]

#[path = "../../crates/wire/tests/packet/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::exercise(data));
