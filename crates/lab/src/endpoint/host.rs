//! One host of a run: all its connections on one thread inside its namespace.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use paceline_linux::clock;
use paceline_linux::{Context, SystemError};
use paceline_wire::{Duration, Instant};
use socket2::Socket;

use super::connection::{Connection, Limit, Ready, Receiver, Role, Sender, Turn};
use super::control::Control;
use super::mib::{MibCounters, MibSample};
use super::payload::PayloadSource;
use super::poller::Poller;
use super::read_pace::ReadPace;
use super::socket;
use super::traffic::{Amount, Direction, Start, Traffic};

/// State that both hosts of a run share.
pub(super) struct Shared<'a> {
    pub(super) traffic: &'a Traffic,
    pub(super) control: &'a Control,
    pub(super) start: Instant,
    /// The client's host has no more transfers.
    pub(super) client_done: AtomicBool,
}

/// Role of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// One end of a transfer, after the run.
#[derive(Debug, Default)]
pub(super) struct End {
    /// At the client: time of the connect call, which sends the first SYN. At the server: time of the accept.
    pub(super) began: Option<Instant>,
    pub(super) ended: Option<Instant>,
    pub(super) role: Option<Role>,
    pub(super) finished: bool,
    pub(super) failure: Option<String>,
    pub(super) mib_at_start: MibCounters,
    pub(super) mib_at_end: MibCounters,
}

/// All ends on one host, after the run.
#[derive(Debug)]
pub(super) struct HostReport {
    pub(super) ends: Vec<End>,
    pub(super) mib: Vec<MibSample>,
}

/// The host's state during a run.
pub(super) struct Host<'a> {
    shared: &'a Shared<'a>,
    side: Side,
    poller: Poller,
    listeners: Vec<Option<Socket>>,
    connections: Vec<Option<Connection>>,
    ends: Vec<End>,
    open: usize,
    ready: VecDeque<usize>,
    timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    mib: Vec<MibSample>,
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Start(usize),
    Wake(usize),
    Sample,
}

impl<'a> Host<'a> {
    /// Must be called in the namespace of the host. `listeners` has a server's listeners, one for each transfer.
    pub(super) fn new(
        shared: &'a Shared<'a>,
        side: Side,
        listeners: Vec<Option<Socket>>,
    ) -> Result<Self, SystemError> {
        let count = shared.traffic.transfers.len();
        let mut host = Host {
            shared,
            side,
            poller: Poller::new().context(|| "open an epoll descriptor".to_owned())?,
            listeners,
            connections: (0..count).map(|_| None).collect(),
            ends: (0..count).map(|_| End::default()).collect(),
            open: count,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            mib: Vec::new(),
            scratch: vec![0; CHUNK_BYTES],
        };
        host.timers.push(Reverse((shared.start, Timer::Sample)));
        for (index, transfer) in shared.traffic.transfers.iter().enumerate() {
            if let (Side::Client, Start::At(at)) = (side, transfer.start) {
                host.timers.push(Reverse((shared.start + at, Timer::Start(index))));
            }
        }
        for (index, listener) in host.listeners.iter().enumerate() {
            if let Some(listener) = listener {
                host.poller
                    .watch(listener, (count + index) as u64)
                    .context(|| "watch a socket".to_owned())?;
            }
        }
        Ok(host)
    }

    /// Runs until every transfer has ended, patience is over, or the run is cancelled.
    pub(super) fn run(mut self) -> Result<HostReport, SystemError> {
        let mut grace_end = Instant::ZERO + Duration::MAX;
        let patience_end = self.shared.start + self.shared.traffic.patience;
        while self.open > 0 {
            let now = clock::now();
            if self.shared.control.is_cancelled() {
                self.give_up("cancelled");
                break;
            }
            if now >= patience_end.min(grace_end) {
                self.give_up("not finished in time");
                break;
            }
            if self.side == Side::Server && self.shared.client_done.load(Ordering::Acquire) {
                grace_end = grace_end.min(now + GRACE);
            }
            self.fire_timers(now);
            self.work(now);
            self.poll(now)?;
        }
        if self.side == Side::Client {
            self.shared.client_done.store(true, Ordering::Release);
        }
        self.sample(clock::now());
        Ok(HostReport { ends: self.ends, mib: self.mib })
    }

    fn poll(&mut self, now: Instant) -> Result<(), SystemError> {
        let timeout = match self.timers.peek() {
            _ if !self.ready.is_empty() || self.open == 0 => Duration::ZERO,
            Some(Reverse((at, _))) => at.saturating_since(now).min(POLL_MAX),
            None => POLL_MAX,
        };
        let changes: Vec<(u64, Ready)> =
            self.poller.wait(timeout).context(|| "wait for sockets".to_owned())?.collect();
        for (token, change) in changes {
            let index = token as usize;
            if index >= self.connections.len() {
                self.accept(index - self.connections.len());
            } else if let Some(connection) = &mut self.connections[index] {
                connection.ready.readable |= change.readable;
                connection.ready.writable |= change.writable;
                connection.ready.hung_up |= change.hung_up;
                self.enqueue(index);
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, index: usize) {
        if let Some(connection) = &mut self.connections[index]
            && !std::mem::replace(&mut connection.queued, true)
        {
            self.ready.push_back(index);
        }
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(Reverse((at, timer))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            match timer {
                Timer::Start(index) => self.connect(index, now),
                Timer::Wake(index) => {
                    if let Some(connection) = &mut self.connections[index] {
                        connection.wake = None;
                        self.enqueue(index);
                    }
                }
                Timer::Sample => {
                    self.sample(now);
                    let next = at + self.shared.traffic.sample_interval.max(Duration::from_millis(1));
                    self.timers.push(Reverse((next.max(now), Timer::Sample)));
                }
            }
        }
    }

    /// Gives each ready connection one turn.
    fn work(&mut self, now: Instant) {
        for _ in 0..self.ready.len() {
            let Some(index) = self.ready.pop_front() else { break };
            let Some(connection) = &mut self.connections[index] else { continue };
            connection.queued = false;
            let before = received(connection);
            let turn = connection.work(now, &mut self.scratch);
            self.shared.control.add_received(received(connection) - before);
            match turn {
                Turn::Again => self.enqueue(index),
                Turn::Wait => {}
                Turn::WaitUntil(at) => self.wake_at(index, at),
                Turn::Finished => self.end(index, None),
                Turn::Failed(error) => self.end(index, Some(error.to_string())),
            }
        }
    }

    /// Sets a timer, unless the connection already has one.
    fn wake_at(&mut self, index: usize, at: Instant) {
        if let Some(connection) = &mut self.connections[index]
            && connection.wake.is_none()
        {
            connection.wake = Some(at);
            self.timers.push(Reverse((at, Timer::Wake(index))));
        }
    }

    fn connect(&mut self, index: usize, now: Instant) {
        let transfer = &self.shared.traffic.transfers[index];
        // As close to the SYN as possible.
        let began = clock::now().max(now);
        match socket::connect(transfer.client, transfer.server, &transfer.client_socket) {
            Ok(socket) => self.begin(index, socket, began),
            Err(error) => self.end(index, Some(error.to_string())),
        }
    }

    fn accept(&mut self, index: usize) {
        let Some(listener) = self.listeners.get_mut(index).and_then(Option::take) else { return };
        match listener.accept() {
            Ok((socket, _)) => match socket.set_nonblocking(true) {
                Ok(()) => self.begin(index, socket, clock::now()),
                Err(error) => self.end(index, Some(error.to_string())),
            },
            // The connection was gone before the accept, or there was none: listen on.
            Err(_) => self.listeners[index] = Some(listener),
        }
    }

    fn begin(&mut self, index: usize, socket: Socket, began: Instant) {
        let end = &mut self.ends[index];
        end.began = Some(began);
        end.mib_at_start = MibCounters::read().unwrap_or_default();
        if let Err(error) = self.poller.watch(&socket, index as u64) {
            self.end(index, Some(error.to_string()));
            return;
        }
        let role = self.role(index);
        self.connections[index] = Some(Connection::new(socket, role));
    }

    fn role(&self, index: usize) -> Role {
        let Shared { traffic, start, .. } = *self.shared;
        let transfer = &traffic.transfers[index];
        let sends = (transfer.direction == Direction::Down) == (self.side == Side::Server);
        if sends {
            let many = traffic.transfers.len() > FEW;
            let chunk = if many { SMALL_CHUNK_BYTES } else { CHUNK_BYTES };
            let (limit, chunk) = match transfer.amount {
                Amount::Bytes(bytes) => (Limit::Bytes(bytes), chunk.min(bytes as usize)),
                Amount::Until(end) => (Limit::At(start + end), chunk),
            };
            Role::Sender(Box::new(Sender::new(
                PayloadSource::new(transfer.seed, chunk, traffic.verify),
                limit,
            )))
        } else {
            let options = match self.side {
                Side::Server => &transfer.server_socket,
                Side::Client => &transfer.client_socket,
            };
            let pace = ReadPace::new(&transfer.read, start);
            let bin = traffic.sample_interval;
            Role::Receiver(Box::new(Receiver::new(pace, traffic.verify, start, bin, options.clone())))
        }
    }

    fn end(&mut self, index: usize, failure: Option<String>) {
        let now = clock::now();
        let end = &mut self.ends[index];
        if let Some(mut connection) = self.connections[index].take() {
            connection.sample(now);
            end.mib_at_end = MibCounters::read().unwrap_or_default();
            end.role = Some(connection.role);
        }
        end.ended = Some(now);
        end.finished = failure.is_none();
        end.failure = failure;
        self.open -= 1;
        if self.side == Side::Client {
            for (next, transfer) in self.shared.traffic.transfers.iter().enumerate() {
                if let Start::After(before, pause) = transfer.start
                    && before == index
                {
                    self.timers.push(Reverse((now + pause, Timer::Start(next))));
                }
            }
        }
    }

    fn give_up(&mut self, reason: &str) {
        for index in 0..self.ends.len() {
            if self.ends[index].ended.is_none() {
                if let Some(connection) = &self.connections[index] {
                    // The peer learns at once, and no data remains to be sent in the background.
                    let _ = connection.socket.set_linger(Some(std::time::Duration::ZERO));
                }
                self.end(index, Some(reason.to_owned()));
            }
        }
    }

    fn sample(&mut self, now: Instant) {
        self.connections.iter_mut().flatten().for_each(|connection| connection.sample(now));
        self.mib.extend(MibCounters::read().map(|counters| MibSample { at: now, counters }));
    }
}

fn received(connection: &Connection) -> u64 {
    match &connection.role {
        Role::Receiver(receiver) => receiver.received_bytes,
        Role::Sender(_) => 0,
    }
}

/// Longest delay until a cancelled run ends.
const POLL_MAX: Duration = Duration::from_millis(100);
/// How long a server waits for connections whose clients have ended.
const GRACE: Duration = Duration::from_secs(3);
/// Size of one read or write. Large, because system calls are expensive in the virtual-time kernel.
const CHUNK_BYTES: usize = 256 * 1024;
/// Size of a write beside many transfers, to bound memory.
const SMALL_CHUNK_BYTES: usize = 32 * 1024;
/// Up to this number of transfers, writes have the large size.
const FEW: usize = 64;
