//! Packets that no honest peer sends must cause no panic and no unbounded growth.

#![allow(clippy::unwrap_used)]

mod harness;

use harness::key;
use paceline_tcp::{Config, Connection, DetectionName, ReceiveBuffer, State};
use paceline_wire::{Duration, Flags, Instant, Packet, Payload, SackBlocks, Seq, TcpOptionsRepr, TcpRepr};
use proptest::prelude::*;

/// A segment with numbers near the expected ones, or arbitrary ones.
#[derive(Clone, Debug)]
struct Forged {
    seq: i64,
    ack: i64,
    flags: u16,
    window: u16,
    len: u32,
    sacks: Vec<(i64, i64)>,
    timestamps: Option<(i64, i64)>,
    wait_ms: u64,
}

fn near() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -3i64..4,
        3 => -20_000i64..200_000,
        1 => any::<u32>().prop_map(i64::from),
    ]
}

fn forged() -> impl Strategy<Value = Forged> {
    let flags = prop_oneof![
        6 => Just(Flags::ACK.bits()),
        1 => Just((Flags::ACK | Flags::FIN).bits()),
        1 => Just(Flags::RST.bits()),
        2 => any::<u16>().prop_map(|bits| bits & 0x1ff),
    ];
    let fields = (near(), near(), flags, any::<u16>(), prop_oneof![Just(0u32), 0..3_000u32]);
    let options = (
        proptest::collection::vec((near(), near()), 0..4),
        proptest::option::of((near(), near())),
        prop_oneof![Just(0u64), 0..50u64, 0..5_000u64],
    );
    (fields, options).prop_map(|((seq, ack, flags, window, len), (sacks, timestamps, wait_ms))| Forged {
        seq,
        ack,
        flags,
        window,
        len,
        sacks,
        timestamps,
        wait_ms,
    })
}

struct Peer {
    connection: Connection,
    now: Instant,
    /// RCV.NXT and SND.NXT of the connection, as its packets show.
    nxt: Seq,
    sent: Seq,
    tsval: u32,
}

impl Peer {
    fn established(config: &Config) -> Peer {
        let now = Instant::ZERO + Duration::from_secs(100);
        let options = TcpOptionsRepr {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((5_000, 0)),
            ..TcpOptionsRepr::default()
        };
        let syn = TcpRepr {
            seq: Seq(u32::MAX - 3),
            flags: Flags::SYN,
            window: 60_000,
            options,
            ..TcpRepr::default()
        };
        let syn = Packet::build_tcp(key(), &syn, Payload::Length(0));
        let connection = Connection::accept(config, &syn, 3, now).unwrap();
        let mut peer = Peer { connection, now, nxt: Seq(0), sent: Seq(0), tsval: 0 };
        peer.drain();
        peer.send(&Forged {
            seq: 0,
            ack: 0,
            flags: Flags::ACK.bits(),
            window: 60_000,
            len: 0,
            sacks: vec![],
            timestamps: Some((1, 0)),
            wait_ms: 20,
        });
        assert_eq!(peer.connection.state(), State::Established);
        peer
    }

    fn send(&mut self, forged: &Forged) {
        self.now += Duration::from_millis(forged.wait_ms);
        while let Some(at) = self.connection.poll_timeout().filter(|&at| at <= self.now) {
            self.connection.handle_timeout(at.max(self.now));
            self.drain();
            if self.connection.poll_timeout().is_some_and(|next| next <= at) {
                break;
            }
        }
        let at = |base: Seq, offset: i64| base.add(offset as u32);
        let sack_blocks: SackBlocks = forged
            .sacks
            .iter()
            .map(|&(a, b)| (at(self.sent, a - 50_000), at(self.sent, b - 50_000)))
            .collect();
        let options = TcpOptionsRepr {
            timestamps: forged.timestamps.map(|(value, echo)| {
                (5_000u32.wrapping_add(value as u32), self.tsval.wrapping_add(echo as u32))
            }),
            sack_blocks,
            ..TcpOptionsRepr::default()
        };
        let repr = TcpRepr {
            seq: at(self.nxt, forged.seq),
            ack: at(self.sent, forged.ack),
            flags: Flags::from_bits_truncate(forged.flags),
            window: forged.window,
            options,
            ..TcpRepr::default()
        };
        let packet = Packet::build_tcp(key(), &repr, Payload::Length(forged.len));
        self.connection.handle_packet(self.now, &packet);
        self.connection.read_all(self.now);
        self.drain();
    }

    fn drain(&mut self) {
        for n in 0.. {
            let Some(packet) = self.connection.poll_transmit(self.now) else { break };
            assert!(n < 100_000, "it sends for ever");
            let tcp = packet.tcp().unwrap();
            self.nxt = tcp.ack();
            self.sent = tcp.end_seq();
            if let Some((value, _)) = tcp.timestamps() {
                self.tsval = value;
            }
        }
        let status = self.connection.status(self.now);
        assert_eq!(
            status.pulse.in_flight,
            status.pulse.unacked + status.pulse.retrans - status.pulse.sacked - status.pulse.lost
        );
    }
}

proptest! {
    #[test]
    fn forged_segments_do_no_harm(
        segments in proptest::collection::vec(forged(), 1..60),
        detection in proptest::sample::select(DetectionName::ALL),
        window in prop_oneof![Just(5_000u32), Just(300_000)],
        close_at in 0usize..60,
        opportunistic in any::<bool>(),
    ) {
        let config = Config {
            detection,
            opportunistic,
            hack1: opportunistic,
            receive_buffer: ReceiveBuffer::Fixed(window),
            ..Config::default()
        };
        let mut peer = Peer::established(&config);
        let mut edge = 0;
        for (n, segment) in segments.iter().enumerate() {
            peer.connection.write_length(50_000);
            if n == close_at {
                peer.connection.close();
            }
            peer.send(segment);
            let status = peer.connection.status(peer.now);
            prop_assert!(status.receiver.rcv_edge >= edge);
            edge = status.receiver.rcv_edge;
            prop_assert!(status.receiver.out_of_order <= u64::from(window));
        }
    }
}
