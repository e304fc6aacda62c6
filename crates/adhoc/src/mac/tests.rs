use super::*;

fn at_us(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

fn mac(rts: bool) -> Mac {
    Mac::new(0, 3, Timing { rts, ..Timing::default() }, Random::named(1, "test"))
}

fn job(to: StationId) -> Job {
    Job { datagram: DatagramId::numbered(9), to, bytes: 1_000 }
}

fn transmitted(mac: &mut Mac, at: Instant) -> Frame {
    match mac.timer(at) {
        Step::Transmit(frame) => frame,
        step => panic!("{step:?} at {at:?}"),
    }
}

fn from(from: StationId, to: StationId, kind: FrameKind, reserves: Duration) -> Frame {
    Frame { from, to, kind, airtime: Duration::ZERO, reserves }
}

#[test]
fn an_idle_medium_is_taken_after_difs_and_data_is_acknowledged() {
    let mut mac = mac(false);
    mac.offer(at_us(0), job(1));
    assert_eq!(mac.next(), Some(at_us(50)));
    let frame = transmitted(&mut mac, at_us(50));
    assert!(matches!(frame.kind, FrameKind::Data { .. }) && frame.to == 1);
    assert_eq!(mac.transmitted(at_us(5_000)), Up::None);
    // SIFS, ACK, a slot.
    assert_eq!(mac.next(), Some(at_us(5_334)));
    assert_eq!(mac.received(at_us(5_314), &from(1, 0, FrameKind::Ack, Duration::ZERO)), Up::Done(job(1)));
    assert!(mac.is_free() && mac.next().is_none());
}

#[test]
fn the_back_off_stands_still_while_the_medium_is_busy() {
    let mut mac = mac(false);
    mac.busy(at_us(0));
    mac.offer(at_us(10), job(1));
    mac.slots = 5;
    assert_eq!(mac.next(), None);
    mac.idle(at_us(1_000));
    assert_eq!(mac.next(), Some(at_us(1_000 + 50 + 100)));
    // Two slots and a half pass.
    mac.busy(at_us(1_100));
    assert_eq!((mac.next(), mac.slots), (None, 3));
    mac.idle(at_us(2_000));
    assert_eq!(mac.next(), Some(at_us(2_000 + 50 + 60)));
    // Another station's turn comes at the same instant. Neither hears the other in time.
    mac.busy(at_us(2_110));
    assert_eq!(mac.next(), Some(at_us(2_110)));
    transmitted(&mut mac, at_us(2_110));
}

#[test]
fn what_is_not_understood_makes_it_wait_longer_and_a_reservation_too() {
    let mut mac = mac(false);
    mac.offer(at_us(0), job(1));
    mac.busy(at_us(10));
    mac.slots = 1;
    mac.garbled();
    mac.idle(at_us(500));
    assert_eq!(mac.next(), Some(at_us(500 + 364 + 20)));
    mac.busy(at_us(600));
    mac.received(at_us(700), &from(1, 2, FrameKind::Cts, Duration::from_micros(3_000)));
    mac.idle(at_us(700));
    assert_eq!(mac.next(), Some(at_us(3_700 + 50 + 20)));
}

#[test]
fn an_rts_is_answered_unless_the_medium_is_reserved() {
    let mut mac = mac(true);
    let rts = from(1, 0, FrameKind::Rts, Duration::from_micros(5_000));
    mac.received(at_us(0), &rts);
    assert_eq!(mac.next(), Some(at_us(10)));
    let cts = transmitted(&mut mac, at_us(10));
    assert_eq!(
        (cts.kind, cts.to, cts.reserves),
        (FrameKind::Cts, 1, Duration::from_micros(5_000 - 10 - 304))
    );
    mac.transmitted(at_us(314));
    mac.received(at_us(400), &from(2, 1, FrameKind::Rts, Duration::from_micros(5_000)));
    mac.received(at_us(800), &rts);
    assert_eq!(mac.next(), None);
}

#[test]
fn a_frame_that_comes_twice_is_acknowledged_twice_and_delivered_once() {
    let mut mac = mac(true);
    let kind = |number| FrameKind::Data { datagram: DatagramId::numbered(4), number };
    for (at, number, up) in [(0, 1, true), (9_000, 1, false), (18_000, 2, true)] {
        let heard = mac.received(at_us(at), &from(2, 0, kind(number), Duration::ZERO));
        assert_eq!(heard != Up::None, up, "at {at}");
        assert_eq!(transmitted(&mut mac, at_us(at + 10)).kind, FrameKind::Ack);
        mac.transmitted(at_us(at + 314));
    }
}

#[test]
fn the_window_doubles_and_the_job_is_given_up() {
    let mut mac = mac(false);
    mac.offer(at_us(0), job(1));
    let mut windows = Vec::new();
    loop {
        windows.push(mac.cw);
        let turn = mac.next().unwrap();
        transmitted(&mut mac, turn);
        mac.transmitted(turn + Duration::from_millis(5));
        let timeout = mac.next().unwrap();
        match mac.timer(timeout) {
            Step::None => {}
            Step::GaveUp(gone) => break assert_eq!(gone, job(1)),
            Step::Transmit(frame) => panic!("{frame:?}"),
        }
    }
    assert_eq!(windows, [31, 63, 127, 255, 511, 1_023, 1_023]);
    assert!(mac.is_free() && mac.cw == 31);
}
