//! Any bytes as the file of flows: `cargo +nightly fuzz run shift_file`. `cargo test` replays the corpus through the
//! same function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_linux::exercise::shift_file(data));
