//! RFC 3168, Section 6.1.

use paceline_wire::Ecn;

use super::*;

const BOTH: Flags = Flags::ECE.union(Flags::CWR);

fn ecn() -> Config {
    Config { ecn: true, timestamps: false, delayed_ack: false, ..Config::default() }
}

/// Opens actively with ECN. Also returns our first data number.
fn open_with_ecn() -> (Connection, Seq) {
    let mut connection = Connection::connect(&ecn(), key(), 1, at(0));
    let first = only(&mut connection, at(0)).tcp().unwrap().seq().add(1);
    connection.handle_packet(at(20), &segment(100, first, Flags::SYN | Flags::ACK | Flags::ECE, 0));
    only(&mut connection, at(20));
    (connection, first)
}

fn agreed(config: &Config, answer: Flags) -> bool {
    let mut connection = Connection::connect(config, key(), 1, at(0));
    let syn = only(&mut connection, at(0));
    assert_eq!(flags(&syn).contains(BOTH), config.ecn);
    assert_eq!(syn.ecn(), Some(Ecn::NotEct));
    let first = syn.tcp().unwrap().seq().add(1);
    connection.handle_packet(at(20), &segment(100, first, Flags::SYN | Flags::ACK | answer, 0));
    connection.status(at(20)).ecn
}

#[test]
fn it_is_agreed_on_when_both_want_it() {
    assert!(agreed(&ecn(), Flags::ECE));
    assert!(!agreed(&ecn(), Flags::empty()));
    assert!(!agreed(&ecn(), BOTH), "a peer that reflects what it does not know");
    assert!(!agreed(&Config::default(), Flags::ECE));
}

#[test]
fn a_syn_that_asks_is_answered() {
    for (config, asks, answers) in
        [(ecn(), BOTH, true), (ecn(), Flags::ECE, false), (Config::default(), BOTH, false)]
    {
        let syn = segment(100, Seq(0), Flags::SYN | asks, 0);
        let mut connection = Connection::accept(&config, &syn, 1, at(0)).unwrap();
        let syn_ack = only(&mut connection, at(0));
        assert_eq!(flags(&syn_ack) & BOTH, if answers { Flags::ECE } else { Flags::empty() });
        assert_eq!(syn_ack.ecn(), Some(Ecn::NotEct));
    }
}

#[test]
fn a_syn_that_is_lost_goes_again_without() {
    let mut connection = Connection::connect(&ecn(), key(), 1, at(0));
    assert_eq!(flags(&only(&mut connection, at(0))), Flags::SYN | BOTH);
    connection.handle_timeout(at(1_000));
    assert_eq!(flags(&only(&mut connection, at(1_000))), Flags::SYN);
}

#[test]
fn new_data_alone_may_be_marked() {
    let (mut connection, first) = open_with_ecn();
    connection.write_length(100);
    assert_eq!(only(&mut connection, at(21)).ecn(), Some(Ecn::Ect0));
    // The tail loss probe retransmits it, as a timeout would.
    let due = connection.poll_timeout().unwrap();
    connection.handle_timeout(due);
    let again = only(&mut connection, due);
    assert_eq!((again.tcp().unwrap().seq(), again.ecn()), (first, Some(Ecn::NotEct)));
    connection.handle_packet(due, &segment(101, first.add(100), Flags::ACK, 50));
    assert_eq!(only(&mut connection, due).ecn(), Some(Ecn::NotEct), "an ACK");
}

#[test]
fn a_mark_is_echoed_until_the_peer_has_reduced() {
    let (mut connection, first) = open_with_ecn();
    let mut now = 100;
    let mut seq = 101;
    let mut answer = |flags_of_data: Flags, mark: bool| {
        let mut data = segment(seq, first, Flags::ACK | flags_of_data, 100);
        data.set_ecn(if mark { Ecn::Ce } else { Ecn::Ect0 });
        seq += 100;
        now += 100;
        connection.handle_packet(at(now), &data);
        flags(&only(&mut connection, at(now))).contains(Flags::ECE)
    };
    let answers = [
        answer(Flags::empty(), false),
        answer(Flags::empty(), true),
        answer(Flags::empty(), false),
        answer(Flags::empty(), false),
        answer(Flags::CWR, false),
        answer(Flags::empty(), false),
        answer(Flags::CWR, true),
        answer(Flags::empty(), false),
    ];
    assert_eq!(answers, [false, true, true, true, false, false, true, true]);
    assert_eq!(connection.status(at(now)).receiver.received_ce, 2);
}

#[test]
fn without_agreement_nothing_is_echoed_or_answered() {
    let (mut connection, first) = open(Config { timestamps: false, ..Config::default() });
    let mut data = segment(101, first, Flags::ACK, 100);
    data.set_ecn(Ecn::Ce);
    connection.handle_packet(at(100), &data);
    assert_eq!(flags(&only(&mut connection, at(100))), Flags::ACK);
    connection.write_length(100_000);
    while connection.poll_transmit(at(101)).is_some() {}
    let cwnd = connection.status(at(101)).window.snd_cwnd;
    connection.handle_packet(at(121), &segment(201, first.add(536), Flags::ACK | Flags::ECE, 0));
    assert!(connection.status(at(121)).window.snd_cwnd >= cwnd);
}

#[test]
fn an_echo_reduces_the_window_once_and_is_confirmed_once() {
    let (mut connection, first) = open_with_ecn();
    connection.write_length(1_000_000);
    let mut acked = 0;
    let mut sent = 0;
    let mut confirmed = 0;
    let mut poll = |connection: &mut Connection, now: u64, sent: &mut u32| {
        while let Some(packet) = connection.poll_transmit(at(now)) {
            *sent += packet.tcp().unwrap().payload_len() as u32;
            confirmed += u32::from(flags(&packet).contains(Flags::CWR));
        }
        confirmed
    };
    poll(&mut connection, 21, &mut sent);
    let before = connection.status(at(21));
    // Every ACK of this window and the next carries an echo.
    let window = sent;
    let mut now = 41;
    while acked < window {
        acked += 536;
        connection
            .handle_packet(at(now), &segment(101, first.add(acked.min(window)), Flags::ACK | Flags::ECE, 0));
        poll(&mut connection, now, &mut sent);
        now += 1;
    }
    let status = connection.status(at(now));
    assert_eq!(
        (before.window.snd_cwnd, status.window.snd_ssthresh, status.episodes.ecn_reductions),
        (10, 7, 1),
        "{status:?}"
    );
    assert!(status.window.snd_cwnd <= 8 && status.sent.total_retrans == 0, "{status:?}");
    assert_eq!(poll(&mut connection, now, &mut sent), 1);
}
