//! A connection through a transparent gateway: `cargo +nightly fuzz run transparent`. `cargo test` replays the corpus
//! through the same function.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/gateway/tests/scenarios/twins.rs"]
mod twins;
#[path = "../../crates/gateway/tests/scenarios/whole/mod.rs"]
mod whole;

libfuzzer_sys::fuzz_target!(|data: &[u8]| whole::exercise::transparent(data));
