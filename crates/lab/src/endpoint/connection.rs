//! One end of a transfer: a state machine over a non-blocking socket.

use std::io;
use std::net::Shutdown;

use paceline_wire::{Duration, Instant};
use socket2::Socket;

use super::payload::{PayloadSource, Sha256Sum, StreamDigest};
use super::read_pace::{ReadPace, Reading};
use super::socket::clamp_window;
use super::tcp_info::TcpSample;
use super::traffic::SocketOptions;

/// Result of a turn of work.
#[derive(Debug)]
pub(super) enum Turn {
    /// There is more work at once.
    Again,
    /// Wait until the socket is ready.
    Wait,
    /// Wait until this time.
    WaitUntil(Instant),
    /// The peer has closed and everything is sent.
    Finished,
    /// The connection broke.
    Failed(io::Error),
}

/// One end of one transfer.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) ready: Ready,
    pub(super) role: Role,
    /// The connection is in the queue of ready ones.
    pub(super) queued: bool,
    /// Time at which a timer wakes the connection.
    pub(super) wake: Option<Instant>,
}

/// The poller's last report. It is kept until the socket contradicts it, because readiness is reported once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ready {
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The peer has closed its side, or the connection broke. Then more reads follow a short one.
    pub(super) hung_up: bool,
}

#[derive(Debug)]
pub(super) enum Role {
    Sender(Box<Sender>),
    Receiver(Box<Receiver>),
}

impl Connection {
    pub(super) fn new(socket: Socket, role: Role) -> Self {
        Connection { socket, ready: Ready::default(), role, queued: false, wake: None }
    }

    /// Reads or writes at most once.
    pub(super) fn work(&mut self, now: Instant, scratch: &mut [u8]) -> Turn {
        match &mut self.role {
            Role::Sender(sender) => sender.work(&self.socket, &mut self.ready, now, scratch),
            Role::Receiver(receiver) => receiver.work(&self.socket, &mut self.ready, now, scratch),
        }
    }

    /// Samples the socket's TCP state if this end sends.
    pub(super) fn sample(&mut self, at: Instant) {
        if let Role::Sender(sender) = &mut self.role {
            sender.samples.extend(TcpSample::take(&self.socket, at));
        }
    }
}

/// The sending end.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) source: PayloadSource,
    pub(super) sent_bytes: u64,
    pub(super) samples: Vec<TcpSample>,
    limit: Limit,
    closed: bool,
}

/// When a sender stops.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    Bytes(u64),
    At(Instant),
}

impl Sender {
    pub(super) fn new(source: PayloadSource, limit: Limit) -> Self {
        Sender { source, sent_bytes: 0, samples: Vec::new(), limit, closed: false }
    }

    /// True if all data was handed to the kernel.
    pub(super) fn is_complete(&self) -> bool {
        self.closed
    }

    pub(super) fn digest(&self) -> Option<Sha256Sum> {
        self.source.digest()
    }

    fn work(&mut self, socket: &Socket, ready: &mut Ready, now: Instant, scratch: &mut [u8]) -> Turn {
        if self.closed {
            return await_end(socket, ready, scratch);
        }
        let left = match self.limit {
            Limit::Bytes(total) => total - self.sent_bytes,
            Limit::At(end) if now < end => u64::MAX,
            Limit::At(_) => 0,
        };
        if left == 0 {
            self.closed = true;
            return match socket.shutdown(Shutdown::Write) {
                Ok(()) => Turn::Again,
                Err(error) => Turn::Failed(error),
            };
        }
        if !ready.writable {
            return self.wait();
        }
        let pending = self.source.pending();
        let offered = pending.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match socket.send(&pending[..offered]) {
            Ok(sent) => {
                self.source.consume(sent);
                self.sent_bytes += sent as u64;
                ready.writable = sent == offered;
                if ready.writable { Turn::Again } else { self.wait() }
            }
            Err(error) if would_block(&error) => {
                ready.writable = false;
                self.wait()
            }
            Err(error) => Turn::Failed(error),
        }
    }

    fn wait(&self) -> Turn {
        match self.limit {
            Limit::Bytes(_) => Turn::Wait,
            Limit::At(end) => Turn::WaitUntil(end),
        }
    }
}

/// Waits for the end of the stream, the only thing that a sender expects from the receiver.
fn await_end(socket: &Socket, ready: &mut Ready, scratch: &mut [u8]) -> Turn {
    if !ready.readable {
        return Turn::Wait;
    }
    match read(socket, scratch) {
        Ok(0) => Turn::Finished,
        Ok(_) => Turn::Again,
        Err(error) if would_block(&error) => {
            ready.readable = false;
            Turn::Wait
        }
        Err(error) => Turn::Failed(error),
    }
}

/// The receiving end.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) received_bytes: u64,
    /// Received bytes in each sample interval from the start of the run.
    pub(super) bins: Vec<u64>,
    pub(super) first_byte: Option<Instant>,
    pub(super) last_byte: Option<Instant>,
    /// The longest time between two reads with data, and when it began.
    pub(super) longest_gap: Option<(Instant, Duration)>,
    digest: StreamDigest,
    pace: ReadPace,
    run_start: Instant,
    bin: Duration,
    options: SocketOptions,
}

impl Receiver {
    pub(super) fn new(
        pace: ReadPace,
        verify: bool,
        run_start: Instant,
        bin: Duration,
        options: SocketOptions,
    ) -> Self {
        Receiver {
            received_bytes: 0,
            bins: Vec::new(),
            first_byte: None,
            last_byte: None,
            longest_gap: None,
            digest: StreamDigest::new(verify),
            pace,
            run_start,
            bin,
            options,
        }
    }

    pub(super) fn digest(&self) -> Option<Sha256Sum> {
        self.digest.sum()
    }

    fn work(&mut self, socket: &Socket, ready: &mut Ready, now: Instant, scratch: &mut [u8]) -> Turn {
        if !ready.readable {
            return Turn::Wait;
        }
        let wanted = match self.pace.reading(now) {
            Reading::UpTo(bytes) => bytes.min(scratch.len()),
            Reading::NotBefore(at) => return Turn::WaitUntil(at),
        };
        match read(socket, &mut scratch[..wanted]) {
            Ok(0) => Turn::Finished,
            Ok(bytes) => {
                self.account(now, &scratch[..bytes]);
                // This fails only on a connection that is closing.
                let _ = clamp_window(socket, &self.options);
                // A short read emptied the socket, and new data will be reported. The end of the stream may already
                // have been reported.
                ready.readable = bytes == wanted || ready.hung_up;
                if ready.readable { Turn::Again } else { Turn::Wait }
            }
            Err(error) if would_block(&error) => {
                ready.readable = false;
                Turn::Wait
            }
            Err(error) => Turn::Failed(error),
        }
    }

    fn account(&mut self, now: Instant, bytes: &[u8]) {
        self.digest.update(bytes);
        self.pace.read(bytes.len());
        self.received_bytes += bytes.len() as u64;
        self.first_byte.get_or_insert(now);
        if let Some(last) = self.last_byte {
            let gap = now.saturating_since(last);
            if self.longest_gap.is_none_or(|(_, longest)| gap > longest) {
                self.longest_gap = Some((last, gap));
            }
        }
        self.last_byte = Some(now);
        let bin = now.saturating_since(self.run_start).as_nanos() / self.bin.as_nanos().max(1);
        let bin = (bin as usize).min(BINS_MAX - 1);
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += bytes.len() as u64;
    }
}

fn read(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    io::Read::read(&mut &*socket, buffer)
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Three hours of bins of 100 ms. Later bytes count in the last bin.
const BINS_MAX: usize = 108_000;
