//! Any bytes as a frame from a device: `cargo +nightly fuzz run frame`. `cargo test` replays the corpus through the
//! same function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_linux::exercise::frame(data));
