//! The event loop: one thread that drives one [`Node`] with the packets of its devices and with time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use paceline_wire::{BufferPool, Duration, Instant, Node, Packet, PortId};

use crate::clock;
use crate::netlink::LinkWatch;
use crate::port::{Device, Port, PortCounters};
use crate::signal::{StopHandle, Termination};
use crate::timer::Timer;

/// How an event loop runs.
#[derive(Clone, Copy, Debug)]
pub struct EventLoopConfig {
    /// Memory for payload. Beside it each device has memory for the packets of a batch.
    pub pool_bytes: usize,
    /// How often the housekeeping is called.
    pub housekeeping_interval: Duration,
    /// Segments of a super-packet that the node sends in one turn leave as a super-packet again. For gateways; a link
    /// emulator wants its packets apart.
    pub rejoin_segments: bool,
}

impl Default for EventLoopConfig {
    /// Our choice: 256 MiB; eight times a second, so that a fail-open timeout of half a second survives two misses.
    fn default() -> Self {
        EventLoopConfig {
            pool_bytes: 256 << 20,
            housekeeping_interval: Duration::from_millis(125),
            rejoin_segments: false,
        }
    }
}

/// Waits for packets, time and signals, and hands them to a node. Never polls: the thread sleeps when nothing is due.
///
/// The time of a turn is read from the clock, except under virtual time, where reading it costs as much as sending a packet
/// and the event that woke the thread has it: the deadline of the timer, or the stamps of the packets.
#[derive(Debug)]
pub struct EventLoop {
    epoll: Epoll,
    timer: Timer,
    stop: StopHandle,
    termination: Option<Termination>,
    watch: Option<LinkWatch>,
    /// The interfaces may be others than when the housekeeping was called last.
    links_changed: bool,
    ports: Vec<Port>,
    /// What devices that were removed had counted.
    removed: Vec<PortCounters>,
    pool: BufferPool,
    config: EventLoopConfig,
    reads_clock: bool,
    /// The latest time that the node was told.
    time: Instant,
    /// The time to start from, if not now.
    went_on: Option<Instant>,
    fired: Option<Instant>,
    housekeeping_due: Instant,
    ended: Option<Ended>,
    counters: LoopCounters,
}

/// Why an event loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// [`StopHandle::stop`] or [`Housekeeping::stop`] was called.
    Stopped,
    /// A signal, by number.
    Signal(i32),
}

/// What an event loop did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopCounters {
    /// Times that it woke.
    pub turns: u64,
    /// Packets that a node wanted to send by a port that has no device.
    pub no_such_port: u64,
    /// Turns in which a node had a deadline in the past but nothing to do; the loop then waits a little.
    pub idle_deadlines: u64,
}

impl EventLoop {
    /// A loop without devices.
    pub fn new(config: EventLoopConfig) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let (timer, stop) = (Timer::new()?, StopHandle::new()?);
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, TIMER))?;
        epoll.add(&stop, EpollEvent::new(EpollFlags::EPOLLIN, STOP))?;
        Ok(EventLoop {
            epoll,
            timer,
            stop,
            termination: None,
            watch: None,
            links_changed: false,
            ports: Vec::new(),
            removed: Vec::new(),
            pool: BufferPool::new(config.pool_bytes),
            config,
            reads_clock: !clock::is_virtual(),
            time: Instant::ZERO,
            went_on: None,
            fired: None,
            housekeeping_due: Instant::ZERO,
            ended: None,
            counters: LoopCounters::default(),
        })
    }

    /// Adds a device, which goes on counting where the one before it in this place stopped.
    pub fn add(&mut self, device: Device) -> io::Result<()> {
        if self.ports.len() == PORTS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an event loop has at most 64 devices"));
        }
        // What a TUN delivers has no stamp.
        self.reads_clock |= matches!(device, Device::Tun { .. });
        let mut port = Port::new(device, self.config.rejoin_segments);
        if let Some(counters) = self.removed.get(self.ports.len()) {
            port.count_from(*counters);
        }
        self.epoll.add(&port, EpollEvent::new(EpollFlags::EPOLLIN, self.ports.len() as u64))?;
        self.ports.push(port);
        Ok(())
    }

    /// Closes all devices, with what waits in them. Packets that the node sends are dropped until there are others.
    pub fn remove_devices(&mut self) {
        self.removed = self.port_counters();
        for port in self.ports.drain(..) {
            // Closing would do, but for copies that a successor may still have. What is closed already is no longer there.
            let _ = self.epoll.delete(&port);
        }
    }

    /// Has the housekeeping called at once when interfaces change, or when a device says that it is gone.
    pub fn watch(&mut self, watch: LinkWatch) -> io::Result<()> {
        self.epoll.add(&watch, EpollEvent::new(EpollFlags::EPOLLIN, LINKS))?;
        self.watch = Some(watch);
        Ok(())
    }

    /// Makes the signals end the loop.
    pub fn end_on(&mut self, termination: Termination) -> io::Result<()> {
        self.epoll.add(&termination, EpollEvent::new(EpollFlags::EPOLLIN, SIGNAL))?;
        self.termination = Some(termination);
        Ok(())
    }

    /// A handle that ends the loop from another thread.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Drives `node` until something ends the loop. `housekeeping` is called at once, then at every interval, always
    /// before packets that arrived meanwhile are read.
    pub fn run<N: Node + ?Sized>(
        &mut self,
        node: &mut N,
        mut housekeeping: impl FnMut(&mut N, &mut Housekeeping<'_>) -> io::Result<()>,
    ) -> io::Result<Ended> {
        let mut events = [EpollEvent::empty(); EVENTS_MAX];
        let mut wait = EpollTimeout::ZERO;
        self.time = self.went_on.take().unwrap_or_else(clock::now);
        loop {
            let count = match self.epoll.wait(&mut events, wait) {
                Err(nix::errno::Errno::EINTR) => 0,
                result => result?,
            };
            self.counters.turns += 1;
            let readable = self.note_events(&events[..count]);
            let now = self.receive(readable)?;
            if now >= self.housekeeping_due || self.links_changed {
                let now = clock::now();
                self.housekeeping_due = now + self.config.housekeeping_interval;
                housekeeping(node, &mut Housekeeping { now, event_loop: self })?;
                self.links_changed = false;
            }
            if let Some(ended) = self.ended.take() {
                return Ok(ended);
            }
            let delivered = self.deliver(node, now);
            let sent = self.transmit(node);
            wait = if delivered.more || sent == TRANSMITS_MAX {
                EpollTimeout::ZERO
            } else {
                self.prepare_to_wait(node, delivered.packets + sent > 0)?
            };
        }
    }

    /// Hands the node what was read already and sends what that brings, so that nothing is left here but what the devices do not
    /// take: see [`waiting`](Self::waiting).
    pub fn finish_turn<N: Node + ?Sized>(&mut self, node: &mut N) {
        let now = clock::now();
        loop {
            self.deliver(node, now);
            if self.transmit(node) < TRANSMITS_MAX && self.earliest().is_none() {
                return;
            }
        }
    }

    /// Packets that the devices have not taken yet, in order, with their ports.
    pub fn waiting(&self) -> Vec<(PortId, Packet)> {
        self.ports.iter().flat_map(Port::waiting).collect()
    }

    /// The devices, in the order in which they were added.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.ports.iter().map(AsFd::as_fd).collect()
    }

    /// The time that the node was told last.
    pub fn time(&self) -> Instant {
        self.time
    }

    /// Goes on where the loop of another process stopped, before its first [`run`](Self::run): with that one's time, so that what waits
    /// in the devices has arrived when it did; with what it had not sent yet, and with its counters.
    pub fn go_on(&mut self, time: Instant, waiting: Vec<(PortId, Packet)>, counters: &[PortCounters]) {
        self.went_on = Some(time);
        for (port, packet) in waiting {
            self.push(port, packet);
        }
        // The first are the same; what was not listened to by that one has counted nothing.
        if counters.len() <= self.ports.len() {
            self.ports.iter_mut().zip(counters).for_each(|(port, counters)| port.count_from(*counters));
        }
    }

    /// The counters of the devices, in the order in which they were added; those of the last ones while there are none.
    pub fn port_counters(&mut self) -> Vec<PortCounters> {
        if self.ports.is_empty() {
            return self.removed.clone();
        }
        self.ports.iter_mut().map(Port::counters).collect()
    }

    /// The counters of the loop itself.
    pub fn counters(&self) -> LoopCounters {
        self.counters
    }

    fn note_events(&mut self, events: &[EpollEvent]) -> Readable {
        let mut readable = Readable::default();
        for event in events {
            match event.data() {
                TIMER => self.fired = self.timer.fired(),
                STOP => self.ended = Some(Ended::Stopped),
                SIGNAL => {
                    let signal = self.termination.as_ref().and_then(Termination::received);
                    self.ended = signal.map(Ended::Signal).or(self.ended);
                }
                LINKS => {
                    self.links_changed |= self.watch.as_mut().is_some_and(LinkWatch::has_changed);
                }
                // Data or an error, which reading clears.
                index => readable.add(index),
            }
        }
        readable
    }

    /// Reads one batch of each readable device: bounded, so that sending and timers never wait for a flood to end.
    /// Returns the time of this turn.
    fn receive(&mut self, readable: Readable) -> io::Result<Instant> {
        let fired = self.fired.take();
        let (mut now, latest) = if self.reads_clock {
            let now = clock::now();
            (now, now)
        } else {
            (self.time.max(fired.unwrap_or(Instant::ZERO)), FAR_FUTURE)
        };
        for index in readable.iter() {
            let Some(port) = self.ports.get_mut(index).filter(|port| port.next_arrival().is_none()) else {
                continue;
            };
            match port.receive(latest) {
                Ok(arrival) => now = arrival.map_or(now, |arrival| arrival.max(now)),
                // Whoever watches removes it.
                Err(_) if self.watch.is_some() => self.links_changed = true,
                Err(error) => return Err(error),
            }
        }
        Ok(now)
    }

    /// Hands the packets of all batches to the node in the order in which they arrived, up to the point where a device
    /// may have more that arrived earlier than the rest. There the node's time stands still for this turn.
    fn deliver<N: Node + ?Sized>(&mut self, node: &mut N, now: Instant) -> Delivered {
        let mut delivered = Delivered { packets: 0, more: false };
        while let Some((arrival, index)) = self.earliest() {
            let port = &mut self.ports[index];
            let taken = port.take(&mut self.pool);
            self.time = arrival.max(self.time);
            delivered.packets += 1;
            if let Some((port, packet)) = taken {
                if node.poll_timeout().is_some_and(|deadline| deadline < self.time) {
                    node.handle_timeout(self.time);
                }
                node.handle_packet(self.time, port, packet);
            }
            if self.ports[index].may_have_more() {
                delivered.more = true;
                break;
            }
        }
        if !delivered.more {
            self.time = now.max(self.time);
        }
        if node.poll_timeout().is_some_and(|deadline| deadline <= self.time) {
            node.handle_timeout(self.time);
        }
        delivered
    }

    fn earliest(&self) -> Option<(Instant, usize)> {
        let arrivals = self.ports.iter().enumerate();
        arrivals.filter_map(|(index, port)| Some((port.next_arrival()?, index))).min()
    }

    /// Moves what the node has to send to the devices; returns how many packets that were.
    fn transmit<N: Node + ?Sized>(&mut self, node: &mut N) -> usize {
        let mut count = 0;
        while count < TRANSMITS_MAX {
            let Some((port, packet)) = node.poll_transmit(self.time) else { break };
            self.push(port, packet);
            count += 1;
        }
        for port in &mut self.ports {
            port.flush(self.time);
        }
        count
    }

    fn push(&mut self, port: PortId, packet: Packet) {
        match self.ports.iter_mut().find(|candidate| candidate.is(port)) {
            Some(port) => port.push(packet),
            None => self.counters.no_such_port += 1,
        }
    }

    /// Arms the timer for whatever is due next, and says how long to wait: for ever, or not at all.
    fn prepare_to_wait<N: Node + ?Sized>(&mut self, node: &N, busy: bool) -> io::Result<EpollTimeout> {
        let mut deadline = self.housekeeping_due;
        for retry_at in self.ports.iter().filter_map(Port::retry_at) {
            deadline = deadline.min(retry_at);
        }
        if let Some(mut due) = node.poll_timeout() {
            let now = self.time;
            if due <= now && busy {
                return Ok(EpollTimeout::ZERO);
            }
            if due <= now {
                // A node that asks for the past and then does nothing must not stop the clock of the virtual-time kernel.
                self.counters.idle_deadlines += 1;
                due = now + IDLE_DEADLINE_WAIT;
            }
            deadline = deadline.min(due);
        }
        self.timer.wake_by(deadline)?;
        Ok(EpollTimeout::NONE)
    }
}

/// What the housekeeping may see and do.
#[derive(Debug)]
pub struct Housekeeping<'a> {
    /// The time of the call. Far more than an interval after the last call, the process was stopped in between.
    pub now: Instant,
    event_loop: &'a mut EventLoop,
}

impl Housekeeping<'_> {
    /// Ends the loop after this call.
    pub fn stop(&mut self) {
        self.event_loop.ended = Some(Ended::Stopped);
    }

    /// Whether interfaces, or what else is watched, may have changed since the last call.
    pub fn links_changed(&self) -> bool {
        self.event_loop.links_changed
    }

    /// The loop, to remove its devices and add others.
    pub fn event_loop(&mut self) -> &mut EventLoop {
        self.event_loop
    }

    /// Discards all packets that arrived before `time`, also those that have not been read yet: after a lapse, the
    /// kernel has forwarded them.
    pub fn discard_before(&mut self, time: Instant) {
        for port in &mut self.event_loop.ports {
            port.discard_before(time);
        }
    }

    /// How long the packet that comes next has waited for this thread.
    pub fn waited(&self) -> Duration {
        let arrival = self.event_loop.earliest().map_or(self.now, |(arrival, _)| arrival);
        self.now.saturating_since(arrival)
    }

    /// The counters of the devices, in the order in which they were added.
    pub fn port_counters(&mut self) -> Vec<PortCounters> {
        self.event_loop.port_counters()
    }

    /// Bytes of payload memory in use.
    pub fn pool_bytes_in_use(&self) -> usize {
        self.event_loop.pool.in_use()
    }
}

#[derive(Clone, Copy, Debug)]
struct Delivered {
    packets: usize,
    /// Packets wait, in a batch or in the kernel.
    more: bool,
}

/// The devices that have something to read, as bits.
#[derive(Clone, Copy, Debug, Default)]
struct Readable(u64);

impl Readable {
    fn add(&mut self, index: u64) {
        self.0 |= 1 << (index % PORTS_MAX as u64);
    }

    fn iter(self) -> impl Iterator<Item = usize> {
        (0..PORTS_MAX).filter(move |index| self.0 >> index & 1 == 1)
    }
}

const TIMER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const SIGNAL: u64 = u64::MAX - 2;
const LINKS: u64 = u64::MAX - 3;
const FAR_FUTURE: Instant = Instant::from_nanos(u64::MAX);
const EVENTS_MAX: usize = 16;
/// Devices of one loop: as many as there are bits in [`Readable`].
const PORTS_MAX: usize = 64;
/// Packets sent in a turn. Our choice: a dozen batches, under a millisecond of work, after which input is looked at again.
const TRANSMITS_MAX: usize = 1024;
/// Our choice: as long as a thread takes to wake anyway.
const IDLE_DEADLINE_WAIT: Duration = Duration::from_micros(50);
