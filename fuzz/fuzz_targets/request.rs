//! Any bytes at the control socket: `cargo +nightly fuzz run request`. `cargo test` replays the corpus through the
//! same function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_service::exercise::request(data));
