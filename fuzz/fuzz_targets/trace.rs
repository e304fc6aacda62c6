//! Any text as a trace: `cargo +nightly fuzz run trace`. `cargo test` replays the corpus through the same function.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/path/tests/text/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::trace(data));
