//! A connection between two endpoints: `cargo +nightly fuzz run endpoint`. `cargo test` replays the corpus through
//! the same function.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/tcp/tests/whole/exercise.rs"]
mod exercise;
#[path = "../../crates/tcp/tests/whole/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::endpoint(data));
