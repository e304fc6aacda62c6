//! A server and a client with a node between them. Bytes determine losses, order, time, applications and forged
//! packets.

use std::collections::{HashSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use paceline_tcp::{
    CloseReason, Config, CongestionName, Connection, ConnectionId, DetectionName, Endpoint, HystartName,
    ReceiveBuffer, ReceiveWindowName, ReductionName, RtoName, ScheduleName,
};
use paceline_wire::{BufferPool, Duration, Flags, FlowKey, Instant, Node, Packet, Payload, PortId, Seq};

#[path = "forging.rs"]
mod forging;
#[path = "numbers.rs"]
mod numbers;
use numbers::Numbers;

/// The node between the two. Its port 0 is the server's, port 1 the client's.
pub(crate) trait Middle: Node {
    /// True if it sends its own acknowledgements, as a split gateway does.
    fn makes_acks(&self) -> bool;

    /// Triggers an event of the node itself.
    fn turn(&mut self, _choice: u8) {}

    /// Checks its invariants.
    fn check(&self) {}

    /// Describes its state, for a failing test.
    fn describe(&self) -> String {
        String::new()
    }
}

/// Choices from the input, zeros after its end.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    /// An offset of sequence numbers, mostly a small one.
    pub(crate) fn offset(&mut self) -> u32 {
        let scale = self.byte();
        let near = u32::from(self.byte());
        match scale % 5 {
            0 => 0,
            1 => near.wrapping_sub(128),
            2 => near.wrapping_sub(128).wrapping_mul(1_460),
            3 => near << 24 | u32::from(scale) << 16,
            _ => near.wrapping_sub(128).wrapping_mul(65_535),
        }
    }
}

/// One end of the connection.
struct Side {
    host: Endpoint,
    id: Option<ConnectionId>,
    /// Bytes of the stream that were written to the connection, and that the other end has read.
    written: u64,
    read: u64,
    /// Its application has closed.
    is_closed: bool,
    /// Its first number, its newest segment, and its acknowledgements.
    first: Option<Seq>,
    last: (Seq, Seq),
    acks: HashSet<u32>,
    /// Numbers sent in its name.
    sent: Numbers,
    clock: u32,
    /// Packets in flight to the middle, and from there to this side.
    out: VecDeque<Packet>,
    into: VecDeque<Packet>,
}

impl Side {
    fn new(host: Endpoint) -> Side {
        Side {
            host,
            id: None,
            written: 0,
            read: 0,
            is_closed: false,
            first: None,
            last: (Seq(0), Seq(0)),
            acks: HashSet::new(),
            sent: Numbers::default(),
            clock: 0,
            out: VecDeque::new(),
            into: VecDeque::new(),
        }
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        self.host.connection_mut(self.id?)
    }

    fn note(&mut self, packet: &Packet) {
        let Some(tcp) = packet.tcp() else { return };
        if tcp.flags().contains(Flags::SYN) && self.first.is_none() {
            self.first = Some(tcp.seq());
        }
        self.last = (tcp.end_seq(), tcp.ack());
        if tcp.flags().contains(Flags::ACK) {
            self.acks.insert(tcp.ack().0);
        }
        self.sent.note(tcp.seq(), tcp.end_seq());
        self.clock = tcp.timestamps().map_or(self.clock, |(value, _)| value);
    }
}

/// Server (0) and client (1).
pub(crate) struct World<'a, M> {
    pub(crate) middle: M,
    choices: Choices<'a>,
    now: Instant,
    sides: [Side; 2],
    /// No packet was forged, and no end has aborted.
    is_honest: bool,
    /// Acknowledgement numbers of forged packets, for each receiving side.
    forged_acks: [HashSet<u32>; 2],
    /// A forged handshake gave this side another first number, where its stream begins.
    is_misled: [bool; 2],
    pool: BufferPool,
}

const SERVER: usize = 0;
const CLIENT: usize = 1;

fn address(side: usize) -> SocketAddr {
    let host =
        if side == SERVER { (Ipv4Addr::new(10, 0, 0, 1), 80) } else { (Ipv4Addr::new(10, 0, 1, 1), 40_000) };
    SocketAddr::from(host)
}

/// Copies the packet to separate memory, as a device delivers it.
fn on_the_wire(mut packet: Packet, pool: &mut BufferPool) -> Packet {
    packet.complete_checksum();
    Packet::parse(&[], &packet.to_vec(), pool).unwrap_or(packet)
}

/// The key from `side` to the other side.
fn key(side: usize) -> FlowKey {
    FlowKey::new(address(side), address(1 - side))
}

fn pattern(side: usize, position: u64) -> u8 {
    ((position ^ (side as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The data that `side` writes, from a position on. Generated once, otherwise a target would spend a third of its time
/// here.
fn stream(side: usize, from: u64, len: usize) -> &'static [u8] {
    static STREAMS: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
        [SERVER, CLIENT].map(|side| (0..WRITTEN_MAX).map(|position| pattern(side, position)).collect())
    });
    &STREAMS[side][from as usize..][..len]
}

fn bytes_of(side: usize, from: u64, len: usize) -> Payload {
    stream(side, from, len).to_vec().into()
}

fn config(choices: &mut Choices<'_>) -> Config {
    let bits = choices.byte();
    let mut config = Config {
        timestamps: bits & 1 == 0,
        sack: bits & 2 == 0,
        window_scaling: bits & 4 == 0,
        opportunistic: bits & 8 != 0,
        hack1: bits & 8 != 0,
        ecn: bits & 16 != 0,
        delayed_ack: bits & 32 == 0,
        nagle: bits & 64 == 0,
        congestion: choices.one_of(CongestionName::ALL),
        detection: choices.one_of(DetectionName::ALL),
        reduction: choices.one_of(ReductionName::ALL),
        receive_buffer: ReceiveBuffer::Fixed(choices.one_of(&[65_536, 3_000, 16_000, 1 << 20])),
        ..Config::default()
    };
    if bits & 128 != 0 {
        config.hystart = choices.one_of(HystartName::ALL);
        config.rto = choices.one_of(RtoName::ALL);
        config.schedule = choices.one_of(ScheduleName::ALL);
        config.receive_window = choices.one_of(ReceiveWindowName::ALL);
        config.receive_buffer = ReceiveBuffer::Auto { initial: 16_000, max: 1 << 20 };
    }
    config
}

impl<'a, M: Middle> World<'a, M> {
    pub(crate) fn new(data: &'a [u8], middle: M) -> Self {
        let mut choices = Choices(data);
        let now = Instant::ZERO + Duration::from_secs(100);
        let (mut server, mut client) = (Side::new(Endpoint::new(7)), Side::new(Endpoint::new(8)));
        server.host.listen(address(SERVER), config(&mut choices));
        client.id = Some(client.host.connect(now, address(CLIENT), address(SERVER), &config(&mut choices)));
        World {
            middle,
            choices,
            now,
            sides: [server, client],
            is_honest: true,
            forged_acks: [HashSet::new(), HashSet::new()],
            is_misled: [false; 2],
            pool: BufferPool::new(1 << 24),
        }
    }

    /// Runs all choices. If nobody interfered, all written data must then arrive.
    pub(crate) fn run(mut self) {
        self.pump();
        for _ in 0..STEPS_MAX {
            if self.choices.0.is_empty() {
                break;
            }
            self.step();
            self.pump();
        }
        for side in &mut self.sides {
            assert!(
                side.connection().is_none_or(|connection| connection.is_sound()),
                "another process would not go on with it"
            );
        }
        if self.is_honest {
            self.settle();
        }
    }

    fn step(&mut self) {
        let what = self.choices.byte();
        let side = usize::from(what >> 7);
        match what & 15 {
            0..=2 => self.write(side),
            3 => self.read(side, usize::from(self.choices.0.first().copied().unwrap_or(1)) * 100),
            4 | 5 => self.rounds(1 + usize::from(what >> 4 & 7)),
            6 => self.deliver(side, what & 64 != 0),
            7 => self.lose(side, what & 64 != 0),
            8 => self.twice(side, what & 64 != 0),
            9 => self.swap(side, what & 64 != 0),
            10 => self.wait(),
            11 => self.end(side, what & 112 == 112),
            12 => self.forge(side),
            13 => self.forge_raw(side),
            14 => self.forge_icmp(side),
            _ => {
                let choice = self.choices.byte();
                self.middle.turn(choice);
            }
        }
    }

    fn write(&mut self, side: usize) {
        let len = usize::from(self.choices.byte()) * 64;
        let one = &mut self.sides[side];
        let (written, is_closed) = (one.written, one.is_closed);
        let Some(connection) = one.connection() else { return };
        if !is_closed && connection.is_writable() {
            let taken = connection.write(&bytes_of(side, written, len));
            assert!(taken <= len);
            one.written += taken as u64;
        }
    }

    fn read(&mut self, side: usize, max: usize) {
        let now = self.now;
        let other = 1 - side;
        let [written, mut position] = [self.sides[other].written, self.sides[other].read];
        let is_misled = self.is_misled[side];
        let Some(connection) = self.sides[side].connection() else { return };
        // One read returns data of one received piece.
        let mut left = max;
        while let Some(payload) = connection.read(now, left).filter(|payload| !payload.is_empty()) {
            left -= payload.len();
            if is_misled {
                continue;
            }
            let after = position + payload.len() as u64;
            assert!(after <= written, "{after} bytes of {written}");
            let sent = stream(other, position, payload.len());
            assert!(payload.bytes().unwrap() == sent, "other bytes before {after}, for side {side}");
            position = after;
        }
        self.sides[other].read = position;
    }

    fn queue(&mut self, side: usize, into: bool) -> &mut VecDeque<Packet> {
        if into { &mut self.sides[side].into } else { &mut self.sides[side].out }
    }

    fn deliver(&mut self, side: usize, into: bool) {
        let Some(packet) = self.queue(side, into).pop_front() else { return };
        match into {
            true => self.sides[side].host.handle_packet(self.now, PortId(0), packet),
            false => self.middle.handle_packet(self.now, PortId(side as u8), packet),
        }
    }

    fn lose(&mut self, side: usize, into: bool) {
        self.queue(side, into).pop_front();
    }

    fn twice(&mut self, side: usize, into: bool) {
        let queue = self.queue(side, into);
        if let Some(first) = queue.front().cloned() {
            queue.push_back(first);
        }
    }

    fn swap(&mut self, side: usize, into: bool) {
        let queue = self.queue(side, into);
        if let Some(first) = queue.pop_front() {
            let at = queue.len().min(3);
            queue.insert(at, first);
        }
    }

    /// Delivers and reads everything, in `rounds` rounds of a few milliseconds each.
    fn rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.now += Duration::from_millis(5);
            for (side, into) in [(0, false), (1, false), (0, true), (1, true)] {
                for _ in 0..self.queue(side, into).len() {
                    self.deliver(side, into);
                }
                self.pump();
            }
            self.read(SERVER, 1 << 20);
            self.read(CLIENT, 1 << 20);
            self.timeouts();
        }
    }

    fn wait(&mut self) {
        let ms = u64::from(self.choices.byte());
        self.now += Duration::from_millis(if ms < 128 { ms } else { (ms - 127) * 100 });
        self.timeouts();
    }

    fn timeouts(&mut self) {
        let now = self.now;
        self.middle.handle_timeout(now);
        self.sides.iter_mut().for_each(|side| side.host.handle_timeout(now));
        self.pump();
    }

    fn end(&mut self, side: usize, abort: bool) {
        self.is_honest &= !abort;
        self.sides[side].is_closed = true;
        match self.sides[side].connection() {
            Some(connection) if abort => connection.abort(),
            Some(connection) => connection.close(),
            None => {}
        }
    }

    /// Polls all nodes until nothing is left to send. No node may send for ever.
    fn pump(&mut self) {
        if let Some(id) = self.sides[SERVER].host.accept() {
            self.sides[SERVER].id.get_or_insert(id);
        }
        for side in &mut self.sides {
            for n in 0.. {
                let Some((_, packet)) = side.host.poll_transmit(self.now) else { break };
                assert!(n < SENT_MAX, "a host sends for ever");
                side.note(&packet);
                if side.out.len() < QUEUE_MAX {
                    side.out.push_back(on_the_wire(packet, &mut self.pool));
                }
            }
        }
        for n in 0.. {
            let Some((port, packet)) = self.middle.poll_transmit(self.now) else { break };
            assert!(n < SENT_MAX, "the middle sends for ever");
            let side = usize::from(port.0);
            self.judge(side, &packet);
            for segment in packet.segments() {
                if self.sides[side].into.len() < QUEUE_MAX {
                    self.sides[side].into.push_back(segment);
                }
            }
        }
        self.middle.check();
    }

    /// Checks that every acknowledgement was sent by an end. A middle with its own ACKs may acknowledge only what
    /// `side` has sent.
    fn judge(&self, side: usize, packet: &Packet) {
        let Some(tcp) = packet.tcp().filter(|_| packet.flow_key() == Some(key(1 - side))) else { return };
        if !tcp.flags().contains(Flags::ACK) || self.forged_acks[side].contains(&tcp.ack().0) {
            return;
        }
        let (hears, says) = (&self.sides[side], &self.sides[1 - side]);
        if says.acks.contains(&tcp.ack().0) {
            return;
        }
        assert!(self.middle.makes_acks(), "side {side} hears of {:?}, which nobody said", tcp.ack());
        assert!(
            hears.sent.hold(tcp.ack()),
            "{:?} is not of what side {side} sent: {:?}",
            tcp.ack(),
            hears.sent
        );
    }

    /// Runs without losses until all data has arrived.
    fn settle(&mut self) {
        for turn in 0..SETTLE_MAX {
            self.rounds(1);
            if self.is_done() {
                return;
            }
            if turn % 8 == 7 {
                // Only timers are left. They are not known before every node has been polled.
                self.pump();
                let next = [self.middle.poll_timeout(), self.sides[0].host.poll_timeout()];
                let next = next.into_iter().chain([self.sides[1].host.poll_timeout()]).flatten().min();
                let Some(next) = next else { break };
                self.now = self.now.max(next);
                self.timeouts();
            }
        }
        let told = [0, 1].map(|side| (self.sides[side].written, self.sides[side].read));
        let now = self.now;
        let status = [0, 1].map(|side| self.sides[side].connection().map(|c| (c.state(), c.status(now))));
        let next = [0, 1].map(|side| self.sides[side].host.poll_timeout());
        let middle = self.middle.describe();
        assert!(self.is_done(), "not all arrived at {now:?}, timers {next:?}: {told:?} {status:?} {middle}");
    }

    /// True if all written data was read, or an end gave up after as many losses as the RFC allows.
    fn is_done(&mut self) -> bool {
        let gave_up = |side: &mut Side| {
            side.connection()
                .and_then(|connection| connection.close_reason())
                .is_some_and(|why| why != CloseReason::Finished)
        };
        self.sides.iter_mut().any(gave_up) || self.sides.iter().all(|side| side.read == side.written)
    }
}

/// Our choice: the work that a target can do in some hundred microseconds.
const STEPS_MAX: usize = 64;
const WRITTEN_MAX: u64 = STEPS_MAX as u64 * 255 * 64;
const QUEUE_MAX: usize = 256;
const SENT_MAX: usize = 10_000;
/// Enough for the longest backoff of a timeout (RFC 6298: a minute and more), which shorter timers of others cut into
/// steps.
const SETTLE_MAX: usize = 40_000;
