//! One end of a TCP connection: that of crates/tcp, with an application that writes, reads and keeps account.

use paceline_tcp::{Config, Connection as Tcp, Origin, ReceiveBuffer, ReceiveWindowName, State, Status};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, Seq};

use super::stream::{Content, Stream};

/// How one end behaves.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    pub tcp: Config,
    /// Largest super-packet in segments; 1: every segment is a packet of its own.
    pub gso_segments: u32,
    pub content: Content,
    pub isn: u32,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        EndpointConfig {
            tcp: Config { receive_window: ReceiveWindowName::Fixed, ..Config::default() },
            gso_segments: 1,
            content: Content::Length,
            // Wraps after 20 MB, which most runs pass.
            isn: 0u32.wrapping_sub(20_000_000),
        }
    }
}

impl EndpointConfig {
    /// A receive buffer of `bytes`, all of it advertised.
    #[must_use]
    pub fn with_buffer(mut self, bytes: u64) -> Self {
        self.tcp.receive_buffer = ReceiveBuffer::Fixed(bytes as u32);
        self
    }

    /// Bytes of the receive buffer.
    pub fn buffer(&self) -> u64 {
        match self.tcp.receive_buffer {
            ReceiveBuffer::Fixed(bytes) => u64::from(bytes),
            ReceiveBuffer::Auto { max, .. } => u64::from(max),
        }
    }
}

/// What the application at one end sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// Nothing; closes when the peer has closed.
    #[default]
    Silent,
    /// This number of bytes, then it closes.
    Bytes(u64),
    /// This number of bytes, and it keeps the connection open.
    BytesAndStay(u64),
    /// Without end.
    Endless,
}

/// What the application counts of the data that came.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Bytes in order, whether read or not.
    pub bytes: u64,
    pub wrong_bytes: u64,
    pub finished_at: Option<Instant>,
    /// Bytes in order per 10 ms since the start of the run.
    pub bins: Vec<u32>,
}

/// Length of a bin of [`Received::bins`].
pub const BIN: Duration = Duration::from_millis(10);
/// Bytes of one write.
const WRITE_PIECE: u64 = 1 << 16;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    /// The direction that this end sends in.
    pub key: FlowKey,
    config: EndpointConfig,
    workload: Workload,
    /// `None` before it is opened, and once the host has forgotten it.
    tcp: Option<Tcp>,
    forgotten: bool,
    sends: Stream,
    receives: Stream,
    written: u64,
    read: u64,
    out: Vec<Packet>,
    pub opened_at: Option<Instant>,
    pub bad_checksums: u64,
    pub received: Received,
}

impl Connection {
    pub fn new(key: FlowKey, config: EndpointConfig, workload: Workload) -> Self {
        Connection {
            key,
            workload,
            tcp: None,
            forgotten: false,
            sends: Stream::new(&key, config.content),
            receives: Stream::new(&key.reversed(), config.content),
            config,
            written: 0,
            read: 0,
            out: Vec::new(),
            opened_at: None,
            bad_checksums: 0,
            received: Received::default(),
        }
    }

    /// Both streams are over and everything is acknowledged.
    pub fn is_over(&self) -> bool {
        self.tcp.as_ref().is_some_and(|tcp| matches!(tcp.state(), State::TimeWait | State::Closed))
    }

    pub fn status(&self, now: Instant) -> Option<Status> {
        self.tcp.as_ref().map(|tcp| tcp.status(now))
    }

    /// Makes the host forget the connection: it no longer answers.
    pub fn forget(&mut self) {
        (self.tcp, self.forgotten) = (None, true);
    }

    pub fn open(&mut self, now: Instant) {
        self.opened_at = Some(now);
        self.tcp = Some(Tcp::connect_as(&self.config.tcp, self.key, self.origin(now), now));
        self.drive(now);
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.tcp.as_ref().and_then(Tcp::poll_timeout)
    }

    pub fn on_timeout(&mut self, now: Instant) {
        if let Some(tcp) = &mut self.tcp {
            tcp.handle_timeout(now);
        }
        self.drive(now);
    }

    pub fn on_packet(&mut self, now: Instant, packet: &Packet) {
        if !packet.verify_checksum() {
            self.bad_checksums += 1;
            return;
        }
        let is_syn = packet.tcp().is_some_and(|tcp| tcp.flags().contains(Flags::SYN));
        match &mut self.tcp {
            Some(tcp) => tcp.handle_packet(now, packet),
            None if is_syn && !self.forgotten => {
                self.opened_at = Some(now);
                self.tcp = Tcp::accept_as(&self.config.tcp, packet, self.origin(now), now);
            }
            None => return,
        }
        self.drive(now);
    }

    pub fn take_packets(&mut self, into: &mut impl Extend<Packet>) {
        into.extend(self.out.drain(..));
    }

    /// Returns the initial numbers. Timestamps wrap 5 s after the start of the run.
    fn origin(&self, now: Instant) -> Origin {
        Origin { isn: Seq(self.config.isn), tsval: ((now.as_nanos() / 1_000_000) as u32).wrapping_sub(5_000) }
    }

    /// Lets the application read and write, and takes the packets that may leave.
    fn drive(&mut self, now: Instant) {
        self.count(now);
        self.read(now);
        self.write();
        let Some(tcp) = &mut self.tcp else { return };
        if self.received.finished_at.is_none() && tcp.is_read_finished() {
            self.received.finished_at = Some(now);
            if self.workload == Workload::Silent {
                tcp.close();
            }
        }
        while let Some(mut packet) = match self.config.gso_segments {
            1 => tcp.poll_transmit(now),
            most => tcp.poll_super_packet(now, most),
        } {
            if packet.gso_size().is_none() && self.sends.content() == Content::Bytes {
                packet.complete_checksum();
            }
            self.out.push(packet);
        }
    }

    fn write(&mut self) {
        let Some(tcp) = &mut self.tcp else { return };
        let (whole, closes) = match self.workload {
            Workload::Silent => return,
            Workload::Bytes(bytes) => (bytes, true),
            Workload::BytesAndStay(bytes) => (bytes, false),
            Workload::Endless => (u64::MAX, false),
        };
        while self.written < whole && tcp.is_writable() {
            let end = whole.min(self.written + WRITE_PIECE);
            match tcp.write(&self.sends.payload(self.written, end)) {
                0 => break,
                bytes => self.written += bytes as u64,
            }
        }
        // To close what is not open yet would be to give it up (RFC 9293, Section 3.10.4).
        if closes && self.written == whole && tcp.state() != State::SynSent {
            tcp.close();
        }
    }

    /// Reads whatever has arrived.
    fn read(&mut self, now: Instant) {
        let Some(tcp) = &mut self.tcp else { return };
        while let Some(payload) = tcp.read(now, usize::MAX) {
            let end = self.read + payload.len() as u64;
            self.received.wrong_bytes += self.receives.wrong_bytes(&payload, self.read);
            self.read = end;
        }
    }

    /// Counts the data that came in order since the last call.
    fn count(&mut self, now: Instant) {
        let Some(tcp) = &self.tcp else { return };
        let received = &mut self.received;
        let bytes = self.read + tcp.readable() - received.bytes;
        if bytes == 0 {
            return;
        }
        received.bytes += bytes;
        let bin = (now.as_nanos() / BIN.as_nanos()) as usize;
        if received.bins.len() <= bin {
            received.bins.resize(bin + 1, 0);
        }
        received.bins[bin] += bytes as u32;
    }
}
