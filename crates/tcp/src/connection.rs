//! One TCP connection (RFC 9293): its states, and how its sender and receiver work together.

mod app;
mod ecn;
mod handshake;
mod incoming;
mod output;
mod parts;
mod relay_api;
mod seam;
mod sound;
#[cfg(test)]
mod tests;
mod timers;

use paceline_wire::{FlowKey, HeaderTemplate, Instant, Packet, Seq};

use crate::config::Config;
use crate::receiver::Receiver;
use crate::segment::Incoming;
use crate::send_queue::SendQueue;
use crate::sender::{Sender, Supply};

/// The state of a connection (RFC 9293, Section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum State {
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data may flow.
    Established,
    /// Closed here; our FIN is not acknowledged.
    FinWait1,
    /// Closed here; the peer has not closed.
    FinWait2,
    /// The peer has closed.
    CloseWait,
    /// Both have closed; our FIN is not acknowledged.
    Closing,
    /// The peer closed first; our FIN is not acknowledged.
    LastAck,
    /// Waits until old segments have left the network.
    TimeWait,
    /// The connection has ended.
    Closed,
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum CloseReason {
    /// Both sides have closed.
    Finished,
    /// The peer sent a reset.
    Reset,
    /// The only answer to the SYN was a reset.
    Refused,
    /// The peer did not answer for too long.
    TimedOut,
    /// [`Connection::abort`], or [`Connection::close`] before the peer had answered.
    Aborted,
}

/// Initial sequence number and timestamp of a connection that stands in for another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct InitialNumbers {
    /// The initial sequence number.
    pub isn: Seq,
    /// Timestamp value at the time of opening.
    pub tsval: u32,
}

/// One TCP connection without I/O or clock: packets and time in, packets out.
///
/// Pass each arriving packet to [`handle_packet`](Self::handle_packet). Call [`poll_transmit`](Self::poll_transmit)
/// until it returns `None`. Call [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout). Time
/// never goes backwards. After an application call ([`write`](Self::write), [`read`](Self::read),
/// [`close`](Self::close), [`abort`](Self::abort)) poll again.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Connection {
    config: Config,
    /// Addresses and ports of the packets that this end sends.
    key: FlowKey,
    template: HeaderTemplate,
    state: State,
    reason: Option<CloseReason>,
    sender: Sender,
    receiver: Receiver,
    queue: SendQueue,
    /// Position of our SYN; the first byte is the next one.
    iss: u64,
    /// Options that the handshake negotiated.
    agreed: NegotiatedOptions,
    handshake: parts::Handshake,
    timers: parts::Timers,
    output: parts::Pending,
    /// TS.Recent and when it was taken (RFC 7323, Section 4.3).
    ts_recent: u32,
    ts_recent_at: Instant,
    last_received: Instant,
    passive: bool,
    #[serde(default)]
    echo: parts::Echo,
}

/// Options that the two SYNs negotiated.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct NegotiatedOptions {
    timestamps: bool,
    sack: bool,
    /// Window scale shifts of the peer's windows and of ours.
    snd_shift: u8,
    rcv_shift: u8,
    scaling: bool,
    /// Explicit congestion notification.
    #[serde(default)]
    ecn: bool,
}

/// See [`Connection::supply`].
const PIECE_SEGMENTS_MIN: u64 = 8;

impl Connection {
    /// Opens a connection. The next poll sends the SYN. `key` has the addresses and ports of the packets that this end
    /// sends. `seed` determines the initial sequence number and the timestamp offset. Nothing else is random.
    pub fn connect(config: &Config, key: FlowKey, seed: u64, now: Instant) -> Connection {
        Connection::open(config, key, mix(seed), now)
    }

    /// As [`connect`](Self::connect), with given initial numbers instead of a seed.
    pub fn connect_as(config: &Config, key: FlowKey, origin: InitialNumbers, now: Instant) -> Connection {
        Connection::open(config, key, origin.numbers(config, now), now)
    }

    /// Accepts the connection that `syn` requests. The next poll sends the SYN-ACK. Returns `None` if the packet is no
    /// SYN.
    pub fn accept(config: &Config, syn: &Packet, seed: u64, now: Instant) -> Option<Connection> {
        Connection::answer(config, syn, mix(seed), now)
    }

    /// As [`accept`](Self::accept), with given initial numbers instead of a seed.
    pub fn accept_as(
        config: &Config,
        syn: &Packet,
        origin: InitialNumbers,
        now: Instant,
    ) -> Option<Connection> {
        Connection::answer(config, syn, origin.numbers(config, now), now)
    }

    fn open(config: &Config, key: FlowKey, numbers: u64, now: Instant) -> Connection {
        let mut connection = Connection::new(config, key, numbers, State::SynSent, 0);
        connection.handshake.start();
        // Nothing was received, but the wait for the peer starts here.
        connection.last_received = now;
        connection
    }

    fn answer(config: &Config, syn: &Packet, numbers: u64, now: Instant) -> Option<Connection> {
        let incoming = Incoming::parse(syn)?;
        if !parts::opens(&incoming) {
            return None;
        }
        let key = syn.flow_key()?.reversed();
        let irs = (1 << 32) + u64::from(incoming.seq.0);
        let mut connection = Connection::new(config, key, numbers, State::SynReceived, irs + 1);
        connection.passive = true;
        connection.take_syn_options(now, &incoming);
        connection.handshake.start();
        connection.last_received = now;
        Some(connection)
    }

    /// The low half of `numbers` is the initial sequence number, the high half the timestamp offset.
    fn new(config: &Config, key: FlowKey, numbers: u64, state: State, rcv_nxt: u64) -> Connection {
        // Positions start above 2^32, so that positions before the start exist (see `Seq::unwrap_near`).
        let iss = (1 << 32) + u64::from(numbers as u32);
        let buffer = config.send_buffer.build(config.send_buffer_initial, config.send_buffer_max);
        Connection {
            config: *config,
            key,
            template: HeaderTemplate::tcp(key),
            state,
            reason: None,
            sender: Sender::new(config, numbers, iss + 1),
            receiver: Receiver::new(config, rcv_nxt),
            queue: SendQueue::new(iss + 1, buffer),
            iss,
            agreed: NegotiatedOptions::default(),
            handshake: parts::Handshake::default(),
            timers: parts::Timers::default(),
            output: parts::Pending::default(),
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            last_received: Instant::ZERO,
            passive: false,
            echo: parts::Echo::default(),
        }
    }

    /// Takes a packet that arrived at `arrival`. The caller must pass only packets of this connection.
    pub fn handle_packet(&mut self, arrival: Instant, packet: &Packet) {
        let mut incoming = Incoming::default();
        if incoming.read(packet) {
            self.on_segment(arrival, &incoming, packet.payload());
        }
    }

    /// Takes a report that the path MTU is `mtu` bytes (RFC 1191, RFC 8201). New segments respect it. Longer segments
    /// in flight are retransmitted at once, as super-packets of shorter segments.
    ///
    /// The caller must have checked that the report concerns a packet in flight (RFC 5927, Section 7.2).
    pub fn on_path_mtu(&mut self, now: Instant, mtu: u32) {
        // Linux net.ipv4.route.min_pmtu; RFC 8200, Section 5.
        let (least, headers) = if self.key.src.is_ipv6() { (1_280, 60) } else { (552, 40) };
        let options = if self.agreed.timestamps { 12 } else { 0 };
        self.sender.on_path_mss(now, mtu.max(least) - headers - options);
    }

    /// True if `seq` was sent and is not acknowledged.
    pub fn is_in_flight(&self, seq: Seq) -> bool {
        let (una, nxt) = (self.sender.board.una(), self.sender.board.nxt());
        (una..nxt).contains(&seq.unwrap_near(una))
    }

    /// The addresses and ports of the packets that this end sends.
    pub fn key(&self) -> FlowKey {
        self.key
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended. `None` before its end and in TIME-WAIT.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.reason
    }

    /// True if the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// True if the peer opened the connection.
    pub fn is_passive(&self) -> bool {
        self.passive
    }

    /// The sequence number that is expected next from the peer.
    pub fn expected(&self) -> Seq {
        Seq::from(self.receiver.nxt)
    }

    /// Bytes of payload in memory: unacknowledged, unread, and out of order.
    pub fn buffered(&self) -> u64 {
        self.unacknowledged() + self.receiver.readable() + self.receiver.out_of_order_bytes()
    }

    /// Number of memory pieces that hold these bytes. Each received packet is a piece, unless pieces were joined.
    pub fn pieces(&self) -> usize {
        self.queue.pieces() + self.receiver.pieces()
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn halves(&self) -> (&Sender, &Receiver, &SendQueue) {
        (&self.sender, &self.receiver, &self.queue)
    }

    pub(crate) fn shifts(&self) -> (u8, u8) {
        (self.agreed.snd_shift, self.agreed.rcv_shift)
    }

    /// Returns the data that the sender may send. With `pieces`, no segment crosses the end of a long piece of memory.
    fn supply(&self, pieces: bool) -> Supply {
        let fin = self.queue.is_closed();
        let mut piece = u64::MAX;
        if pieces {
            let (start, end) = self.queue.piece(self.sender.board.nxt());
            // Our choice: one short segment beside at least eight full ones costs less than a packet for each segment.
            if end - start >= PIECE_SEGMENTS_MIN * u64::from(self.sender.mss) {
                piece = end;
            }
        }
        Supply { end: self.queue.end() + u64::from(fin), fin, blocked: self.queue.is_blocked(), piece }
    }

    /// True if our FIN is acknowledged.
    fn fin_acked(&self) -> bool {
        self.queue.is_closed() && self.sender.board.una() > self.queue.end()
    }

    fn snd_seq(&self, position: u64) -> Seq {
        Seq::from(position)
    }

    fn finish(&mut self, reason: CloseReason) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.reason.get_or_insert(reason);
        }
    }
}

impl InitialNumbers {
    fn numbers(self, config: &Config, now: Instant) -> u64 {
        let offset = self.tsval.wrapping_sub(config.timestamp_clock.ticks(now));
        u64::from(offset) << 32 | u64::from(self.isn.0)
    }
}

/// Spreads a seed over 64 bits (SplitMix64, Steele et al. 2014).
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
