extern crate std;

use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

impl Scoreboard {
    /// Starts the numbers at `first`.
    pub(crate) fn numbered_from(mut self, first: u32) -> Self {
        (self.base, self.retransmit_hint) = (first, first);
        self
    }
}

fn stamp(ns: u64) -> SendStamp {
    let now = Instant::from_nanos(ns);
    SendStamp { now, delivered: 0, delivered_at: now, first_sent_at: now, app_limited: false }
}

fn board(segments: u64) -> Scoreboard {
    board_from(0, segments)
}

fn board_from(first: u32, segments: u64) -> Scoreboard {
    let mut board = Scoreboard::new(1_000, 100).numbered_from(first);
    for n in 0..segments {
        board.push(1_000 + (n + 1) * 100, false, stamp(n + 1));
    }
    board
}

#[test]
fn pipe_leaves_out_what_arrived_and_what_is_lost() {
    let mut board = board(10);
    assert_eq!(board.sack(1_300, 1_600, |_| {}), 3);
    assert_eq!(board.sack(1_300, 1_600, |_| {}), 0);
    assert!(board.mark_lost(0) && board.mark_lost(1) && !board.mark_lost(1) && !board.mark_lost(4));
    assert_eq!((board.in_flight(), board.next_lost()), (5, Some(0)));
    board.on_retransmitted(0, stamp(20));
    assert_eq!((board.in_flight(), board.next_lost()), (6, Some(1)));
    assert_eq!(board.acknowledge(1_100, |_| {}), 1);
    assert_eq!(board.in_flight(), 5);
}

#[test]
fn a_segment_counts_once_all_of_it_has_arrived() {
    let mut board = board(3);
    assert_eq!(board.sack(1_100, 1_150, |_| {}), 0);
    assert_eq!(board.sack(1_160, 1_300, |_| {}), 1);
    assert_eq!(board.sack(1_150, 1_160, |_| {}), 1);
}

fn listed(board: &Scoreboard) -> Vec<u32> {
    core::iter::successors(board.oldest(), |&number| board.sent_after(number)).collect()
}

#[test]
fn a_retransmission_is_the_newest_of_the_list() {
    let mut board = board(4);
    board.mark_lost(1);
    board.on_retransmitted(1, stamp(9));
    assert_eq!(listed(&board), [0, 2, 3, 1]);
}

#[test]
fn the_list_goes_on_where_numbers_wrap() {
    for before in 1..=5 {
        let first = u32::MAX - before;
        let mut board = board_from(first, 6);
        let number = |n: u32| first.wrapping_add(n);
        assert_eq!(listed(&board), [0, 1, 2, 3, 4, 5].map(number));
        board.mark_lost(number(before));
        board.on_retransmitted(number(before), stamp(9));
        board.push(1_700, false, stamp(10));
        let order: Vec<u32> = (0..6).filter(|&n| n != before).chain([before, 6]).map(number).collect();
        assert_eq!(listed(&board), order);
        board.acknowledge(1_700, |_| {});
        assert!(listed(&board).is_empty());
        board.push(1_800, false, stamp(11));
        assert_eq!(listed(&board), [number(7)]);
    }
}

#[test]
fn a_peer_cannot_cut_what_it_reports_into_ever_more_ranges() {
    let mut hostile = board(10);
    for byte in (1_001..2_000).step_by(2) {
        hostile.sack(byte, byte + 1, |_| {});
    }
    assert_eq!(hostile.sacked_ranges().len(), 20);
    // A block that touches a range is still accepted, and so is one that covers them.
    assert_eq!(hostile.sack(1_002, 1_100, |_| {}), 0);
    assert_eq!(hostile.sacked_ranges().first(), Some((1_001, 1_100)));
    assert_eq!(hostile.sack(1_000, 2_000, |_| {}), 10);
    // A path that loses every second packet makes at most half as many ranges as segments.
    let mut honest = board(1_000);
    for n in (1..1_000).step_by(2) {
        assert_eq!(honest.sack(1_000 + n * 100, 1_100 + n * 100, |_| {}), 1);
    }
    assert_eq!((honest.sacked_out(), honest.sacked_ranges().len()), (500, 500));
}

#[derive(Clone, Debug)]
enum Operation {
    Send,
    Sack(u64, u64),
    Acknowledge(u64),
    Lose(u32),
    Retransmit,
    Undo,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => Just(Operation::Send),
        3 => (0u64..3_000, 0u64..800).prop_map(|(a, n)| Operation::Sack(1_000 + a, 1_000 + a + n)),
        2 => (0u64..900).prop_map(Operation::Acknowledge),
        2 => (0u32..30).prop_map(Operation::Lose),
        3 => Just(Operation::Retransmit),
        1 => Just(Operation::Undo),
    ]
}

proptest! {
    /// Counters match the marks. The list holds the segments neither arrived nor lost, in order of sending. The next
    /// lost segment is the lowest.
    #[test]
    fn counters_lists_and_hints_agree_with_the_marks(
        operations in proptest::collection::vec(operation(), 1..200),
        before_wrap in 0u32..60,
    ) {
        let mut board = Scoreboard::new(1_000, 100).numbered_from(0u32.wrapping_sub(before_wrap));
        for (time, operation) in operations.into_iter().enumerate() {
            let (una, nxt) = (board.una(), board.nxt());
            match operation {
                Operation::Send => board.push(nxt + if time % 7 == 0 { 37 } else { 100 }, false, stamp(time as u64)),
                Operation::Sack(start, end) => { board.sack(start, end, |_| {}); }
                Operation::Acknowledge(bytes) => { board.acknowledge((una + bytes).min(nxt), |_| {}); }
                Operation::Lose(offset) => { board.mark_lost(board.numbers().0.wrapping_add(offset)); }
                Operation::Retransmit => if let Some(number) = board.next_lost() {
                    board.on_retransmitted(number, stamp(time as u64));
                },
                Operation::Undo => board.unmark_lost(),
            }
            let counted = board.recount();
            prop_assert_eq!(counted, (board.sacked_out(), board.lost_out(), board.retrans_out()));
            let first = board.numbers().0;
            let numbers = (0..board.packets_out()).map(|n| first.wrapping_add(n));
            let lowest = numbers.clone().find(|&n| board.get(n).is_some_and(Segment::is_lost_and_waiting));
            prop_assert_eq!(board.next_lost(), lowest);
            let listed = listed(&board);
            let times: Vec<_> = listed.iter().filter_map(|&n| board.get(n)).map(|s| s.sent_at).collect();
            prop_assert!(times.windows(2).all(|w| w[0] <= w[1]));
            let expected: BTreeSet<u32> = numbers
                .filter(|&n| board.get(n).is_some_and(|s| !s.mark.contains(Mark::SACKED) && !s.is_lost_and_waiting()))
                .collect();
            prop_assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), expected);
        }
    }
}
