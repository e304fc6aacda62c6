//! Any bytes as a message of another gateway process: `cargo +nightly fuzz run message`. `cargo test` replays the
//! corpus through the same function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_linux::exercise::message(data));
