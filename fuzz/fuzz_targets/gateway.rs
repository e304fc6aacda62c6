//! Packets of a few flows at the gateway: `cargo +nightly fuzz run gateway`. `cargo test` replays the corpus through
//! the same function.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/gateway/tests/scenarios/twins.rs"]
mod twins;
#[path = "../../crates/gateway/tests/scenarios/whole/mod.rs"]
mod whole;

libfuzzer_sys::fuzz_target!(|data: &[u8]| whole::packets::gateway(data));
