//! Super-packets carry the segments that would otherwise leave one by one. Two connections get the same input. One is
//! polled for segments, the other for super-packets. Both must send the same.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod harness;

use harness::key;
use paceline_tcp::{Config, CongestionName, Connection, DetectionName, ReductionName, Status};
use paceline_wire::{Duration, Flags, Instant, Packet, Payload, SackBlocks, Seq, TcpOptionsRepr, TcpRepr};
use proptest::prelude::*;

/// An event of a connection.
#[derive(Clone, Debug)]
enum Step {
    /// The application writes this number of bytes, in separate memory.
    Write(usize),
    /// The peer acknowledges this share of the data sent, in thousandths.
    Ack(u64),
    /// It also reports a range above by SACK.
    Sack(u64, u64),
    /// The peer sends data.
    Data(u32),
    /// Time passes.
    Wait(u64),
    Allow(u64),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1usize..70_000).prop_map(Step::Write),
        2 => (1usize..46).prop_map(|segments| Step::Write(segments * 1_448)),
        5 => (0u64..=1_000).prop_map(Step::Ack),
        2 => (0u64..1_000, 0u64..1_000).prop_map(|(a, b)| Step::Sack(a.min(b), a.max(b))),
        1 => (1u32..3_000).prop_map(Step::Data),
        4 => (0u64..300).prop_map(Step::Wait),
        1 => prop_oneof![Just(u64::MAX), 0u64..100_000].prop_map(Step::Allow),
        1 => prop_oneof![9 => Just(Step::Wait(1)), 1 => Just(Step::Close)],
    ]
}

/// Number, acknowledgement, flags, window, timestamps.
type Header = (Seq, Seq, Flags, u16, Option<(u32, u32)>);

/// One of the two connections, and its log of all that a peer can observe.
struct Subject {
    connection: Connection,
    most: u32,
    now: Instant,
    first: Seq,
    una: u64,
    sent: u64,
    received: u32,
    log: Vec<(Instant, Header, Vec<u8>)>,
    longest: usize,
}

impl Subject {
    fn established(config: &Config, most: u32) -> Subject {
        let mut now = Instant::ZERO;
        let mut connection = Connection::connect(config, key(), 7, now);
        let first = connection.poll_transmit(now).unwrap().tcp().unwrap().seq().add(1);
        now += Duration::from_millis(20);
        let subject = Subject {
            connection,
            most,
            now,
            first,
            una: 0,
            sent: 0,
            received: 0,
            log: Vec::new(),
            longest: 0,
        };
        let options = TcpOptionsRepr {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((1, 0)),
            ..TcpOptionsRepr::default()
        };
        subject.answered(&TcpRepr {
            flags: Flags::SYN | Flags::ACK,
            seq: Seq(99),
            window: 65_535,
            options,
            ..reply()
        })
    }

    fn answered(mut self, repr: &TcpRepr) -> Subject {
        self.hear(*repr, 0);
        self
    }

    fn take(&mut self, step: &Step) {
        let at = |this: &Subject, share: u64| this.una + (this.sent - this.una) * share / 1_000;
        match *step {
            Step::Write(len) => {
                let bytes: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
                self.connection.write(&Payload::from(bytes));
            }
            Step::Ack(share) => {
                self.una = at(self, share);
                self.hear(reply(), 0);
            }
            Step::Sack(from, to) => {
                let block = [from, to].map(|share| self.first.add(at(self, share) as u32));
                let mut repr = reply();
                if block[0] != block[1] && block[0] != self.first.add(self.una as u32) {
                    repr.options.sack_blocks = SackBlocks::from_iter([(block[0], block[1])]);
                }
                self.hear(repr, 0);
            }
            Step::Data(len) => self.hear(reply(), len),
            Step::Wait(ms) => self.now += Duration::from_millis(ms),
            Step::Allow(bytes) => self.connection.set_allowance(bytes),
            Step::Close => self.connection.close(),
        }
        self.connection.handle_timeout(self.now);
        self.connection.read_all(self.now);
        self.drain();
    }

    fn hear(&mut self, repr: TcpRepr, len: u32) {
        let seq = if repr.flags.contains(Flags::SYN) { repr.seq } else { Seq(100).add(self.received) };
        let ack = self.first.add(self.una as u32);
        let packet = Packet::build_tcp(key().reversed(), &TcpRepr { seq, ack, ..repr }, Payload::Length(len));
        self.received += len;
        self.connection.handle_packet(self.now, &packet);
        self.drain();
    }

    fn drain(&mut self) {
        for n in 0.. {
            let Some(packet) = self.connection.poll_super_packet(self.now, self.most) else { break };
            assert!(n < 100_000, "it sends for ever");
            assert!(packet.ip_len() <= 65_535);
            self.longest = self.longest.max(packet.payload().len());
            for segment in packet.segments() {
                let tcp = segment.tcp().unwrap();
                let end = tcp.end_seq().0.wrapping_sub(self.first.0);
                self.sent = self.sent.max(u64::from(end));
                let payload = segment.payload().bytes().unwrap_or_default().to_vec();
                let (flags, window) = (tcp.flags(), tcp.window());
                let header = (tcp.seq(), tcp.ack(), flags, window, tcp.timestamps());
                self.log.push((self.now, header, payload));
            }
        }
    }

    fn status(&self) -> Status {
        self.connection.status(self.now)
    }
}

fn reply() -> TcpRepr {
    let options = TcpOptionsRepr { timestamps: Some((2, 0)), ..TcpOptionsRepr::default() };
    TcpRepr { flags: Flags::ACK, window: 4_000, options, ..TcpRepr::default() }
}

proptest! {
    #[test]
    fn super_packets_hold_what_would_have_left_one_by_one(
        steps in proptest::collection::vec(step(), 1..80),
        congestion in proptest::sample::select(vec![CongestionName::Cubic, CongestionName::Bbr, CongestionName::Reno]),
        detection in proptest::sample::select(DetectionName::ALL),
        opportunistic in any::<bool>(),
        nagle in any::<bool>(),
        most in 2u32..64,
    ) {
        let reduction = if opportunistic { ReductionName::Qarr } else { ReductionName::Prr };
        let config = Config { congestion, detection, reduction, opportunistic, nagle, ..Config::default() };
        let [mut single, mut joined] = [1, most].map(|most| Subject::established(&config, most));
        for step in &steps {
            single.take(step);
            joined.take(step);
            prop_assert_eq!(&single.log, &joined.log);
            prop_assert_eq!(format!("{:?}", single.status()), format!("{:?}", joined.status()));
        }
    }
}

#[test]
fn what_lies_in_one_piece_of_memory_leaves_as_one() {
    let mut subject = Subject::established(&Config { nagle: false, ..Config::default() }, 64);
    subject.take(&Step::Write(4 * 1_448));
    assert_eq!((subject.longest, subject.log.len()), (4 * 1_448, 5));
    subject.take(&Step::Ack(1_000));
    subject.take(&Step::Write(3 * 1_448 + 7));
    assert_eq!((subject.longest, subject.log.len()), (4 * 1_448, 9));
}

#[test]
fn a_segment_ends_where_a_long_piece_of_memory_does() {
    let config = Config { nagle: false, send_buffer_initial: 1 << 20, ..Config::default() };
    let mut subject = Subject::established(&config, 64);
    subject.take(&Step::Write(9 * 1_448));
    // Without allowance, so that the following data is written before it can leave.
    subject.connection.set_allowance(0);
    for len in [700, 20 * 1_448, 3_000] {
        subject.connection.write(&Payload::from(vec![0; len]));
    }
    subject.take(&Step::Ack(1_000));
    subject.take(&Step::Allow(u64::MAX));
    subject.take(&Step::Ack(1_000));
    let lengths: Vec<usize> = subject.log.iter().map(|sent| sent.2.len()).skip(10).collect();
    let whole = [1_448; 20];
    // 748 bytes of the long piece fill up the first segment.
    assert_eq!(lengths, [&whole[..], &[700], &[1_448, 1_448, 104]].concat());
}
