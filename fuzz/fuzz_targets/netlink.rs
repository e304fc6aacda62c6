//! Any bytes as a kernel's answer: `cargo +nightly fuzz run netlink`. `cargo test` replays the corpus through the
//! same function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_linux::exercise::netlink(data));
