//! A handover state with changes at any place: `cargo +nightly fuzz run state`. `cargo test` replays the corpus
//! through the same function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| paceline_service::exercise::state(data));
