//! Any text as a number with a unit: `cargo +nightly fuzz run units`. `cargo test` replays the corpus through the
//! same function.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/path/tests/text/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::units(data));
