//! Replays the fuzzer's corpus, and feeds the same function from proptest.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::exercise::exercise;
use crate::oracle::sample;
use crate::replayed::replay;

#[test]
fn packets_replayed() {
    replay("packet", 20_000, exercise);
}

#[test]
fn headers_replayed() {
    replay("headers", 20_000, crate::building::exercise);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn any_bytes_pass(data in vec(any::<u8>(), 0..200)) {
        exercise(&data);
    }

    #[test]
    fn any_bytes_that_start_like_ip_pass(mut data in vec(any::<u8>(), 5..200), v6: bool) {
        data[4] = if v6 { 0x60 } else { 0x45 };
        exercise(&data);
    }

    /// Real packets with a few changed bytes reach more code than random bytes do.
    #[test]
    fn damaged_packets_pass(
        sample in sample(), choices: [u8; 4], changes in vec((0usize..80, any::<u8>()), 0..4), cut in 0usize..4000,
    ) {
        let mut data = [&choices[..], &sample.bytes()].concat();
        for (at, value) in changes {
            let len = data.len();
            data[at % len] = value;
        }
        data.truncate(cut.max(60));
        exercise(&data);
    }
}
