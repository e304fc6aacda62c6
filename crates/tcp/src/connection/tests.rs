use core::net::{Ipv4Addr, SocketAddr};
use std::vec::Vec;

use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, Payload, Seq, TcpOptionsRepr, TcpRepr};

use super::*;
use crate::CongestionName;
use crate::config::{KeepAlive, ReceiveBuffer};

mod ecn;

fn key() -> FlowKey {
    let [a, b] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 80)));
    FlowKey::new(a, b)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn segment(seq: u32, ack: Seq, flags: Flags, len: u32) -> Packet {
    let repr = TcpRepr { seq: Seq(seq), ack, flags, window: 1_000, ..TcpRepr::default() };
    Packet::build_tcp(key().reversed(), &repr, Payload::Length(len))
}

fn with_time(seq: u32, ack: Seq, flags: Flags, len: u32, value: u32) -> Packet {
    let options = TcpOptionsRepr { timestamps: Some((value, 0)), ..TcpOptionsRepr::default() };
    let repr = TcpRepr { seq: Seq(seq), ack, flags, window: 1_000, options, ..TcpRepr::default() };
    Packet::build_tcp(key().reversed(), &repr, Payload::Length(len))
}

#[track_caller]
fn only(connection: &mut Connection, now: Instant) -> Packet {
    let packet = connection.poll_transmit(now).expect("a packet");
    assert!(connection.poll_transmit(now).is_none(), "one packet only");
    packet
}

fn flags(packet: &Packet) -> Flags {
    packet.tcp().map(|tcp| tcp.flags()).unwrap_or_default()
}

/// Opens actively. The peer's SYN has number 100 and no options. Also returns our first data number.
fn open(config: Config) -> (Connection, Seq) {
    let mut connection = Connection::connect(&config, key(), 1, at(0));
    let syn = only(&mut connection, at(0));
    let iss = syn.tcp().unwrap().seq();
    connection.handle_packet(at(20), &segment(100, iss.add(1), Flags::SYN | Flags::ACK, 0));
    assert_eq!(connection.state(), State::Established);
    assert_eq!(flags(&only(&mut connection, at(20))), Flags::ACK);
    (connection, iss.add(1))
}

/// As `open`, with timestamps. The peer's SYN at 20 ms carries `value`.
fn open_at_time(value: u32) -> (Connection, Seq) {
    let mut connection = Connection::connect(&Config::default(), key(), 1, at(0));
    let first = only(&mut connection, at(0)).tcp().unwrap().seq().add(1);
    connection.handle_packet(at(20), &with_time(100, first, Flags::SYN | Flags::ACK, 0, value));
    only(&mut connection, at(20));
    (connection, first)
}

#[test]
fn a_syn_goes_again_after_one_second_then_two() {
    let mut connection = Connection::connect(&Config::default(), key(), 1, at(0));
    only(&mut connection, at(0));
    for due in [1_000, 3_000, 7_000] {
        assert_eq!(connection.poll_timeout(), Some(at(due)));
        connection.handle_timeout(at(due - 1));
        assert!(connection.poll_transmit(at(due - 1)).is_none());
        connection.handle_timeout(at(due));
        assert_eq!(flags(&only(&mut connection, at(due))), Flags::SYN);
    }
}

#[test]
fn nobody_answers() {
    let mut connection = Connection::connect(&Config::default(), key(), 1, at(0));
    let mut syns = 0;
    while let Some(due) = connection.poll_timeout() {
        connection.handle_timeout(due);
        syns += u32::from(connection.poll_transmit(due.max(at(0))).is_some());
    }
    assert_eq!((syns, connection.close_reason()), (7, Some(CloseReason::TimedOut)));
}

#[test]
fn a_refusal_is_told() {
    let mut connection = Connection::connect(&Config::default(), key(), 1, at(0));
    let iss = only(&mut connection, at(0)).tcp().unwrap().seq();
    // A reset that does not acknowledge our SYN is ignored.
    connection.handle_packet(at(5), &segment(0, iss, Flags::RST | Flags::ACK, 0));
    assert_eq!(connection.state(), State::SynSent);
    connection.handle_packet(at(6), &segment(0, iss.add(1), Flags::RST | Flags::ACK, 0));
    assert_eq!(connection.close_reason(), Some(CloseReason::Refused));
}

#[test]
fn both_may_open_at_once() {
    let [mut a, mut b] = [(key(), 1), (key().reversed(), 2)]
        .map(|(key, seed)| Connection::connect(&Config::default(), key, seed, at(0)));
    let (syn_a, syn_b) = (only(&mut a, at(0)), only(&mut b, at(0)));
    a.handle_packet(at(10), &syn_b);
    b.handle_packet(at(10), &syn_a);
    assert_eq!((a.state(), b.state()), (State::SynReceived, State::SynReceived));
    let (a_again, b_again) = (only(&mut a, at(10)), only(&mut b, at(10)));
    assert_eq!(flags(&a_again), Flags::SYN | Flags::ACK);
    a.handle_packet(at(20), &b_again);
    b.handle_packet(at(20), &a_again);
    assert_eq!((a.state(), b.state()), (State::Established, State::Established));
    a.write_length(10);
    while let Some(packet) = a.poll_transmit(at(21)) {
        b.handle_packet(at(31), &packet);
    }
    assert_eq!(b.readable(), 10);
}

/// Linux tcp_validate_incoming: a passive end accepts no SYN with an ACK, whatever its number, and none of its data.
#[test]
fn who_listened_is_not_opened_by_another_syn() {
    let syn = segment(100, Seq(0), Flags::SYN, 0);
    let mut connection = Connection::accept(&Config::default(), &syn, 1, at(0)).unwrap();
    let iss = only(&mut connection, at(0)).tcp().unwrap().seq();
    for seq in [100, 500] {
        connection.handle_packet(at(10), &segment(seq, iss.add(1), Flags::SYN | Flags::ACK, 50));
        assert_eq!((connection.state(), connection.readable()), (State::SynReceived, 0));
    }
}

/// RFC 5961, Section 3.2.
#[test]
fn only_the_exact_number_resets() {
    let (mut connection, sent) = open(Config::default());
    connection.handle_packet(at(1_000), &segment(150, sent, Flags::RST, 0));
    assert_eq!(flags(&only(&mut connection, at(1_000))), Flags::ACK);
    connection.handle_packet(at(1_001), &segment(5_000_000, sent, Flags::RST, 0));
    assert!(connection.poll_transmit(at(1_001)).is_none());
    assert_eq!(connection.state(), State::Established);
    connection.handle_packet(at(1_002), &segment(101, sent, Flags::RST, 0));
    assert_eq!(connection.close_reason(), Some(CloseReason::Reset));
}

/// RFC 5961, Sections 4.2, 5.2 and 10: SYNs and impossible ACKs get challenge ACKs, at a limited rate.
#[test]
fn syns_and_impossible_acks_are_challenged_seldom() {
    let (mut connection, sent) = open(Config::default());
    connection.handle_packet(at(1_000), &segment(101, sent, Flags::SYN, 0));
    assert_eq!(flags(&only(&mut connection, at(1_000))), Flags::ACK);
    connection.handle_packet(at(1_100), &segment(101, sent.add(50_000), Flags::ACK, 0));
    assert!(connection.poll_transmit(at(1_100)).is_none());
    connection.handle_packet(at(1_600), &segment(101, sent.add(50_000), Flags::ACK, 0));
    assert_eq!(flags(&only(&mut connection, at(1_600))), Flags::ACK);
    assert_eq!(connection.state(), State::Established);
}

/// RFC 7323, Section 5.3.
#[test]
fn old_timestamps_are_refused() {
    let (mut connection, sent) = open_at_time(500);
    connection.handle_packet(at(30), &with_time(101, sent, Flags::ACK, 10, 510));
    assert_eq!(connection.readable(), 10);
    connection.handle_packet(at(40), &with_time(111, sent, Flags::ACK, 10, 490));
    assert_eq!(connection.readable(), 10);
    connection.handle_packet(at(50), &with_time(111, sent, Flags::ACK, 10, 510));
    assert_eq!(connection.readable(), 20);
}

/// RFC 7323, Section 5.5; Linux TCP_PAWS_WRAP.
#[test]
fn an_outdated_timestamp_refuses_nothing_and_is_replaced() {
    let (mut connection, sent) = open_at_time(500);
    let wrap = 2_147_000;
    connection.handle_packet(at(19 + wrap), &with_time(101, sent, Flags::ACK, 10, 400));
    assert_eq!((connection.readable(), connection.ts_recent), (0, 500));
    connection.handle_packet(at(20 + wrap), &with_time(101, sent, Flags::ACK, 10, 400));
    assert_eq!((connection.readable(), connection.ts_recent), (10, 400));
    only(&mut connection, at(20 + wrap));
    connection.handle_packet(at(30 + wrap), &with_time(111, sent, Flags::ACK, 10, 399));
    assert_eq!((connection.readable(), connection.ts_recent), (10, 400));
}

/// As Linux: the SYN of some peers has a timestamp of zero.
#[test]
fn a_timestamp_of_zero_refuses_nothing() {
    let (mut connection, sent) = open_at_time(0);
    let value = (1 << 31) + 5;
    connection.handle_packet(at(30), &with_time(101, sent, Flags::ACK, 10, value));
    assert_eq!((connection.readable(), connection.ts_recent), (10, value));
    only(&mut connection, at(30));
    connection.handle_packet(at(40), &with_time(111, sent, Flags::ACK, 10, value - 1));
    assert_eq!(connection.readable(), 10);
}

/// RFC 6298, Section 3.
#[test]
fn a_syn_ack_that_was_repeated_tells_no_round_trip() {
    let syn = segment(100, Seq(0), Flags::SYN, 0);
    for (again, srtt, answered_in_ms) in
        [(None, Duration::from_millis(950), 950), (Some(900), Duration::ZERO, 50)]
    {
        let mut connection = Connection::accept(&Config::default(), &syn, 1, at(0)).unwrap();
        let iss = only(&mut connection, at(0)).tcp().unwrap().seq();
        if let Some(again) = again {
            connection.handle_packet(at(again), &syn);
            assert_eq!(flags(&only(&mut connection, at(again))), Flags::SYN | Flags::ACK);
        }
        connection.handle_packet(at(950), &segment(101, iss.add(1), Flags::ACK, 0));
        assert_eq!((connection.state(), connection.srtt()), (State::Established, srtt));
        assert_eq!(connection.round_trip(), Duration::from_millis(answered_in_ms));
    }
}

/// RFC 7323, Section 2.2.
#[test]
fn the_window_of_a_syn_ack_is_not_scaled() {
    let options = TcpOptionsRepr { window_scale: Some(7), ..TcpOptionsRepr::default() };
    let mut connection = Connection::connect(&Config::default(), key(), 1, at(0));
    let iss = only(&mut connection, at(0)).tcp().unwrap().seq();
    // Simultaneous open, so that the SYN-ACK arrives in SYN-RECEIVED.
    for (ack, flags) in [(Seq(0), Flags::SYN), (iss.add(1), Flags::SYN | Flags::ACK)] {
        let repr = TcpRepr { seq: Seq(100), ack, flags, window: 1_000, options, ..TcpRepr::default() };
        let packet = Packet::build_tcp(key().reversed(), &repr, Payload::Length(0));
        connection.handle_packet(at(20), &packet);
        while connection.poll_transmit(at(20)).is_some() {}
    }
    assert_eq!((connection.state(), connection.peer_window()), (State::Established, 1_000));
    connection.handle_packet(at(30), &segment(101, iss.add(1), Flags::ACK, 0));
    assert_eq!(connection.peer_window(), 1_000 << 7);
}

/// RFC 9293, Section 3.10.4.
#[test]
fn closing_before_the_answer_gives_up() {
    let mut connection = Connection::connect(&Config::default(), key(), 1, at(0));
    only(&mut connection, at(0));
    connection.close();
    assert_eq!((connection.state(), connection.close_reason()), (State::Closed, Some(CloseReason::Aborted)));
    assert!(connection.poll_transmit(at(10)).is_none() && connection.poll_timeout().is_none());
    connection.close();
    assert_eq!((connection.state(), connection.close_reason()), (State::Closed, Some(CloseReason::Aborted)));
}

#[test]
fn closing_passes_through_the_states() {
    let (mut connection, sent) = open(Config::default());
    connection.close();
    assert_eq!(connection.state(), State::FinWait1);
    let fin = only(&mut connection, at(30));
    assert!(flags(&fin).contains(Flags::FIN));
    connection.handle_packet(at(50), &segment(101, sent.add(1), Flags::ACK, 0));
    assert_eq!(connection.state(), State::FinWait2);
    connection.handle_packet(at(60), &segment(101, sent.add(1), Flags::ACK | Flags::FIN, 5));
    assert_eq!((connection.state(), connection.readable()), (State::TimeWait, 5));
    assert_eq!(only(&mut connection, at(60)).tcp().unwrap().ack(), Seq(107));
    // A repeated FIN is answered and restarts TIME-WAIT.
    connection.handle_packet(at(1_000), &segment(101, sent.add(1), Flags::ACK | Flags::FIN, 5));
    assert_eq!(flags(&only(&mut connection, at(1_000))), Flags::ACK);
    assert_eq!(connection.poll_timeout(), Some(at(61_000)));
    connection.handle_timeout(at(61_000));
    assert_eq!(connection.close_reason(), Some(CloseReason::Finished));
}

#[test]
fn both_may_close_at_once() {
    let (mut connection, sent) = open(Config::default());
    connection.close();
    only(&mut connection, at(30));
    connection.handle_packet(at(40), &segment(101, sent, Flags::ACK | Flags::FIN, 0));
    assert_eq!(connection.state(), State::Closing);
    only(&mut connection, at(40));
    connection.handle_packet(at(50), &segment(102, sent.add(1), Flags::ACK, 0));
    assert_eq!(connection.state(), State::TimeWait);
}

#[test]
fn an_idle_peer_is_probed_and_given_up() {
    let keep_alive = KeepAlive { time: Duration::from_secs(10), interval: Duration::from_secs(1), probes: 3 };
    let (mut connection, sent) = open(Config { keep_alive: Some(keep_alive), ..Config::default() });
    assert_eq!(connection.poll_timeout(), Some(at(10_020)));
    connection.handle_timeout(at(10_020));
    let probe = only(&mut connection, at(10_020));
    assert_eq!((probe.tcp().unwrap().seq(), probe.payload().len()), (sent.add(u32::MAX), 0));
    connection.handle_packet(at(10_030), &segment(101, sent, Flags::ACK, 0));
    assert_eq!(connection.poll_timeout(), Some(at(20_030)));
    let mut sent: Vec<Flags> = Vec::new();
    while let Some(due) = connection.poll_timeout() {
        connection.handle_timeout(due);
        while let Some(packet) = connection.poll_transmit(due) {
            sent.push(flags(&packet));
        }
    }
    assert_eq!(sent, [Flags::ACK, Flags::ACK, Flags::ACK, Flags::RST | Flags::ACK]);
    assert_eq!(connection.close_reason(), Some(CloseReason::TimedOut));
}

#[test]
fn an_application_says_how_long_the_peer_may_owe_an_answer() {
    let (mut connection, _) = open(Config::default());
    connection.set_user_timeout(Some(Duration::from_secs(3)));
    connection.write_length(1_000);
    let mut last = at(20);
    while connection.poll_transmit(last).is_some() {}
    while let Some(due) = connection.poll_timeout() {
        last = last.max(due);
        connection.handle_timeout(last);
        while connection.poll_transmit(last).is_some() {}
    }
    assert_eq!(connection.close_reason(), Some(CloseReason::TimedOut));
    assert_eq!(last, at(3_020));
}

/// The device is full, so nobody polls. Written data is still given up at the user timeout. It leaves if there is room
/// before.
#[test]
fn what_a_full_device_keeps_back_counts_for_the_user_timeout() {
    for room_at in [None, Some(1_500)] {
        let (mut connection, _) = open(Config::default());
        connection.set_user_timeout(Some(Duration::from_secs(3)));
        connection.write_length(500);
        let mut now = at(20);
        connection.pause(now);
        let mut left = 0;
        while let Some(due) = connection.poll_timeout().filter(|_| left == 0) {
            now = now.max(due);
            connection.handle_timeout(now);
            match room_at {
                Some(ms) if now >= at(ms) => {
                    left += connection.poll_transmit(now).map_or(0, |packet| packet.payload().len())
                }
                _ => connection.pause(now),
            }
        }
        let probes = connection.status(now).timing.probes;
        match room_at {
            Some(_) => assert_eq!((left, connection.close_reason()), (500, None)),
            // Probed after the RTO first, then every half second without backoff.
            None => assert_eq!((connection.close_reason(), probes), (Some(CloseReason::TimedOut), 6)),
        }
    }
}

#[test]
fn every_second_segment_is_acknowledged_but_the_first_ones_at_once() {
    // The window is open already. While it grows, every segment is acknowledged.
    let (mut connection, sent) =
        open(Config { receive_buffer: ReceiveBuffer::Fixed(65_536), ..Config::default() });
    let mut acks = 0;
    for n in 0..40 {
        connection.handle_packet(at(1_000 + n), &segment(101 + n as u32 * 1_000, sent, Flags::ACK, 1_000));
        connection.read_all(at(1_000 + n));
        acks += u32::from(connection.poll_transmit(at(1_000 + n)).is_some());
    }
    // 16 quick ACKs when data begins, then one for every two segments.
    assert_eq!(acks, 16 + 12);
    connection.handle_packet(at(2_000), &segment(40_101, sent, Flags::ACK, 1_000));
    assert!(connection.poll_transmit(at(2_000)).is_some());
    connection.handle_packet(at(2_001), &segment(41_101, sent, Flags::ACK, 1_000));
    assert!(connection.poll_transmit(at(2_001)).is_none() || connection.poll_timeout().is_none());
}

/// RFC 9293, Section 3.7.4, as Minshall refined it: one small segment may be in flight.
#[test]
fn nagle_holds_the_second_small_segment_back() {
    let (mut connection, sent) = open(Config::default());
    connection.write_length(10);
    assert_eq!(only(&mut connection, at(30)).payload().len(), 10);
    connection.write_length(10);
    assert!(connection.poll_transmit(at(31)).is_none());
    connection.write_length(5);
    connection.handle_packet(at(50), &segment(101, sent.add(10), Flags::ACK, 0));
    assert_eq!(only(&mut connection, at(50)).payload().len(), 15);
}

#[test]
fn an_abort_tells_the_peer() {
    let (mut connection, sent) = open(Config::default());
    connection.abort();
    let reset = only(&mut connection, at(30));
    assert_eq!((flags(&reset), reset.tcp().unwrap().seq()), (Flags::RST | Flags::ACK, sent));
    assert!(connection.is_closed());
}

#[test]
fn a_connection_can_stand_in_for_another() {
    let config = Config::default();
    let origin = InitialNumbers { isn: Seq(77), tsval: 5_000 };
    let mut connection = Connection::connect_as(&config, key(), origin, at(3));
    let syn = only(&mut connection, at(3));
    let tcp = syn.tcp().unwrap();
    assert_eq!((tcp.seq(), tcp.timestamps()), (Seq(77), Some((5_000, 0))));
    let answer = InitialNumbers { isn: Seq(u32::MAX), tsval: 9 };
    let mut other = Connection::accept_as(&config, &syn, answer, at(10)).unwrap();
    let syn_ack = only(&mut other, at(12));
    let tcp = syn_ack.tcp().unwrap();
    assert_eq!((tcp.seq(), tcp.timestamps()), (Seq(u32::MAX), Some((11, 5_000))));
    connection.handle_packet(at(20), &syn_ack);
    assert_eq!((connection.state(), connection.expected()), (State::Established, Seq(0)));
}

#[test]
fn a_smaller_path_mtu_cuts_new_segments_and_what_is_in_flight_leaves_again() {
    let config = Config { nagle: false, timestamps: false, ..Config::default() };
    let mut peer = Connection::connect(&config, key().reversed(), 1, at(0));
    let mut connection = Connection::accept(&config, &only(&mut peer, at(0)), 2, at(0)).unwrap();
    peer.handle_packet(at(10), &only(&mut connection, at(0)));
    connection.handle_packet(at(20), &only(&mut peer, at(10)));
    connection.write_length(536);
    let sent = only(&mut connection, at(30)).tcp().unwrap().seq();
    assert!(connection.is_in_flight(sent) && !connection.is_in_flight(sent.add(536)));
    // Below the accepted minimum of 552 bytes, which has 512 bytes of payload.
    connection.on_path_mtu(at(31), 100);
    connection.write_length(600);
    let sizes: Vec<(usize, Option<u16>)> = core::iter::from_fn(|| connection.poll_transmit(at(31)))
        .map(|packet| (packet.payload().len(), packet.gso_size()))
        .collect();
    assert_eq!(sizes, [(536, Some(512)), (512, None), (88, None)]);
    // A repeated message, as each packet of a window causes it, has no effect. It was no congestion.
    connection.on_path_mtu(at(32), 100);
    assert!(connection.poll_transmit(at(32)).is_none());
    assert_eq!(connection.status(at(32)).window.snd_cwnd, config.initial_cwnd);
}

#[test]
fn a_super_packet_is_acknowledged_as_the_segments_that_it_came_in() {
    let (mut connection, first) = open(Config::default());
    for n in 0..40 {
        // Uses up the quick ACKs of the start.
        connection.handle_packet(at(30 + n), &segment(101 + 2_000 * n as u32, first, Flags::ACK, 1_000));
        let mut rest = segment(1_101 + 2_000 * n as u32, first, Flags::ACK, 1_000);
        rest.set_gso_size(None);
        connection.handle_packet(at(30 + n), &rest);
        while connection.poll_transmit(at(30 + n)).is_some() {}
    }
    let mut whole = segment(80_101, first, Flags::ACK, 3_000);
    whole.set_gso_size(Some(1_000));
    connection.handle_packet(at(80), &whole);
    assert_eq!(only(&mut connection, at(80)).tcp().unwrap().ack(), Seq(83_101));
    // If it counted as one segment, this ACK would wait for another.
    connection.handle_packet(at(81), &segment(83_101, first, Flags::ACK, 1_000));
    connection.handle_packet(at(81), &segment(84_101, first, Flags::ACK, 1_000));
    assert_eq!(only(&mut connection, at(81)).tcp().unwrap().ack(), Seq(85_101));
}

/// RFC 7661: an unused window does not grow, whatever limits the sender.
#[test]
fn what_an_allowance_leaves_unused_of_cwnd_does_not_grow() {
    let (mut connection, mut sent) = open(Config { congestion: CongestionName::Reno, ..Config::default() });
    let (mut now, mut cwnd) = (30, Vec::new());
    for round in 0..60 {
        connection.write_length(1_000_000);
        connection.set_allowance(if round < 3 { u64::MAX } else { 1_000 });
        while let Some(packet) = connection.poll_transmit(at(now)) {
            sent = sent.add(packet.payload().len() as u32);
        }
        now += 20;
        let ack =
            TcpRepr { seq: Seq(101), ack: sent, flags: Flags::ACK, window: 60_000, ..TcpRepr::default() };
        connection.handle_packet(at(now), &Packet::build_tcp(key().reversed(), &ack, Payload::Length(0)));
        cwnd.push(connection.status(at(now)).window.snd_cwnd);
    }
    assert!(cwnd[2] >= 30 && cwnd[59] <= cwnd[2] + 4, "{cwnd:?}");
}

/// A retransmission waits for its allowance when the peer acknowledges all data and closes. Then the connection waits
/// no more.
#[test]
fn who_is_over_waits_for_no_allowance() {
    let (mut connection, sent) = open(Config { frto: false, nagle: false, ..Config::default() });
    for _ in 0..4 {
        connection.write_length(200);
        while connection.poll_transmit(at(20)).is_some() {}
    }
    connection.close();
    while connection.poll_transmit(at(20)).is_some() {}
    connection.set_allowance(0);
    let due = connection.poll_timeout().expect("the timer of what is in flight");
    let mut now = due.max(at(20));
    while connection.status(now).timing.retransmits == 0 {
        connection.handle_timeout(now);
        while connection.poll_transmit(now).is_some() {}
        now = now.max(connection.poll_timeout().expect("a timer"));
    }
    connection.handle_packet(now, &segment(101, sent.add(200), Flags::ACK, 0));
    while connection.poll_transmit(now).is_some() {}
    assert!(connection.is_held(), "the third one is lost, too");
    connection.handle_packet(now, &segment(101, sent.add(801), Flags::ACK | Flags::FIN, 0));
    assert_eq!((connection.state(), connection.is_held()), (State::TimeWait, false));
}

/// With two linear timeouts, the timeout doubles only after the third in a row.
#[test]
fn the_first_timeouts_in_a_row_are_alike_where_asked_for() {
    let config = Config { linear_timeouts: 2, frto: false, nagle: false, ..Config::default() };
    let (mut connection, _) = open(config);
    connection.write_length(200);
    while connection.poll_transmit(at(20)).is_some() {}
    let (mut now, mut timeouts) = (at(20), Vec::new());
    while timeouts.len() < 5 {
        let before = connection.status(now).timing.retransmits;
        now = now.max(connection.poll_timeout().expect("a timer"));
        connection.handle_timeout(now);
        while connection.poll_transmit(now).is_some() {}
        if connection.status(now).timing.retransmits > before {
            timeouts.push(now);
        }
    }
    let waits: Vec<u64> =
        timeouts.windows(2).map(|pair| pair[1].saturating_since(pair[0]).as_millis()).collect();
    assert_eq!(waits.iter().map(|wait| wait / waits[0]).collect::<Vec<_>>(), [1, 1, 2, 4], "{waits:?}");
}
