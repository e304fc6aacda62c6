//! Builds and reads any possible header: `cargo +nightly fuzz run headers`. `cargo test` replays the corpus through
//! the same function.
#![no_main]

#[path = "../../crates/wire/tests/packet/building.rs"]
mod building;

libfuzzer_sys::fuzz_target!(|data: &[u8]| building::exercise(data));
