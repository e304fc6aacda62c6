//! Any text as the operator's file: `cargo +nightly fuzz run policy`. `cargo test` replays the corpus through the
//! same function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_service::exercise::policy(data));
