//! Any text as a gateway's answer: `cargo +nightly fuzz run report`. `cargo test` replays the corpus through the same
//! function.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    paceline_service::exercise::report(data);
    paceline::exercise::report(data);
});
