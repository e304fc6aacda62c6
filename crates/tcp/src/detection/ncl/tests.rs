use super::super::rack::tests::{sample_at, stamp};
use super::*;
use crate::scoreboard::Mark;

/// Segments of 100 bytes from 1,000 on, sent a millisecond apart, as the sender would.
struct Flight {
    ncl: Ncl,
    board: Scoreboard,
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

impl Flight {
    fn new(name: DetectionName) -> Flight {
        Flight { ncl: Ncl::new(name, NclConfig::default()), board: Scoreboard::new(1_000, 100) }
    }

    /// With RTTs of 40 and 50 ms in the record.
    fn with_record(name: DetectionName) -> Flight {
        let mut flight = Flight::new(name);
        flight.ncl.rtt_rcd.add(ms(50));
        flight.ncl.rtt_rcd.add(ms(40));
        flight
    }

    fn send(&mut self, at_ms: u64) {
        let (number, end) = (self.board.numbers().1, self.board.nxt() + 100);
        self.board.push(end, false, stamp(at_ms));
        self.ncl.on_sent(&Sent { now: at(at_ms), number, end, retransmission: false, cwnd: 10 });
    }

    fn resend(&mut self, at_ms: u64, number: u32) {
        self.board.on_retransmitted(number, stamp(at_ms));
        let end = self.board.get(number).unwrap().end;
        self.ncl.on_sent(&Sent { now: at(at_ms), number, end, retransmission: true, cwnd: 10 });
    }

    fn sack(&mut self, at_ms: u64, first: u64) {
        let start = 1_000 + first * 100;
        let Flight { ncl, board } = self;
        board.sack(start, start + 100, |segment| ncl.on_delivered(at(at_ms), segment));
    }

    fn expire(&mut self, at_ms: u64) -> LossOutcome {
        self.ncl.on_timeout(&mut self.board, &sample_at(at_ms))
    }
}

#[test]
fn the_first_timer_retransmits_and_the_second_answers() {
    let mut flight = Flight::with_record(DetectionName::Ncl);
    (0..3).for_each(|n| flight.send(n));
    assert_eq!(flight.ncl.next_timeout(), Some(at(50) + Duration::from_nanos(1)));
    // "More than" tauRD.
    assert!(!flight.expire(50).marked);
    let outcome = flight
        .ncl
        .on_timeout(&mut flight.board, &LossSample { now: at(50) + Duration::from_nanos(1), ..sample_at(0) });
    assert_eq!(
        (outcome.marked, outcome.response, flight.board.next_lost()),
        (true, CongestionResponse::None, Some(0))
    );
    flight.resend(51, 0);
    (1..3).for_each(|n| flight.sack(51, n));
    assert_eq!(flight.ncl.next_timeout(), Some(at(91) + Duration::from_nanos(1)));
    assert_eq!(flight.expire(91).response, CongestionResponse::None);
    assert_eq!(flight.expire(92).response, CongestionResponse::Reduce);
    // A lost retransmission is left to the retransmission timeout.
    assert_eq!(flight.ncl.next_timeout(), None);
    assert!(!flight.expire(900).marked);
}

#[test]
fn an_ack_before_the_second_timer_ends_it() {
    let mut flight = Flight::with_record(DetectionName::Ncl);
    flight.send(0);
    flight.expire(51);
    flight.resend(51, 0);
    flight.sack(90, 0);
    assert_eq!((flight.expire(200).response, flight.ncl.next_timeout()), (CongestionResponse::None, None));
}

#[test]
fn losses_of_one_burst_are_one_sign() {
    let mut flight = Flight::with_record(DetectionName::Ncl);
    (0..4).for_each(|n| flight.send(n));
    for n in 0..3 {
        flight.expire(51 + n);
        flight.resend(51 + n, n as u32);
    }
    assert_eq!(flight.expire(92).response, CongestionResponse::Reduce);
    // 1 and 2 were in cdPkts, 3 in rdPkts.
    assert_eq!(
        (flight.expire(93).response, flight.expire(94).response),
        (CongestionResponse::None, CongestionResponse::None)
    );
    flight.resend(95, 3);
    assert_eq!(flight.expire(140).response, CongestionResponse::None);
    // 4 is sent later.
    flight.send(95);
    flight.expire(146);
    flight.resend(146, 4);
    assert_eq!(flight.expire(190).response, CongestionResponse::Reduce);
}

#[test]
fn the_record_takes_what_is_surely_of_the_original() {
    let mut flight = Flight::with_record(DetectionName::Ncl);
    (0..4).for_each(|n| flight.send(n));
    flight.sack(46, 1);
    assert_eq!(flight.ncl.tau_cd(), Some(ms(40)));
    flight.expire(60);
    for n in [0, 2, 3] {
        flight.resend(60, n);
    }
    // Within beta x tauCD = 32 ms: the original was late.
    flight.sack(92, 2);
    assert_eq!(flight.ncl.tau_rd(), Some(ms(90)));
    // A later ACK is ambiguous.
    flight.sack(93, 3);
    assert_eq!(flight.ncl.tau_rd(), Some(ms(90)));
}

#[test]
fn a_timeout_clears_the_lists() {
    let mut flight = Flight::with_record(DetectionName::Ncl);
    (0..3).for_each(|n| flight.send(n));
    flight.expire(51);
    flight.resend(51, 0);
    flight.ncl.on_retransmission_timeout();
    assert_eq!(flight.ncl.next_timeout(), None);
    assert!(!flight.expire(500).marked);
    // After the timeout it counts as new, but gives no RTT.
    flight.resend(500, 0);
    assert_eq!(flight.ncl.next_timeout(), Some(at(550) + Duration::from_nanos(1)));
    flight.sack(505, 0);
    assert_eq!(flight.ncl.tau_cd(), Some(ms(40)));
}

#[test]
fn with_a_second_rd_a_lost_retransmission_is_found() {
    let mut flight = Flight::with_record(DetectionName::NclSecondRd);
    flight.send(0);
    flight.expire(51);
    flight.resend(51, 0);
    assert_eq!(flight.expire(92).response, CongestionResponse::Reduce);
    assert!(flight.expire(102).marked);
    assert!(flight.board.get(0).unwrap().mark.contains(Mark::LOST));
    flight.resend(102, 0);
    // There was a response for it already.
    assert_eq!(flight.expire(143).response, CongestionResponse::None);
    // There is no third one.
    assert_eq!(flight.ncl.next_timeout(), None);
    flight.sack(144, 0);
    assert_eq!((flight.ncl.next_timeout(), flight.ncl.tau_rd()), (None, Some(ms(50))));
}

#[test]
fn without_a_sample_there_is_no_timer() {
    let mut flight = Flight::new(DetectionName::Ncl);
    flight.send(0);
    assert_eq!(flight.ncl.next_timeout(), None);
    assert!(!flight.expire(5_000).marked);
    flight.sack(5_001, 0);
    assert_eq!(flight.ncl.tau_rd(), Some(ms(5_001)));
}

#[test]
fn what_is_given_replaces_the_shortest_rtt() {
    let tau_cd = TauCd::Fixed(ms(7));
    let mut flight = Flight::with_record(DetectionName::Ncl);
    flight.ncl.config.tau_cd = tau_cd;
    flight.send(0);
    flight.expire(51);
    flight.resend(51, 0);
    assert_eq!(
        (flight.expire(58).response, flight.expire(59).response),
        (CongestionResponse::None, CongestionResponse::Reduce)
    );
}

/// Case I of Eq. (23): with a tau_CD of 0, beta x tau_CD leaves no ACK that gives a longer RTT.
#[test]
fn at_once_learns_only_where_beta_is_of_the_shortest_rtt() {
    for (learns, tau_rd) in [(false, ms(50)), (true, ms(71))] {
        let mut flight = Flight::with_record(DetectionName::Ncl);
        flight.ncl.config.tau_cd = TauCd::AtOnce { learns };
        flight.send(0);
        flight.expire(51);
        flight.resend(51, 0);
        assert_eq!(flight.expire(52).response, CongestionResponse::Reduce);
        // The original was late: its ACK comes within beta x 40 ms of the retransmission.
        flight.sack(71, 0);
        assert_eq!(flight.ncl.tau_rd(), Some(tau_rd), "{learns}");
    }
}

#[test]
fn at_least_the_shortest_rtt_is_never_at_once() {
    let mut flight = Flight::new(DetectionName::NclAdaptive);
    flight.ncl.config.tau_cd = TauCd::AtLeastShortest;
    for n in 0..200 {
        flight.send(100 * n);
        flight.sack(100 * n + 40 + 40 * (n % 2), n);
    }
    let sts = flight.ncl.sts.as_mut().unwrap();
    (0..40).for_each(|_| _ = sts.on_loss(20));
    assert_eq!(sts.tau_cd(), Some(Duration::ZERO));
    assert_eq!(flight.ncl.tau_cd(), flight.ncl.shortest());
    assert!(flight.ncl.shortest() > Some(ms(30)));
}
