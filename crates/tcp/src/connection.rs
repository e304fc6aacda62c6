//! One TCP connection (RFC 9293): states, and how the halves meet.

mod app;
mod handshake;
mod incoming;
mod output;
#[cfg(test)]
mod tests;
mod timers;

use alloc::boxed::Box;

use paceline_wire::{FlowKey, HeaderTemplate, Instant, Packet, Seq};

use crate::config::Config;
use crate::event::{Event, Observer};
use crate::receiver::Receiver;
use crate::segment::Incoming;
use crate::send_queue::SendQueue;
use crate::sender::{Sender, Supply};

/// The state of a connection (RFC 9293, Section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// Waits for copies to die out.
    TimeWait,
    /// Over.
    Closed,
}

/// Why a connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CloseReason {
    /// Both sides have closed.
    Finished,
    /// The peer sent a reset.
    Reset,
    /// Nobody answered the SYN with anything but a reset.
    Refused,
    /// The peer did not answer for too long.
    TimedOut,
    /// [`Connection::abort`].
    Aborted,
}

/// One TCP connection without I/O or clock: packets and time in, packets out.
///
/// Give it what arrives with [`handle_packet`](Self::handle_packet), call [`poll_transmit`](Self::poll_transmit) until it
/// returns `None`, and call [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout). Time never
/// goes backwards. After an application call ([`write`](Self::write), [`read`](Self::read), [`close`](Self::close),
/// [`abort`](Self::abort)) poll again.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    /// The direction in which it sends.
    key: FlowKey,
    template: HeaderTemplate,
    state: State,
    reason: Option<CloseReason>,
    sender: Sender,
    receiver: Receiver,
    queue: SendQueue,
    /// Position of our SYN; the first byte is the next one.
    iss: u64,
    /// What the handshake settled.
    agreed: Agreed,
    handshake: handshake::Handshake,
    timers: timers::Timers,
    output: output::Pending,
    /// TS.Recent and when it was taken (RFC 7323, Section 4.3).
    ts_recent: u32,
    ts_recent_at: Instant,
    last_received: Instant,
    passive: bool,
}

/// What the two SYNs agreed on.
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    timestamps: bool,
    sack: bool,
    /// By how much the peer's windows are shifted, and ours.
    snd_shift: u8,
    rcv_shift: u8,
    scaling: bool,
}

impl Connection {
    /// Opens a connection: the SYN leaves with the next poll. `key` is the direction in which it sends. `seed` makes the
    /// initial sequence number and the offset of timestamps; nothing else is random.
    pub fn connect(config: &Config, key: FlowKey, seed: u64, now: Instant) -> Connection {
        let mut connection = Connection::new(config, key, seed, State::SynSent, 0);
        connection.handshake.start(now);
        connection
    }

    /// Takes a connection that `syn` asks for: the SYN-ACK leaves with the next poll. `None` if this is no SYN.
    pub fn accept(config: &Config, syn: &Packet, seed: u64, now: Instant) -> Option<Connection> {
        let incoming = Incoming::parse(syn)?;
        if !handshake::opens(&incoming) {
            return None;
        }
        let key = syn.flow_key()?.reversed();
        let irs = (1 << 32) + u64::from(incoming.seq.0);
        let mut connection = Connection::new(config, key, seed, State::SynReceived, irs + 1);
        connection.passive = true;
        connection.take_syn_options(now, &incoming);
        connection.handshake.start(now);
        connection.last_received = now;
        Some(connection)
    }

    fn new(config: &Config, key: FlowKey, seed: u64, state: State, rcv_nxt: u64) -> Connection {
        let seed = mix(seed);
        // Positions start above 2^32, so that those before the start exist (see `Seq::unwrap_near`).
        let iss = (1 << 32) + u64::from(seed as u32);
        let buffer = config.send_buffer.build(config.send_buffer_initial, config.send_buffer_max);
        Connection {
            config: *config,
            key,
            template: HeaderTemplate::tcp(key),
            state,
            reason: None,
            sender: Sender::new(config, seed, iss + 1),
            receiver: Receiver::new(config, rcv_nxt),
            queue: SendQueue::new(iss + 1, buffer),
            iss,
            agreed: Agreed::default(),
            handshake: handshake::Handshake::default(),
            timers: timers::Timers::default(),
            output: output::Pending::default(),
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            last_received: Instant::ZERO,
            passive: false,
        }
    }

    /// Takes a packet that arrived at `arrival`. Packets of other flows must not be given.
    pub fn handle_packet(&mut self, arrival: Instant, packet: &Packet) {
        if let Some(incoming) = Incoming::parse(packet) {
            self.on_segment(arrival, &incoming, packet.payload());
        }
    }

    /// The addresses and ports of the direction in which it sends.
    pub fn key(&self) -> FlowKey {
        self.key
    }

    /// Where it is in its life.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why it is over; `None` while it is not, or is in TIME-WAIT.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.reason
    }

    /// True when nothing will ever come of it again.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// True when the peer opened it.
    pub fn is_passive(&self) -> bool {
        self.passive
    }

    /// What was configured.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whoever wants to know what happens; there is one at most, and without one events cost nothing.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) {
        self.sender.observer = observer;
    }

    pub(crate) fn halves(&self) -> (&Sender, &Receiver, &SendQueue) {
        (&self.sender, &self.receiver, &self.queue)
    }

    pub(crate) fn shifts(&self) -> (u8, u8) {
        (self.agreed.snd_shift, self.agreed.rcv_shift)
    }

    /// What the sender may draw on.
    fn supply(&self) -> Supply {
        let fin = self.queue.is_closed();
        Supply { end: self.queue.end() + u64::from(fin), fin, blocked: self.queue.is_blocked() }
    }

    /// True when our FIN is acknowledged.
    fn fin_acked(&self) -> bool {
        self.queue.is_closed() && self.sender.board.una() > self.queue.end()
    }

    fn snd_seq(&self, position: u64) -> Seq {
        Seq::from(position)
    }

    fn finish(&mut self, now: Instant, reason: CloseReason) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.reason.get_or_insert(reason);
            self.sender.emit(now, Event::Closed);
        }
    }
}

/// Spreads a seed over 64 bits (SplitMix64, Steele et al. 2014).
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
