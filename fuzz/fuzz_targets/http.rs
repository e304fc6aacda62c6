//! Any bytes at the metrics address: `cargo +nightly fuzz run http`. `cargo test` replays the corpus through the same
//! function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_service::exercise::http(data));
