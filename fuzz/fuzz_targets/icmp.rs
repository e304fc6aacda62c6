//! Any bytes as an ICMP message: `cargo +nightly fuzz run icmp`. `cargo test` replays the corpus through the same
//! function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_gateway::exercise::icmp(data));
