//! One host, its clock, and its sent packets that packetdrill has not yet read.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use paceline_tcp::{Connection, ConnectionId, Endpoint, PORT, State, Status};
use paceline_wire::{BufferPool, Duration, Flags, FlowKey, Instant, Node, Packet, Rate};

use crate::middle::Middle;
use crate::offload::{Offload, limit};
use crate::queue::{Discipline, Fq, pacing_rate};
use crate::sockets::{Kind, Sockets};

/// The host under test.
pub(crate) struct Stack {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Instant,
    pub(crate) sockets: Sockets,
    pub(crate) offload: Offload,
    fq: Fq,
    /// A gateway in front of the host, if there is one.
    middle: Option<Middle>,
    /// Connections opened by peers and not yet accepted.
    pub(crate) accepted: Vec<ConnectionId>,
    /// Connections with closed descriptors.
    pub(crate) was_closed: Vec<ConnectionId>,
    /// Departure time and bytes of each packet.
    out: VecDeque<(Instant, Vec<u8>)>,
    local: Option<IpAddr>,
    next_port: u16,
    pool: BufferPool,
    /// Number of threads that wait in a call, and of those woken that have not yet tried again.
    waiting: usize,
    woken: usize,
}

static STACK: LazyLock<Mutex<Stack>> = LazyLock::new(|| Mutex::new(Stack::new()));
/// Signals an event for which a thread may wait.
static HAPPENED: Condvar = Condvar::new();
/// Signals that a woken thread has tried again.
static LOOKED: Condvar = Condvar::new();

/// Locks the host. packetdrill has a second thread for blocking system calls.
pub(crate) fn lock() -> MutexGuard<'static, Stack> {
    STACK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tries until there is an outcome. On a non-blocking descriptor it tries once.
pub(crate) fn wait<T>(fd: c_int, mut attempt: impl FnMut(&mut Stack) -> Option<T>) -> Option<T> {
    let mut stack = lock();
    let mut outcome = attempt(&mut stack);
    let blocks = Sockets::blocks(fd);
    while outcome.is_none() && blocks {
        stack.waiting += 1;
        while stack.woken == 0 {
            stack = HAPPENED.wait(stack).unwrap_or_else(PoisonError::into_inner);
        }
        stack.waiting -= 1;
        outcome = attempt(&mut stack);
        stack.woken -= 1;
        LOOKED.notify_all();
    }
    outcome
}

/// After an event, lets the waiting threads try again before time advances.
pub(crate) fn settle(mut stack: MutexGuard<'static, Stack>) {
    stack.woken = stack.waiting;
    HAPPENED.notify_all();
    while stack.woken > 0 {
        stack = LOOKED.wait(stack).unwrap_or_else(PoisonError::into_inner);
    }
}

impl Stack {
    fn new() -> Stack {
        let now = Instant::ZERO + Duration::from_secs(1_000);
        Stack {
            endpoint: Endpoint::new(1),
            now,
            fq: Fq::new(now),
            middle: None,
            sockets: Sockets::default(),
            offload: Offload::default(),
            accepted: Vec::new(),
            was_closed: Vec::new(),
            out: VecDeque::new(),
            local: None,
            next_port: 33_000,
            pool: BufferPool::new(1 << 24),
            waiting: 0,
            woken: 0,
        }
    }

    /// Reads `flags`: the address of connections that were not bound. Then, with a split gateway in front, the role of
    /// the host ([`Middle::beside`]).
    pub(crate) fn set_up(&mut self, flags: &str) {
        let mut words = flags.split_whitespace();
        self.local = words.next().and_then(|address| address.parse().ok());
        self.middle = words.next().and_then(Middle::beside);
    }

    pub(crate) fn unbound(&mut self) -> Option<SocketAddr> {
        self.next_port += 1;
        Some(SocketAddr::new(self.local?, self.next_port))
    }

    pub(crate) fn connection(&mut self, fd: c_int) -> Result<&mut Connection, c_int> {
        let Kind::Connection(id) = self.sockets.get(fd)?.kind else { return Err(libc::ENOTCONN) };
        self.endpoint.connection_mut(id).ok_or(libc::ENOTCONN)
    }

    /// Takes a connection that a peer opened to `address` and whose handshake is complete.
    pub(crate) fn take_accepted(&mut self, address: SocketAddr) -> Option<ConnectionId> {
        while let Some(id) = self.endpoint.accept() {
            self.accepted.push(id);
        }
        let is_ready = |id: &ConnectionId| {
            let connection = self.endpoint.connection(*id);
            connection
                .is_some_and(|c| c.state() != State::SynReceived && c.key().src.port() == address.port())
        };
        let at = self.accepted.iter().position(is_ready)?;
        Some(self.accepted.remove(at))
    }

    /// Takes a packet of the script.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        let Some(packet) = Packet::parse(&[], bytes, &mut self.pool) else { return };
        match &mut self.middle {
            Some(middle) => middle.take_from_script(self.now, packet),
            None => self.hear(packet),
        }
        self.poll();
    }

    /// Passes a packet to the host.
    fn hear(&mut self, packet: Packet) {
        let is_syn = packet.tcp().is_some_and(|tcp| tcp.flags().contains(Flags::SYN));
        // As Linux, the count starts with the handshake.
        let (key, has_data) = (packet.flow_key(), is_syn || !packet.payload().is_empty());
        let is_of = |key: FlowKey| self.endpoint.ids().find(|id| self.key_of(*id) == Some(key.reversed()));
        let (id, now) = (key.and_then(is_of).filter(|_| has_data), self.now);
        match id.map(|id| (id, self.sockets.of(id))) {
            Some((_, Some(socket))) => socket.last_data = now,
            // RFC 1122, Section 4.2.2.13: nobody will read this data, so a reset answers it.
            Some((id, None)) if self.was_closed.contains(&id) => {
                self.endpoint.remove(id);
            }
            _ => {}
        }
        self.endpoint.handle_packet(now, PORT, packet);
    }

    fn key_of(&self, id: ConnectionId) -> Option<FlowKey> {
        self.endpoint.connection(id).map(Connection::key)
    }

    /// Collects the packets that have left until now.
    pub(crate) fn poll(&mut self) {
        self.endpoint.handle_timeout(self.now);
        if let Some(mut middle) = self.middle.take() {
            self.relay(&mut middle);
            self.middle = Some(middle);
            return;
        }
        match Discipline::now() {
            // A full device does not poll.
            Discipline::Full => self.pause(),
            Discipline::None => while self.transmit(usize::MAX, false) {},
            Discipline::Fq => loop {
                self.release();
                let most = self.flow_status().map_or(1, |status| limit(&status));
                if !self.fq.takes() {
                    break self.pause();
                }
                if !self.transmit(most as usize, true) {
                    break;
                }
            },
        }
    }

    /// Passes packets between host, gateway and script. There is no device queue.
    fn relay(&mut self, middle: &mut Middle) {
        middle.handle_timeout(self.now);
        loop {
            while let Some((_, packet)) = self.endpoint.poll_transmit(self.now) {
                middle.take_from_host(self.now, packet);
            }
            let Some((is_for_host, packet)) = middle.next_packet(self.now) else { break };
            match is_for_host {
                true => self.hear(packet),
                false => self.leave(packet.segments().collect()),
            }
        }
    }

    /// Handles connections that are not polled. Their timers still run.
    fn pause(&mut self) {
        let ids: Vec<_> = self.endpoint.ids().collect();
        for id in ids {
            if let Some(connection) = self.endpoint.connection_mut(id) {
                connection.handle_timeout(self.now);
                connection.pause(self.now);
            }
        }
    }

    /// Sends at most `most` packets of one connection, or queues them in fq. False if there are none.
    fn transmit(&mut self, most: usize, waits: bool) -> bool {
        let mut burst: Vec<Packet> = Vec::new();
        while burst.len() < most
            && let Some((_, packet)) = self.endpoint.poll_transmit(self.now)
        {
            if burst.first().is_some_and(|first| first.flow_key() != packet.flow_key()) {
                let before = std::mem::take(&mut burst);
                self.prepare(before, waits);
            }
            burst.push(packet);
        }
        let any = !burst.is_empty();
        self.prepare(burst, waits);
        any
    }

    fn prepare(&mut self, mut burst: Vec<Packet>, waits: bool) {
        let Some(key) = burst.first().and_then(Packet::flow_key) else { return };
        if let Some(id) = self.endpoint.ids().find(|id| self.key_of(*id) == Some(key))
            && let Some(status) = self.endpoint.connection(id).map(|connection| connection.status(self.now))
        {
            self.offload.set_push(key, &status, &mut burst);
        }
        match waits && !burst.iter().all(|packet| packet.payload().is_empty()) {
            true => self.fq.take(self.now, burst),
            false => self.leave(burst),
        }
    }

    /// Sends the packets that fq releases.
    fn release(&mut self) {
        let rate = self.flow_status().map_or(u64::MAX, |status| pacing_rate(&status));
        while let Some(packets) = self.fq.release(self.now, Rate::from_bytes_per_sec(rate)) {
            self.leave(packets);
        }
    }

    /// The status of the script's connection.
    fn flow_status(&self) -> Option<Status> {
        let id = self.endpoint.ids().next()?;
        self.endpoint.connection(id).map(|connection| connection.status(self.now))
    }

    fn leave(&mut self, packets: Vec<Packet>) {
        for mut packet in packets {
            packet.complete_checksum();
            self.out.push_back((self.now, packet.to_vec()));
        }
    }

    /// Time of the next event. A connection that is not polled is always due, so time then advances in steps.
    fn next(&self) -> Option<Instant> {
        let middle = self.middle.as_ref().and_then(Middle::due);
        let due = [self.endpoint.poll_timeout(), self.fq.due(), middle].into_iter().flatten().min();
        due.map(|due| if due <= self.now { self.now + STEP } else { due })
    }

    /// Advances the time and handles timers when they are due.
    pub(crate) fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        self.poll();
        while let Some(next) = self.next().filter(|&next| next <= end) {
            self.now = self.now.max(next);
            self.poll();
        }
        self.now = end;
        self.poll();
    }

    /// Advances the time until a packet leaves. `None` if none leaves within `patience`.
    pub(crate) fn next_packet(&mut self, patience: Duration) -> Option<(Instant, Vec<u8>)> {
        let end = self.now + patience;
        loop {
            self.poll();
            if let Some(packet) = self.out.pop_front() {
                return Some(packet);
            }
            let next = self.next().filter(|&next| next <= end)?;
            self.now = self.now.max(next);
        }
    }
}

/// Our choice: a tenth of the shortest time that scripts distinguish.
const STEP: Duration = Duration::from_micros(100);
