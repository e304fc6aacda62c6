//! One host, its clock, and the packets that it has sent and nobody has looked at yet.

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
    /// A gateway in front of it, if there is one.
    middle: Option<Middle>,
    /// Opened by peers and not asked for yet.
    pub(crate) accepted: Vec<ConnectionId>,
    /// Whose descriptors are closed.
    pub(crate) was_closed: Vec<ConnectionId>,
    /// When each packet left, and its bytes.
    out: VecDeque<(Instant, Vec<u8>)>,
    local: Option<IpAddr>,
    next_port: u16,
    pool: BufferPool,
    /// Threads that wait in a call, and those that have been woken and have not looked yet.
    waiting: usize,
    woken: usize,
}

static STACK: LazyLock<Mutex<Stack>> = LazyLock::new(|| Mutex::new(Stack::new()));
/// Something has happened for which a thread may wait.
static HAPPENED: Condvar = Condvar::new();
/// A thread that was woken has looked.
static LOOKED: Condvar = Condvar::new();

/// The host; packetdrill has a second thread for system calls that wait.
pub(crate) fn lock() -> MutexGuard<'static, Stack> {
    STACK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tries until there is an outcome; where the descriptor does not wait, once.
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

/// After something has happened: who waits looks now, before time goes on.
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

    /// `flags`: the address that connections come from which were not bound; then, if a split gateway is in front, what the host is
    /// ([`Middle::beside`]).
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

    /// A connection that a peer opened to `address` and whose handshake is done.
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

    /// A packet of the script arrives.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        let Some(packet) = Packet::parse(&[], bytes, &mut self.pool) else { return };
        match &mut self.middle {
            Some(middle) => middle.take_from_script(self.now, packet),
            None => self.hear(packet),
        }
        self.poll();
    }

    /// The host gets a packet.
    fn hear(&mut self, packet: Packet) {
        let is_syn = packet.tcp().is_some_and(|tcp| tcp.flags().contains(Flags::SYN));
        // From its handshake on, as Linux counts.
        let (key, has_data) = (packet.flow_key(), is_syn || !packet.payload().is_empty());
        let is_of = |key: FlowKey| self.endpoint.ids().find(|id| self.key_of(*id) == Some(key.reversed()));
        let (id, now) = (key.and_then(is_of).filter(|_| has_data), self.now);
        match id.map(|id| (id, self.sockets.of(id))) {
            Some((_, Some(socket))) => socket.last_data = now,
            // RFC 1122, Section 4.2.2.13: nobody will read it, which a reset tells.
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

    /// Takes what has left until now.
    pub(crate) fn poll(&mut self) {
        self.endpoint.handle_timeout(self.now);
        if let Some(mut middle) = self.middle.take() {
            self.relay(&mut middle);
            self.middle = Some(middle);
            return;
        }
        match Discipline::now() {
            // Who takes nothing does not ask.
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

    /// What the host and the gateway have for each other and for the script. There is no device's queue.
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

    /// Connections that are not polled: their timers run all the same.
    fn pause(&mut self) {
        let ids: Vec<_> = self.endpoint.ids().collect();
        for id in ids {
            if let Some(connection) = self.endpoint.connection_mut(id) {
                connection.handle_timeout(self.now);
                connection.pause(self.now);
            }
        }
    }

    /// So many packets of one connection at most leave, or wait in fq; none when there are none.
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

    /// What fq lets go.
    fn release(&mut self) {
        let rate = self.flow_status().map_or(u64::MAX, |status| pacing_rate(&status));
        while let Some(packets) = self.fq.release(self.now, Rate::from_bytes_per_sec(rate)) {
            self.leave(packets);
        }
    }

    /// Of the connection that the script is about.
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

    /// When something is due. A connection that is not polled wants it all the time: then time goes on by steps.
    fn next(&self) -> Option<Instant> {
        let middle = self.middle.as_ref().and_then(Middle::due);
        let due = [self.endpoint.poll_timeout(), self.fq.due(), middle].into_iter().flatten().min();
        due.map(|due| if due <= self.now { self.now + STEP } else { due })
    }

    /// Time passes, and timers expire when they are due.
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

    /// The next packet that leaves, with time going on until it does; none within `patience`.
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

/// Our choice: a tenth of what scripts tell apart.
const STEP: Duration = Duration::from_micros(100);
