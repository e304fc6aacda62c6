use super::*;

const fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn router(me: StationId) -> Router {
    Router::new(me, 8, Routing::default(), Random::named(u64::from(me), "test"))
}

fn packet() -> Packet {
    Packet::default()
}

/// Takes the datagrams that a router has sent, each with its neighbour.
fn sent(out: &mut VecDeque<Out>) -> Vec<(Datagram, StationId)> {
    out.drain(..)
        .map(|out| match out {
            Out::Send(datagram, to) => (datagram, to),
            Out::Deliver(_) => panic!("delivered"),
        })
        .collect()
}

fn request(route: &[StationId], target: StationId, number: u32, hops_left: u8) -> Datagram {
    Datagram { kind: Kind::Request { target, number, hops_left }, route: Route::of(route) }
}

fn data(route: &[StationId]) -> Datagram {
    Datagram { kind: Kind::Data { packet: packet(), salvaged: 0 }, route: Route::of(route) }
}

#[test]
fn packets_wait_for_a_route_and_follow_it() {
    let (mut router, mut out) = (router(0), VecDeque::new());
    router.originate(at_ms(0), packet(), 3, &mut out);
    router.originate(at_ms(1), packet(), 3, &mut out);
    let asked = sent(&mut out);
    assert_eq!(asked.len(), 1);
    assert!(
        matches!(asked[0].0.kind, Kind::Request { target: 3, hops_left: 1, .. }) && asked[0].1 == EVERYBODY
    );
    router.timer(at_ms(30), &mut out);
    assert!(matches!(sent(&mut out)[0].0.kind, Kind::Request { target: 3, hops_left: 16, .. }));
    let found = Route::of(&[0, 1, 2, 3]);
    let reply = Datagram { kind: Kind::Reply { found }, route: found.reversed() };
    router.receive(at_ms(40), &reply, &mut out);
    let followed = sent(&mut out);
    assert_eq!(followed.len(), 2);
    assert!(
        followed.iter().all(|(datagram, to)| datagram.route == found && *to == 1 && !datagram.is_routing())
    );
    assert_eq!(router.next(), None);
}

#[test]
fn requests_are_passed_on_once_with_a_jitter_and_answered_by_the_target() {
    let (mut middle, mut out) = (router(1), VecDeque::new());
    middle.receive(at_ms(0), &request(&[0], 3, 1, 16), &mut out);
    middle.receive(at_ms(0), &request(&[0, 2], 3, 1, 15), &mut out);
    assert!(out.is_empty() && middle.next().unwrap() <= at_ms(10));
    middle.timer(at_ms(10), &mut out);
    let passed = sent(&mut out);
    assert_eq!((passed.len(), passed[0].0.route, passed[0].1), (1, Route::of(&[0, 1]), EVERYBODY));
    middle.receive(at_ms(20), &request(&[0], 3, 2, 1), &mut out);
    assert_eq!((middle.next(), out.len()), (None, 0), "only neighbours were asked");

    let mut target = router(3);
    target.receive(at_ms(0), &passed[0].0, &mut out);
    let replies = sent(&mut out);
    assert!(matches!(replies[0].0.kind, Kind::Reply { found } if found == Route::of(&[0, 1, 3])));
    assert_eq!((replies[0].0.route, replies[0].1), (Route::of(&[3, 1, 0]), 1));
}

#[test]
fn who_knows_a_route_answers_for_its_end_unless_it_would_be_a_circle() {
    let (mut middle, mut out) = (router(1), VecDeque::new());
    middle.receive(at_ms(0), &data(&[5, 1, 2, 3]), &mut out);
    assert_eq!(sent(&mut out)[0].1, 2);
    middle.receive(at_ms(1), &request(&[0], 3, 1, 16), &mut out);
    middle.timer(at_ms(11), &mut out);
    let replies = sent(&mut out);
    assert!(matches!(replies[0].0.kind, Kind::Reply { found } if found == Route::of(&[0, 1, 2, 3])));
    middle.receive(at_ms(20), &request(&[2], 3, 1, 16), &mut out);
    middle.timer(at_ms(30), &mut out);
    assert!(matches!(sent(&mut out)[0].0.kind, Kind::Request { .. }), "2 is on the way that is known");
}

#[test]
fn a_broken_link_is_told_and_the_packet_saved() {
    let (mut middle, mut out) = (router(1), VecDeque::new());
    middle.receive(at_ms(0), &data(&[1, 4, 3]).clone(), &mut out);
    sent(&mut out);
    middle.failed(at_ms(1), data(&[0, 1, 2, 3]), 2, true, &mut out);
    let said = sent(&mut out);
    assert!(matches!(said[0].0.kind, Kind::Error { link: (1, 2) }) && said[0].1 == 0);
    assert_eq!((said[1].0.route, said[1].1), (Route::of(&[1, 4, 3]), 4));
    middle.failed(at_ms(2), data(&[0, 1, 4, 3]), 4, true, &mut out);
    assert_eq!((sent(&mut out).len(), middle.counters().dropped), (1, 1));

    let mut source = router(0);
    source.receive(at_ms(0), &data(&[3, 2, 1, 0]).clone(), &mut VecDeque::new());
    source.receive(at_ms(1), &said[0].0, &mut out);
    source.originate(at_ms(2), packet(), 3, &mut out);
    assert!(matches!(sent(&mut out)[0].0.kind, Kind::Request { .. }), "the route was forgotten");
}

#[test]
fn a_source_keeps_its_packet_and_asks_anew() {
    let (mut source, mut out) = (router(0), VecDeque::new());
    source.failed(at_ms(0), data(&[0, 1, 3]), 1, true, &mut out);
    assert!(matches!(sent(&mut out)[0].0.kind, Kind::Request { target: 3, hops_left: 1, .. }));
    assert_eq!(source.counters().dropped, 0);
    // Nobody answers. The source asks while it keeps the packet, and then stops.
    let mut asked = 0;
    while let Some(at) = source.next() {
        assert!(at <= at_ms(60_000));
        source.timer(at, &mut out);
        asked += sent(&mut out).len();
    }
    assert_eq!((asked, source.counters().dropped), (7, 1));
}

#[test]
fn a_datagram_is_as_long_as_rfc_4728_writes_it() {
    assert_eq!(data(&[0, 1, 2, 3]).bytes(), packet().ip_len() as u32 + 4 + 4 + 8);
    assert_eq!(request(&[0, 1], 3, 1, 9).bytes(), 20 + 4 + 8 + 4);
}
