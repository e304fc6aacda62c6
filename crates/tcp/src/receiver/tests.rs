use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::config::ReceiveBuffer;

const START: u64 = 1 << 33;

fn receiver(window: u32) -> Receiver {
    let config = Config { receive_buffer: ReceiveBuffer::Fixed(window), ..Config::default() };
    let mut receiver = Receiver::new(&config, START);
    receiver.on_established(1_000, 7);
    receiver.take_window(7);
    receiver
}

fn blocks(receiver: &mut Receiver) -> Vec<(u64, u64)> {
    let mut blocks = Vec::new();
    receiver.take_blocks(3, |start, end| blocks.push((start - START, end - START)));
    blocks
}

fn data(receiver: &mut Receiver, start: u64, end: u64) {
    receiver.on_data(Instant::ZERO, START + start, &Payload::Length((end - start) as u32), false);
}

/// RFC 2018, Section 4: the newest block first, the others after it.
#[test]
fn the_newest_block_is_reported_first() {
    let mut receiver = receiver(100_000);
    data(&mut receiver, 1_000, 2_000);
    data(&mut receiver, 3_000, 4_000);
    assert_eq!(blocks(&mut receiver), [(3_000, 4_000), (1_000, 2_000)]);
    data(&mut receiver, 2_000, 3_000);
    assert_eq!(blocks(&mut receiver), [(1_000, 4_000)]);
    data(&mut receiver, 0, 1_000);
    assert_eq!(receiver.readable(), 4_000);
    assert!(!receiver.has_blocks());
}

/// RFC 2883, Section 4: a duplicate is reported once, as the first block.
#[test]
fn a_duplicate_is_reported_once() {
    let mut receiver = receiver(100_000);
    data(&mut receiver, 1_000, 2_000);
    data(&mut receiver, 1_000, 2_000);
    assert_eq!(blocks(&mut receiver), [(1_000, 2_000), (1_000, 2_000)]);
    assert_eq!(blocks(&mut receiver), [(1_000, 2_000)]);
}

/// RFC 9293, Section 3.8.6.2.2: the edge moves by whole segments or not at all.
#[test]
fn the_window_opens_by_whole_segments() {
    let mut receiver = receiver(4_096);
    data(&mut receiver, 0, 4_096);
    assert_eq!(receiver.take_window(7), 0);
    receiver.read(Instant::ZERO, 900);
    assert_eq!(receiver.take_window(7), 0);
    receiver.read(Instant::ZERO, 400);
    // 1,300 bytes in units of 128.
    assert_eq!(receiver.take_window(7), 10);
}

/// A relay forwards received data, and its limit grows. An ACK tells the peer although the peer sends nothing.
#[test]
fn a_limit_that_grows_by_a_sixteenth_of_the_window_is_told() {
    let mut receiver = receiver(100_000);
    data(&mut receiver, 0, 30_000);
    receiver.limit(48_000);
    receiver.take_window(7);
    receiver.acks.on_ack_sent();
    receiver.limit(50_900);
    assert!(!receiver.acks.is_due());
    receiver.limit(51_300);
    assert!(receiver.acks.is_due());
}

/// With a window of less than two segments the peer has only one in flight at a time.
#[test]
fn a_limit_that_grows_to_two_segments_is_told() {
    for (before, after, told) in [(15, 26, true), (21, 32, false)] {
        let mut receiver = receiver(60_000);
        let tenth = receiver.segment() / 10;
        data(&mut receiver, 0, 60_000);
        receiver.limit(before * tenth);
        receiver.read_all(Instant::ZERO);
        receiver.take_window(0);
        receiver.acks.on_ack_sent();
        receiver.limit(after * tenth);
        assert_eq!(receiver.acks.is_due(), told, "{before} to {after} tenths of a segment");
    }
}

/// RFC 5681, Section 4.2; Linux __tcp_ack_snd_check compresses with SACK only.
#[test]
fn without_sack_no_duplicate_ack_is_kept_back() {
    for sack in [true, false] {
        // The window is open already. While it grows, every segment is acknowledged.
        let mut receiver = receiver(1 << 16);
        receiver.acks.on_established(1 << 16, 1_000, sack);
        let mut acks = 0;
        for n in 1..=40 {
            data(&mut receiver, 1_000 * n, 1_000 * n + 1_000);
            if receiver.acks.is_due() {
                receiver.acks.on_ack_sent();
                acks += 1;
            }
        }
        assert_eq!(acks == 40, !sack, "{acks} of 40");
    }
}

/// Linux TCP_SACK_BLOCKS_EXPECTED: each of thirty blocks is reported in time, although an ACK has room for three.
#[test]
fn islands_beyond_the_second_are_told_before_they_are_forgotten() {
    let mut receiver = receiver(1 << 20);
    receiver.acks.on_established(1 << 20, 1_000, true);
    let mut told = alloc::collections::BTreeSet::new();
    for n in 1..=30 {
        data(&mut receiver, 2_000 * n, 2_000 * n + 1_000);
        if receiver.acks.is_due() {
            receiver.take_blocks(3, |start, _| _ = told.insert(start));
            receiver.acks.on_ack_sent();
        }
    }
    assert_eq!(told.len(), 30, "{told:?}");
}

/// As Linux: as many quick ACKs as when data begins, even if data carried ACKs before.
#[test]
fn after_a_duplicate_acks_leave_at_once() {
    for (window, quick) in [(1 << 16, 16), (6_000, 3)] {
        let mut receiver = receiver(1 << 20);
        receiver.acks.on_established(window, 1_000, true);
        let mut position = 0;
        let mut acked_at_once = |receiver: &mut Receiver| {
            data(receiver, position, position + 100);
            position += 100;
            let due = receiver.acks.is_due();
            receiver.acks.on_ack_sent();
            receiver.take_window(7);
            due
        };
        acked_at_once(&mut receiver);
        receiver.acks.on_data_sent(Instant::ZERO);
        assert!(!acked_at_once(&mut receiver));
        // Uses up the quick ACKs.
        for _ in 0..20 {
            receiver.acks.now();
            receiver.acks.on_ack_sent();
        }
        data(&mut receiver, 0, 100);
        receiver.acks.on_ack_sent();
        let at_once = (0..40).take_while(|_| acked_at_once(&mut receiver)).count();
        assert_eq!(at_once, quick - 1);
    }
}

proptest! {
    /// For segments in any order and of any length. Every byte is delivered once and in order, nothing beyond the
    /// window is accepted, and the edge never moves back.
    #[test]
    fn bytes_come_out_once_and_in_order(
        segments in proptest::collection::vec((0u64..3_000, 1u64..400), 1..120),
        read in 1usize..700,
    ) {
        let mut receiver = receiver(2_048);
        let byte = |position: u64| ((position * 31) >> 3) as u8;
        let mut out: Vec<u8> = vec![];
        let mut edge = receiver.edge();
        for (start, len) in segments {
            let bytes: Vec<u8> = (start..start + len).map(byte).collect();
            if receiver.accepts(START + start, START + start + len) {
                receiver.on_data(Instant::ZERO, START + start, &bytes.into(), false);
            }
            prop_assert!(receiver.nxt <= edge && receiver.out_of_order_bytes() <= 2_048);
            if let Some(payload) = receiver.read(Instant::ZERO, read) {
                out.extend_from_slice(payload.bytes().unwrap());
            }
            receiver.take_window(7);
            prop_assert!(receiver.edge() >= edge);
            edge = receiver.edge();
        }
        while let Some(payload) = receiver.read(Instant::ZERO, read) {
            out.extend_from_slice(payload.bytes().unwrap());
        }
        prop_assert_eq!(out.len() as u64, receiver.nxt - START);
        prop_assert!(out.iter().enumerate().all(|(n, &got)| got == byte(n as u64)));
    }
}

/// Data that fills the first hole is always accepted, however much waits behind it. Otherwise the stream would stop for
/// ever.
#[test]
fn splinters_behind_a_hole_are_bounded_and_the_hole_can_be_filled() {
    for step in [1, 2] {
        let mut receiver = receiver(1 << 20);
        let bytes = |n: usize| Payload::from(vec![7; n]);
        for n in 0..40_000 {
            receiver.on_data(Instant::ZERO, START + 1 + n * step, &bytes(1), false);
        }
        assert_eq!(receiver.pieces(), 1 << 14);
        assert!(receiver.on_data(Instant::ZERO, START, &bytes(1), false));
        assert!(receiver.readable() >= 2, "{} bytes", receiver.readable());
    }
}
