//! Tests of the loss test.

use super::*;

const RTT: Duration = Duration::from_millis(50);
const PATH: u64 = 100_000;

fn report(now: Instant, lost: u64, outstanding: u64, rtt: Duration) -> LossSample {
    LossSample {
        now,
        sent: now - RTT,
        delivered: SEGMENT - lost,
        lost,
        untimed: false,
        lost_sent: now - RTT,
        server_rtt: Duration::ZERO,
        limited: true,
        lowered: false,
        rate_known: true,
        outstanding,
        flows: 1,
        path: PATH,
        rtt,
        rtt_min: RTT,
    }
}

/// Reports a packet each millisecond. Every twentieth is lost while `loses` is true of the outstanding bytes. Returns
/// true if a buffer was found.
fn run(test: &mut LossTest, from_s: u64, to_s: u64, loses: impl Fn(u64) -> bool) -> bool {
    let mut is_buffer = false;
    for ms in from_s * 1_000..to_s * 1_000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let outstanding = if test.is_under_way() { PATH } else { PATH * 5 / 4 };
        let lost = if ms % 20 == 0 && loses(outstanding) { SEGMENT } else { 0 };
        test.on_report(&report(now, lost, outstanding, RTT + Duration::from_millis(10)));
        is_buffer |= test.is_buffer(now);
    }
    is_buffer
}

/// BBR doubles its rate once in 300 ms; the link's round trip is 50 ms. A twentieth is lost by chance. A test begins,
/// and it lets the rate grow.
#[test]
fn a_test_lets_a_sender_of_long_rounds_grow() {
    let mut test = LossTest::default();
    let (mut now, mut tested) = (Instant::ZERO + Duration::from_secs(1), 0);
    for round in 0..6 {
        let packets = 20 << round;
        for n in 0..packets {
            now += Duration::from_millis(300) / packets;
            let lost = if n % 20 == 7 { SEGMENT } else { 0 };
            let server_rtt = Duration::from_millis(250);
            let rtt = RTT + Duration::from_millis(10);
            test.on_report(&LossSample { server_rtt, ..report(now, lost, 2 * PATH, rtt) });
            if round > 0 && test.is_under_way() {
                tested += 1;
                assert!(test.lets_grow(1), "round {round}, packet {n}");
            }
        }
    }
    assert!(tested > 0);
}

/// The first round begins with the departure of the reported packet, not with the clock. Otherwise its rate is near
/// zero, and a flow paced by it stands still.
#[test]
fn the_first_round_has_the_rate_of_what_arrives() {
    let mut test = LossTest::default();
    for ms in 0..200 {
        test.on_report(&report(Instant::ZERO + Duration::from_millis(1_000_000 + ms), 0, PATH, RTT));
        assert!(test.rate() >= Rate::from_bytes_in(SEGMENT, RTT), "{:?} after {ms} ms", test.rate());
    }
}

#[test]
fn a_radio_link_that_loses_whatever_is_outstanding_is_no_buffer() {
    assert!(!run(&mut LossTest::default(), 1, 120, |_| true));
}

#[test]
fn a_buffer_that_overflows_again_is_one_after_two_tests() {
    let mut test = LossTest::default();
    assert!(!run(&mut test, 1, 2, |outstanding| outstanding > PATH), "the first test may be chance");
    assert!(run(&mut test, 2, 10, |outstanding| outstanding > PATH));
}

/// A varying link overflows a short buffer whatever is outstanding. A radio loses less than a sixth.
#[test]
fn what_loses_much_in_the_test_too_is_a_buffer() {
    let mut test = LossTest::default();
    let mut is_buffer = false;
    for ms in 1_000..20_000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let lost = if ms % 6 == 0 { SEGMENT } else { 0 };
        let outstanding = if test.is_under_way() { PATH } else { PATH * 5 / 4 };
        test.on_report(&report(now, lost, outstanding, RTT + Duration::from_millis(10)));
        is_buffer |= test.is_buffer(now);
    }
    assert!(is_buffer);
}

/// First one packet in twenty is lost, whatever is outstanding: the radio. Then one in six is lost unless less is
/// outstanding.
#[test]
fn what_was_taken_for_the_radios_is_tested_anew_when_much_more_is_lost() {
    let mut test = LossTest::default();
    assert!(!run(&mut test, 1, 5, |_| true));
    let mut found_at = None;
    for ms in 5_000..15_000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let outstanding = if test.is_under_way() { PATH } else { PATH * 5 / 4 };
        let lost = if ms % 6 == 0 && outstanding > PATH { SEGMENT } else { 0 };
        test.on_report(&report(now, lost, outstanding, RTT + Duration::from_millis(10)));
        found_at = found_at.or(test.is_buffer(now).then_some(ms));
    }
    assert!(found_at.is_some_and(|ms| ms < 9_000), "{found_at:?}");
}

#[test]
fn a_buffer_that_held_all_for_five_seconds_is_forgotten() {
    let standstill =
        |test: &mut LossTest, from_s| run(test, from_s, from_s + 2, |outstanding| outstanding > PATH);
    let (mut once, mut again) = (LossTest::default(), LossTest::default());
    standstill(&mut once, 1);
    standstill(&mut again, 1);
    assert!(!run(&mut once, 3, 9, |_| false));
    assert!(!run(&mut again, 3, 7, |_| false));
    assert!(!standstill(&mut once, 9));
    assert!(standstill(&mut again, 7), "in four it is not");
}
