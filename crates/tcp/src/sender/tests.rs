use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::timer::TimerKind;
use super::*;
use crate::config::Hack1Changes;
use crate::congestion::{CaState, CongestionName, Window};
use crate::detection::DetectionName;
use crate::reduction::ReductionName;
use crate::schedule::ScheduleName;

mod episodes;
mod suppression;

/// A sender with segments of 100 bytes from position 1,000, and an RTT of 100 ms.
struct Bench {
    sender: Sender,
    now: u64,
    end: u64,
    seq: u64,
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

impl Bench {
    fn new(config: Config, window: u64) -> Bench {
        let mut sender = Sender::new(&config, 1, 1_000);
        let agreed = NegotiatedOptions { mss: 100, sack: config.sack, timestamps: config.timestamps };
        sender.on_established(agreed, 1_000, window, 0);
        sender.rtt.on_sample(Duration::from_millis(100), 1_000, 1_000);
        sender.rtt.on_min_sample(at(0), Duration::from_millis(100));
        sender.wake();
        Bench { sender, now: 0, end: 1_000_000, seq: 0 }
    }

    /// A sender in congestion avoidance with a window of `packets`, all of them in flight.
    fn filled(config: Config, packets: u32) -> Bench {
        let mut bench = Bench::new(Config { initial_cwnd: packets, ..config }, 1_000_000);
        bench.sender.control.window.ssthresh = packets;
        assert_eq!(bench.send().len(), packets as usize);
        bench.now = 100;
        bench
    }

    /// Polls until nothing may leave. Returns start positions, negated for retransmissions.
    fn send(&mut self) -> Vec<i64> {
        let supply = Supply { end: self.end, fin: false, blocked: false, piece: u64::MAX };
        let poll = || self.sender.poll(at(self.now), supply);
        std::iter::from_fn(poll)
            .map(|t| if t.retransmission { -(t.start as i64) } else { t.start as i64 })
            .collect()
    }

    fn ack(&mut self, ack: u64, sacks: &[(u64, u64)]) -> AckVerdict {
        self.ack_echo(ack, sacks, None)
    }

    fn ack_echo(&mut self, ack: u64, sacks: &[(u64, u64)], tsecr: Option<u32>) -> AckVerdict {
        self.sender.on_ack(&AckInput {
            now: at(self.now),
            seq: self.seq,
            ack,
            window: self.sender.peer.snd_wnd,
            sacks,
            tsval: None,
            tsecr,
            echo_rtt: None,
            data: false,
            ece: false,
            accelerate: None,
        })
    }

    fn state(&self) -> CaState {
        self.sender.episode.state
    }

    fn window(&self) -> Window {
        self.sender.control.window
    }

    fn fire(&mut self) {
        let due = self.sender.timeout().expect("a timer");
        self.now = self.now.max(due.as_nanos().div_ceil(1_000_000));
        assert!(self.sender.on_timeout(at(self.now), true));
    }
}

fn plain(detection: DetectionName) -> Config {
    Config { detection, congestion: CongestionName::Reno, ..Config::default() }
}

#[test]
fn a_loss_halves_the_window_over_one_round_trip() {
    for detection in [DetectionName::Rfc6675, DetectionName::Fack, DetectionName::RackTlp] {
        let mut bench = Bench::filled(plain(detection), 20);
        // The first segment is lost. 19 duplicate ACKs arrive one by one.
        let mut sent = Vec::new();
        for n in 1..20 {
            bench.now += 1;
            bench.ack(1_000, &[(1_100, 1_100 + n * 100)]);
            sent.extend(bench.send());
        }
        assert_eq!(bench.state(), CaState::Recovery, "{detection}");
        assert_eq!(sent.iter().filter(|&&start| start < 0).count(), 1, "{detection}: {sent:?}");
        // Limited transmit for the first duplicates, then one segment for every two.
        assert!((9..=12).contains(&sent.len()), "{detection}: {sent:?}");
        bench.now += 90;
        let nxt = bench.sender.board.nxt();
        bench.ack(nxt, &[]);
        // Half, and one for the window that this ACK acknowledges.
        assert_eq!((bench.state(), bench.window().cwnd), (CaState::Open, 11), "{detection}");
    }
}

/// RFC 6298, Section 5; RFC 5682, Section 3.1: a timeout with a real loss.
#[test]
fn a_timeout_sends_the_first_segment_and_backs_off() {
    let mut bench = Bench::filled(plain(DetectionName::Rfc6675), 20);
    bench.fire();
    assert_eq!(bench.now, 300);
    assert_eq!(bench.send(), [-1_000]);
    assert_eq!((bench.window().cwnd, bench.window().ssthresh), (1, 10));
    assert_eq!((bench.sender.in_flight(), bench.sender.board.lost_out()), (1, 20));
    bench.fire();
    assert_eq!((bench.now, bench.send()), (900, vec![-1_000]));
    // Its ACK causes new data (F-RTO, step 2.b), a duplicate ACK causes retransmissions (step 3.a).
    bench.now += 100;
    bench.ack(1_100, &[]);
    assert_eq!(bench.send(), [3_000, 3_100]);
    bench.now += 100;
    bench.ack(1_100, &[(3_000, 3_100)]);
    let sent = bench.send();
    assert!(!sent.is_empty() && sent.iter().all(|&start| start < 0), "{sent:?}");
}

/// As Linux: if a peer closes its window, data in flight probes it, and each probe lowers ssthresh.
#[test]
fn timeouts_into_a_closed_window_are_probes() {
    let mut bench = Bench::filled(plain(DetectionName::Rfc6675), 20);
    bench.sender.peer.snd_wnd = 0;
    bench.fire();
    assert_eq!((bench.send(), bench.window().ssthresh), (vec![-1_000], 10));
    bench.fire();
    assert_eq!((bench.send(), bench.window().ssthresh), (vec![-1_000], 2));
    assert_eq!((bench.sender.totals.timeouts, bench.sender.totals.segments_retransmitted), (0, 2));
}

/// The schedule allows one round trip of data beyond the offered window, but not while a segment is missing.
#[test]
fn the_schedule_goes_beyond_the_window_until_there_is_a_hole() {
    let config = Config { schedule: ScheduleName::Accelerated, ..plain(DetectionName::RackTlp) };
    let mut bench = Bench::new(Config { initial_cwnd: 1_000, ..config }, 1_000);
    bench.send();
    for n in 1..=60 {
        bench.now = 100 + 10 * n;
        bench.ack(1_000 + 100 * n, &[]);
        bench.send();
    }
    let outstanding = |bench: &Bench| bench.sender.board.nxt() - bench.sender.board.una();
    // 100 bytes in 10 ms are 1,000 bytes in a round trip.
    assert_eq!(outstanding(&bench), 2_000);
    bench.ack(7_000, &[(7_100, 7_200)]);
    assert_eq!(bench.sender.peer.offered_end(bench.sender.board.una()), 7_000 + 1_000);
}

/// RFC 5682, Section 3.1, step 3.b: an ACK of a segment sent only once shows that the timeout was spurious.
#[test]
fn a_wrong_timeout_is_taken_back() {
    let mut bench = Bench::filled(Config { timestamps: false, ..plain(DetectionName::RackTlp) }, 20);
    while bench.state() != CaState::Loss {
        bench.fire();
        bench.send();
    }
    bench.now += 10;
    bench.ack(1_200, &[]);
    assert_eq!((bench.state(), bench.window().cwnd >= 20), (CaState::Open, true));
    assert_eq!(bench.sender.totals.undos, 1);
}

/// Without SACK the same ACK may cover data that the receiver had held before. The loss was real.
#[test]
fn without_sack_an_ack_of_a_retransmission_proves_no_wrong_timeout() {
    let mut bench =
        Bench::filled(Config { sack: false, timestamps: false, ..plain(DetectionName::RackTlp) }, 20);
    while bench.state() != CaState::Loss {
        bench.fire();
        bench.send();
    }
    bench.now += 100;
    bench.ack(1_200, &[]);
    assert_eq!((bench.state(), bench.sender.totals.undos), (CaState::Loss, 0));
}

/// RFC 4015 with timestamps: the ACK answers the original.
#[test]
fn an_echo_from_before_the_retransmission_takes_the_reduction_back() {
    let mut bench = Bench::filled(plain(DetectionName::Rfc6675), 20);
    bench.ack(1_000, &[(1_100, 1_500)]);
    assert!(bench.send().contains(&-1_000));
    let before = bench.sender.timestamp(at(50));
    bench.now += 5;
    bench.ack_echo(3_000, &[], Some(before));
    assert_eq!((bench.state(), bench.window().cwnd >= 20), (CaState::Open, true));
}

/// RFC 3708: a D-SACK for every retransmission.
#[test]
fn a_dsack_takes_the_reduction_back() {
    let mut bench = Bench::filled(Config { timestamps: false, ..plain(DetectionName::Rfc6675) }, 20);
    bench.ack(1_000, &[(1_100, 1_500)]);
    assert!(bench.send().contains(&-1_000));
    bench.now += 5;
    // The original arrives, so all data up to 1,500 is there. Then the copy is reported.
    bench.ack(1_500, &[]);
    bench.now += 95;
    bench.ack(1_500, &[(1_000, 1_100), (1_600, 1_700)]);
    assert_eq!(bench.sender.totals.undos, 1);
    assert!(bench.window().cwnd >= 20);
}

#[test]
fn new_data_goes_beyond_the_window_only_in_recovery_and_after_the_holes() {
    let config = Config {
        opportunistic: true,
        reduction: ReductionName::Qarr,
        initial_cwnd: 20,
        ..plain(DetectionName::Fack)
    };
    for (opportunistic, expected) in [(false, 0), (true, 9)] {
        // The window is exactly filled by the data in flight.
        let mut bench = Bench::new(Config { opportunistic, ..config }, 2_000);
        assert_eq!(bench.send().len(), 20);
        bench.now = 100;
        bench.ack(1_000, &[(1_100, 1_900)]);
        let sent = bench.send();
        assert_eq!(sent[0], -1_000);
        // One hole and eight segments behind it.
        assert_eq!(sent.iter().filter(|&&start| start >= 3_000).count(), expected, "{sent:?}");
        assert_eq!(bench.sender.totals.beyond_window, expected as u64);
    }
}

/// RFC 6675, Section 4, NextSeg, rules (1), (3) and (4). The window leaves no room for rule (2).
#[test]
fn when_nothing_else_may_go_what_is_not_known_to_be_lost_goes_again() {
    let config = Config { reduction: ReductionName::Qarr, initial_cwnd: 20, ..plain(DetectionName::Rfc6675) };
    let mut bench = Bench::new(config, 2_000);
    assert_eq!(bench.send().len(), 20);
    bench.now = 100;
    // One hole below four segments that have arrived, another below a single one.
    bench.ack(1_000, &[(1_100, 1_500), (1_600, 1_700)]);
    assert_eq!(bench.send(), [-1_000, -1_500, -2_900]);
    // The next hole is retransmitted, too, but the rescue happens once in a recovery.
    bench.ack(1_000, &[(1_100, 1_500), (1_600, 1_700), (1_800, 1_900)]);
    assert_eq!(bench.send(), [-1_700]);
}

#[test]
fn hack1_sends_the_first_segment_again_after_three_duplicates_without_news() {
    for hack1 in [false, true] {
        let config = Config {
            hack1,
            opportunistic: true,
            reduction: ReductionName::Qarr,
            ..plain(DetectionName::Fack)
        };
        let mut bench = Bench::filled(config, 20);
        for n in 4..20 {
            bench.ack(1_000, &[(1_100, 1_100 + n * 100)]);
            bench.send();
        }
        // A round trip later the data beyond the window causes ACKs without news.
        bench.now += 110;
        let mut sent = Vec::new();
        for _ in 0..3 {
            bench.ack(1_000, &[(1_100, 3_000)]);
            sent.extend(bench.send());
        }
        assert_eq!(sent.contains(&-1_000), hack1, "{sent:?}");
        assert_eq!(bench.sender.totals.hack1, u64::from(hack1));
    }
}

/// In the printed form the fourth duplicate without news is the first that counts. Each of our changes can be enabled
/// alone.
#[test]
fn what_is_ours_in_hack1_has_a_switch_each() {
    let of = |hack1_text: bool, hack1_changes: Hack1Changes| {
        let config = Config {
            hack1: true,
            hack1_text,
            hack1_changes,
            opportunistic: true,
            reduction: ReductionName::Qarr,
            initial_cwnd: 20,
            ..plain(DetectionName::Fack)
        };
        let mut bench = Bench::new(config, 2_000);
        bench.send();
        bench.now = 100;
        for n in 4..20 {
            bench.ack(1_000, &[(1_100, 1_100 + n * 100)]);
            bench.send();
        }
        assert!(bench.sender.totals.beyond_window > 0);
        bench.now += 110;
        let lost = bench.sender.board.lost_total();
        let mut sent_again = Vec::new();
        for number in 1..=3 {
            bench.ack(1_000, &[(1_100, 3_000)]);
            sent_again.extend(bench.send().contains(&-1_000).then_some(number));
        }
        let marked = bench.sender.board.lost_total() > lost + sent_again.len() as u64;
        bench.ack(1_000, &[(1_100, 3_000)]);
        sent_again.extend(bench.send().contains(&-1_000).then_some(4));
        let holds = !bench.sender.hack1.may_exceed_window(1_000);
        (sent_again, marked, holds)
    };
    let (text, ours) = (Hack1Changes::NONE, Hack1Changes::ALL);
    assert_eq!(of(true, text), (vec![4], false, false));
    assert_eq!(of(true, Hack1Changes { at_third: true, ..text }), (vec![3], false, false));
    assert_eq!(of(true, Hack1Changes { marks: true, ..text }), (vec![4], true, false));
    assert_eq!(of(true, Hack1Changes { holds: true, ..text }), (vec![4], false, true));
    assert_eq!(of(true, ours), of(false, text), "all of them are what we recommend");
    assert_eq!(of(true, ours), (vec![3], true, true));
}

#[test]
fn an_old_ack_and_an_ack_of_the_future_are_told_apart() {
    let mut bench = Bench::filled(plain(DetectionName::RackTlp), 20);
    assert_eq!(bench.ack(1_500, &[]), AckVerdict::Taken);
    assert_eq!(bench.ack(1_400, &[]), AckVerdict::Old);
    assert_eq!(bench.ack(1_000_000, &[]), AckVerdict::Unsent);
    bench.sender.totals.bytes_acked = 200;
    assert_eq!(bench.ack(1_299, &[]), AckVerdict::TooOld, "below the first byte");
    assert_eq!(bench.ack(1_300, &[]), AckVerdict::Old);
    bench.sender.peer.max_window = 100;
    assert_eq!(bench.ack(1_300, &[]), AckVerdict::TooOld);
}

#[test]
fn without_sack_three_duplicates_and_partial_acks_tell_of_losses() {
    let mut bench = Bench::filled(Config { sack: false, ..plain(DetectionName::RackTlp) }, 20);
    for _ in 0..2 {
        bench.ack(1_000, &[]);
        // Limited transmit (RFC 3042).
        assert_eq!(bench.send().len(), 1);
    }
    bench.ack(1_000, &[]);
    assert_eq!(bench.send(), [-1_000]);
    assert_eq!(bench.state(), CaState::Recovery);
    bench.now += 100;
    bench.ack(1_500, &[]);
    assert_eq!(bench.send().first(), Some(&-1_500));
}

#[test]
fn the_window_shrinks_after_an_idle_time() {
    let mut bench = Bench::filled(plain(DetectionName::RackTlp), 40);
    bench.sender.config.initial_cwnd = 10;
    bench.end = 5_000;
    bench.ack(5_000, &[]);
    bench.send();
    bench.now += 1_000;
    bench.end = 1_000_000;
    bench.sender.wake();
    let cwnd = bench.send().len();
    // Halved for every timeout that has passed, but not below the initial window.
    assert_eq!(cwnd, 10);
}

/// Duration of two hundred paced segments, a third of a millisecond each, relative to the duration at their rate. Each
/// leaves `late` after its departure time.
fn paced_late(late: Duration) -> f64 {
    let mut bench = Bench::new(Config { congestion: CongestionName::Bbr, ..Config::default() }, 1_000_000);
    assert_eq!(bench.send().len(), 10);
    bench.now = 100;
    bench.ack(2_000, &[]);
    let share = bench.sender.control.congestion.pacing_rate().expect("BBR paces").time_for(10);
    assert!((300..400).contains(&share.as_micros()), "{share:?}");
    let Sender { pacer, control, .. } = &mut bench.sender;
    pacer.next_departure = at(1_000);
    for _ in 0..200 {
        pacer.on_sent(pacer.next_departure + late, 10, control, false);
    }
    let took = pacer.next_departure.saturating_since(at(1_000));
    took.as_secs_f64() / (share * 200).as_secs_f64()
}

#[test]
fn a_paced_sender_that_wakes_late_keeps_its_rate_within_half_a_millisecond() {
    let (punctual, late, too_late) = (0, 480, 600);
    let rates = [punctual, late, too_late].map(|us| paced_late(Duration::from_micros(us)));
    assert!(rates[0] == 1.0 && rates[1] == 1.0 && rates[2] > 1.1, "{rates:?}");
}

proptest! {
    /// For any ACKs in any order. The data in flight never exceeds cwnd, unless cwnd shrank. No data goes beyond the
    /// peer's window, and pipe matches the scoreboard.
    #[test]
    fn the_send_rule_holds(
        acks in proptest::collection::vec((0u64..30, 0u64..60, 1u64..20, 0u64..40), 1..80),
        detection in proptest::sample::select(DetectionName::ALL),
        reduction in proptest::sample::select(ReductionName::ALL),
        congestion in proptest::sample::select(CongestionName::ALL),
        window in 2_000u64..20_000,
    ) {
        let mut bench = Bench::new(Config { detection, reduction, congestion, ..Config::default() }, window);
        bench.send();
        for (advance, from, len, wait) in acks {
            bench.now += wait;
            if bench.sender.timeout().is_some_and(|due| due <= at(bench.now)) {
                bench.sender.on_timeout(at(bench.now), true);
                bench.send();
            }
            let una = bench.sender.board.una();
            let ack = (una + advance / 10 * 100).min(bench.sender.board.nxt());
            bench.ack(ack, &[(ack + from * 100, ack + (from + len) * 100)]);
            let before = bench.sender.in_flight();
            let sent = bench.send();
            let board = &bench.sender.board;
            prop_assert!(board.nxt() <= board.una() + window || sent.is_empty());
            let (cwnd, in_flight) = (bench.window().cwnd, bench.sender.in_flight());
            // One segment may leave whatever cwnd says: the fast retransmit, the first after a timeout, or the tail
            // loss probe.
            prop_assert!(in_flight <= cwnd.max(before) + 1, "{in_flight} {cwnd} {before}");
            prop_assert_eq!(board.recount(), (board.sacked_out(), board.lost_out(), board.retrans_out()));
            let pipe = board.packets_out() + board.retrans_out() - board.sacked_out() - board.lost_out();
            prop_assert_eq!(pipe, in_flight);
        }
    }
}
