//! Begin and end of episodes: tail loss probes, F-RTO, late and repeated ACKs, recovery without SACK.

use super::*;

/// A flight of twenty segments. All but the last are acknowledged, and a probe was sent for the last.
fn probed(config: Config) -> Bench {
    let mut bench = Bench::filled(config, 20);
    bench.end = 3_000;
    bench.ack(2_900, &[]);
    bench.send();
    bench.fire();
    assert_eq!((bench.send(), bench.sender.totals.probes), (vec![-2_900], 1));
    // Another probe would only postpone the timeout.
    assert!(matches!(bench.sender.timer.due, Some((TimerKind::Retransmission, _))));
    bench
}

/// RFC 8985, Section 7.4.2: the D-SACK shows that nothing was lost. It arrives when nothing is in flight any more.
#[test]
fn a_probe_that_was_not_needed_costs_nothing() {
    let mut bench = probed(plain(DetectionName::RackTlp));
    bench.now += 10;
    bench.ack(3_000, &[]);
    bench.ack(3_000, &[(2_900, 3_000)]);
    assert_eq!(bench.sender.tail_probe.high_seq, None);
    bench.end = 1_000_000;
    bench.sender.wake();
    bench.send();
    let before = bench.window().cwnd;
    bench.now += 100;
    bench.ack(3_100, &[]);
    assert!(bench.window().cwnd >= before && bench.state() == CaState::Open);
}

/// Without the D-SACK the probe has repaired a loss.
#[test]
fn a_probe_that_was_needed_is_answered() {
    let mut bench = probed(plain(DetectionName::RackTlp));
    bench.end = 1_000_000;
    bench.now += 100;
    bench.ack(3_000, &[]);
    bench.send();
    bench.now += 100;
    bench.ack(3_100, &[]);
    assert_eq!(bench.window().ssthresh, 10);
}

/// The timeout was the response to the loss, so later ACKs cause none.
#[test]
fn a_timeout_ends_the_wait_for_the_probe() {
    let mut bench = probed(plain(DetectionName::RackTlp));
    while bench.state() != CaState::Loss {
        bench.fire();
        bench.send();
    }
    assert_eq!(bench.sender.tail_probe.high_seq, None);
}

/// RFC 5682, Section 3.1, step 2.b: if no new data may leave, retransmissions do so at once. Nagle held the new data
/// before the timeout.
#[test]
fn what_frto_cannot_send_does_not_hold_up_the_repair() {
    // Full segments and a small one are lost. Another small one waits.
    let mut bench =
        Bench::new(Config { initial_cwnd: 10, nagle: true, ..plain(DetectionName::Rfc6675) }, 1_000_000);
    bench.end = 1_350;
    assert_eq!(bench.send(), [1_000, 1_100, 1_200, 1_300]);
    bench.end = 1_370;
    bench.sender.wake();
    assert_eq!(bench.send(), []);
    bench.fire();
    bench.send();
    bench.now += 100;
    bench.ack(1_100, &[]);
    // Nagle does not hold the new data of step 2.b.
    assert_eq!(bench.send(), [1_350]);
    // If the window has no room for new data, the next hole is repaired.
    let mut bench = Bench::new(Config { initial_cwnd: 10, ..plain(DetectionName::Rfc6675) }, 350);
    bench.end = 1_300;
    assert_eq!(bench.send(), [1_000, 1_100, 1_200]);
    bench.end = 1_000_000;
    bench.fire();
    bench.send();
    bench.now += 100;
    bench.sender.peer.snd_wnd = 250;
    bench.ack(1_100, &[]);
    assert_eq!(bench.send().first(), Some(&-1_100));
}

/// F-RTO waits for its new data, although no more can leave.
#[test]
fn frto_goes_on_when_its_new_data_has_filled_the_window() {
    let mut bench = Bench::new(Config { initial_cwnd: 20, ..plain(DetectionName::Rfc6675) }, 2_000);
    assert_eq!(bench.send().len(), 20);
    bench.fire();
    assert_eq!(bench.send(), [-1_000]);
    bench.now += 100;
    bench.ack(1_100, &[]);
    assert_eq!(bench.send(), [3_000]);
    assert!(bench.sender.episode.frto);
    assert_eq!(bench.send(), []);
    assert!(bench.sender.episode.frto);
}

/// As Linux: a peer without memory closes its window without new numbers.
#[test]
fn a_window_may_close_without_news() {
    let mut bench = Bench::filled(plain(DetectionName::RackTlp), 20);
    let closing = AckInput {
        now: at(bench.now),
        seq: bench.seq,
        ack: 1_000,
        window: 0,
        sacks: &[],
        tsval: None,
        tsecr: None,
        echo_rtt: None,
        data: false,
        ece: false,
        accelerate: None,
    };
    bench.sender.on_ack(&closing);
    assert_eq!(bench.sender.peer.snd_wnd, 0);
}

/// RFC 5681, Section 2: a duplicate ACK acknowledges SND.UNA.
#[test]
fn acks_that_come_late_are_no_duplicates() {
    for sack in [false, true] {
        for detection in [DetectionName::Rfc6675, DetectionName::TcpDoor, DetectionName::RackTlp] {
            let mut bench = Bench::filled(Config { sack, ..plain(detection) }, 20);
            bench.ack(1_500, &[]);
            bench.send();
            for late in [1_100, 1_200, 1_300, 1_400] {
                assert_eq!(bench.ack(late, &[]), AckVerdict::Old);
            }
            assert_eq!(bench.sender.board.lost_total(), 0, "{detection} {sack}");
            assert_eq!((bench.send(), bench.state()), (vec![], CaState::Open), "{detection} {sack}");
        }
    }
}

/// RFC 6582, Section 3.2, step 2: duplicate ACKs at the end of an episode answer unnecessary retransmissions.
#[test]
fn without_sack_an_episode_ends_with_the_first_ack_above_it() {
    let mut bench =
        Bench::filled(Config { sack: false, timestamps: false, ..plain(DetectionName::RackTlp) }, 20);
    for _ in 0..3 {
        bench.ack(1_000, &[]);
        bench.send();
    }
    assert_eq!(bench.state(), CaState::Recovery);
    bench.now += 100;
    let recover = bench.sender.episode.high_seq;
    bench.ack(recover, &[]);
    bench.send();
    assert_eq!(bench.state(), CaState::Recovery);
    let ssthresh = bench.window().ssthresh;
    for _ in 0..5 {
        bench.ack(recover, &[]);
        bench.send();
    }
    assert_eq!((bench.sender.totals.recoveries, bench.window().ssthresh), (1, ssthresh));
    bench.ack(recover + 100, &[]);
    assert_eq!(bench.state(), CaState::Open);
}

/// RFC 3708: the original of a retransmitted segment arrives while a hole below it is open.
#[test]
fn a_dsack_above_the_window_edge_answers_its_retransmission() {
    let mut bench = Bench::filled(Config { timestamps: false, ..plain(DetectionName::Rfc6675) }, 20);
    let mut sent = Vec::new();
    for end in [1_900, 2_500, 3_000] {
        bench.ack(1_000, &[(1_200, end)]);
        sent.extend(bench.send());
    }
    assert!(sent.contains(&-1_000) && sent.contains(&-1_100), "{sent:?}");
    assert_eq!(bench.sender.episode.undo.retrans, Some(2));
    bench.ack(1_000, &[(1_100, 1_200), (1_100, 3_000)]);
    assert_eq!(bench.sender.episode.undo.retrans, Some(1));
}

/// As Linux: the probe is also scheduled when the pacer ends a round.
#[test]
fn the_tail_of_a_paced_sender_is_probed() {
    let config = Config { congestion: CongestionName::Bbr, ..plain(DetectionName::RackTlp) };
    let mut bench = Bench::new(Config { initial_cwnd: 10, ..config }, 1_000_000);
    assert_eq!(bench.send().len(), 10);
    bench.now = 100;
    bench.end = bench.sender.board.nxt() + 50;
    bench.ack(2_000, &[]);
    bench.sender.totals.segments_sent = 11;
    bench.sender.wake();
    bench.send();
    // All data has left, and the pacer would hold the next segment.
    bench.send();
    assert!(matches!(bench.sender.timer.due, Some((TimerKind::Probe, _))), "{:?}", bench.sender.timer.due);
}
