//! Any text as a scenario: `cargo +nightly fuzz run scenario`. `cargo test` replays the corpus through the same
//! function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_experiments::exercise::scenario(data));
