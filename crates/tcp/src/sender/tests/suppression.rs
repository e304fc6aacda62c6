//! Loss events that are hidden from the congestion control.

use super::*;

/// 40 segments in flight, limited by the receive window. cwnd would allow `cwnd`.
fn bench(schedule: ScheduleName, cwnd: u32) -> Bench {
    let config = Config { schedule, initial_cwnd: cwnd, ..plain(DetectionName::RackTlp) };
    let mut bench = Bench::new(config, 4_000);
    bench.send();
    bench.now = 100;
    bench.ack(2_000, &[]);
    bench.send();
    bench
}

/// Loses the first segment of a flight and delivers its repair. Returns cwnd during the recovery, and ssthresh.
fn lose_one(bench: &mut Bench) -> (u32, u32) {
    bench.now += 100;
    bench.ack(2_000, &[(2_100, 2_600)]);
    assert_eq!(bench.state(), CaState::Recovery);
    assert!(bench.send().contains(&-2_000));
    let during = bench.window().cwnd;
    bench.now += 100;
    let nxt = bench.sender.board.nxt();
    bench.ack(nxt, &[]);
    assert_eq!(bench.state(), CaState::Open);
    (during, bench.window().ssthresh)
}

#[test]
fn a_loss_that_is_repaired_in_time_changes_no_window() {
    let mut quiet = bench(ScheduleName::Suppressing, 1_000);
    let before = quiet.window();
    assert_eq!(lose_one(&mut quiet), (before.cwnd, before.ssthresh));
    assert!(quiet.window().cwnd >= before.cwnd && !quiet.sender.episode.take_cwr());
    let mut heard = bench(ScheduleName::Accelerated, 1_000);
    let (during, ssthresh) = lose_one(&mut heard);
    assert!(during < before.cwnd && ssthresh < before.cwnd, "{during} {ssthresh}");
}

/// Nothing but cwnd bounds the data in flight.
#[test]
fn where_cwnd_binds_a_loss_is_answered() {
    let mut bench = bench(ScheduleName::Suppressing, 20);
    let before = bench.window().cwnd;
    let (during, ssthresh) = lose_one(&mut bench);
    assert!(during < before && ssthresh < before, "{during} {ssthresh}");
}

/// Eqs. (13), (16): the timeout leaves time for a repair. A loss that is not repaired is answered.
#[test]
fn the_timeout_leaves_room_for_a_repair_and_is_answered() {
    let [mut quiet, heard] =
        [ScheduleName::Suppressing, ScheduleName::Accelerated].map(|schedule| bench(schedule, 1_000));
    assert_eq!(quiet.sender.rto(), heard.sender.rto() + quiet.sender.rtt.srtt());
    assert!(quiet.sender.rtt.srtt() >= Duration::from_millis(100));
    while quiet.state() != CaState::Loss {
        quiet.fire();
        quiet.send();
    }
    assert!(quiet.window().cwnd <= 2 && quiet.window().ssthresh < 1_000);
}

/// A mark is no loss (RFC 3168, Section 6.1.2).
#[test]
fn a_mark_is_answered() {
    let mut bench = bench(ScheduleName::Suppressing, 1_000);
    let before = bench.window().cwnd;
    bench.sender.on_congestion_echo(at(200));
    assert!(bench.window().ssthresh < before && bench.sender.episode.take_cwr());
}
