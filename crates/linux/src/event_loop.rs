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

/// Configuration of an event loop.
#[derive(Clone, Copy, Debug)]
pub struct EventLoopConfig {
    /// Bytes of memory for payload. In addition, each device has memory for the packets of a batch.
    pub pool_bytes: usize,
    /// Interval between two calls of the housekeeping.
    pub housekeeping_interval: Duration,
    /// Join the segments of a super-packet again if the node sends them in one turn. For gateways. A link emulator
    /// needs single packets.
    pub rejoin_segments: bool,
}

impl Default for EventLoopConfig {
    /// Our choice: 256 MiB, and housekeeping eight times a second. A fail-open timeout of half a second then survives
    /// two missed calls.
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
/// The loop reads the time of a turn from the clock. Under virtual time, reading the clock costs as much as sending a
/// packet. There the loop takes the time from the event that woke it: the deadline of the timer, or the stamps of the
/// packets.
#[derive(Debug)]
pub struct EventLoop {
    epoll: Epoll,
    timer: Timer,
    stop: StopHandle,
    termination: Option<Termination>,
    watch: Option<LinkWatch>,
    /// Interfaces may have changed since the last call of the housekeeping.
    links_changed: bool,
    ports: Vec<Port>,
    /// Counters of the devices that were removed.
    removed: Vec<PortCounters>,
    pool: BufferPool,
    config: EventLoopConfig,
    reads_clock: bool,
    /// The latest time that the loop told the node.
    time: Instant,
    /// The time to start from, if not the present.
    went_on: Option<Instant>,
    fired: Option<Instant>,
    housekeeping_due: Instant,
    ended: Option<LoopEnd>,
    counters: LoopCounters,
}

/// Why an event loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEnd {
    /// [`StopHandle::stop`] or [`Housekeeping::stop`] was called.
    Stopped,
    /// A signal, by number.
    Signal(i32),
}

/// Counters of an event loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopCounters {
    /// The number of times that the loop woke.
    pub turns: u64,
    /// The number of packets that a node sent by a port without a device.
    pub no_such_port: u64,
    /// The number of turns in which a node had a deadline in the past but nothing to do. The loop then waits for a
    /// moment.
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

    /// Adds a device. It continues the counters of the device that was removed from this place.
    pub fn add(&mut self, device: Device) -> io::Result<()> {
        if self.ports.len() == PORTS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an event loop has at most 64 devices"));
        }
        // Packets from a TUN have no stamp.
        self.reads_clock |= matches!(device, Device::Tun { .. });
        let mut port = Port::new(device, self.config.rejoin_segments);
        if let Some(counters) = self.removed.get(self.ports.len()) {
            port.count_from(*counters);
        }
        self.epoll.add(&port, EpollEvent::new(EpollFlags::EPOLLIN, self.ports.len() as u64))?;
        self.ports.push(port);
        Ok(())
    }

    /// Closes all devices, with the packets that wait in them. The loop drops the node's packets until devices are
    /// added.
    pub fn remove_devices(&mut self) {
        self.removed = self.port_counters();
        for port in self.ports.drain(..) {
            // Closing a descriptor is not enough if a successor has a copy of it. A closed device is already gone
            // from the epoll set.
            let _ = self.epoll.delete(&port);
        }
    }

    /// Calls the housekeeping at once when interfaces change, or when a device reports that it is gone.
    pub fn watch(&mut self, watch: LinkWatch) -> io::Result<()> {
        self.epoll.add(&watch, EpollEvent::new(EpollFlags::EPOLLIN, LINKS))?;
        self.watch = Some(watch);
        Ok(())
    }

    /// Ends the loop when one of the signals arrives.
    pub fn end_on(&mut self, termination: Termination) -> io::Result<()> {
        self.epoll.add(&termination, EpollEvent::new(EpollFlags::EPOLLIN, SIGNAL))?;
        self.termination = Some(termination);
        Ok(())
    }

    /// Returns a handle that ends the loop from another thread.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Drives `node` until something ends the loop. Calls `housekeeping` at once, and then at every interval. The
    /// call comes before the node gets the packets of the same turn.
    pub fn run<N: Node + ?Sized>(
        &mut self,
        node: &mut N,
        mut housekeeping: impl FnMut(&mut N, &mut Housekeeping<'_>) -> io::Result<()>,
    ) -> io::Result<LoopEnd> {
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

    /// Hands the node the packets that were already read, and sends the node's output. Afterwards only the packets
    /// that the devices do not take are left: see [`waiting`](Self::waiting).
    pub fn finish_turn<N: Node + ?Sized>(&mut self, node: &mut N) {
        let now = clock::now();
        loop {
            self.deliver(node, now);
            if self.transmit(node) < TRANSMITS_MAX && self.earliest().is_none() {
                return;
            }
        }
    }

    /// Returns the packets that the devices have not taken yet, in order, with their ports.
    pub fn waiting(&self) -> Vec<(PortId, Packet)> {
        self.ports.iter().flat_map(Port::waiting).collect()
    }

    /// Returns the devices in the order in which they were added.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.ports.iter().map(AsFd::as_fd).collect()
    }

    /// The last time that the loop told the node.
    pub fn time(&self) -> Instant {
        self.time
    }

    /// Continues where the loop of another process stopped. Must be called before the first [`run`](Self::run).
    /// `time` is the other loop's last time, so that packets in the devices keep their arrival times. `waiting` has
    /// the packets that it had not sent, and `counters` those of its devices.
    pub fn go_on(&mut self, time: Instant, waiting: Vec<(PortId, Packet)>, counters: &[PortCounters]) {
        self.went_on = Some(time);
        for (port, packet) in waiting {
            self.push(port, packet);
        }
        // The first devices are the same in both processes. The other process had no counters for additional ones.
        if counters.len() <= self.ports.len() {
            self.ports.iter_mut().zip(counters).for_each(|(port, counters)| port.count_from(*counters));
        }
    }

    /// Returns the counters of the devices in the order in which they were added. Without devices, returns the
    /// counters of the removed ones.
    pub fn port_counters(&mut self) -> Vec<PortCounters> {
        if self.ports.is_empty() {
            return self.removed.clone();
        }
        self.ports.iter_mut().map(Port::counters).collect()
    }

    /// Returns the counters of the loop itself.
    pub fn counters(&self) -> LoopCounters {
        self.counters
    }

    fn note_events(&mut self, events: &[EpollEvent]) -> Readable {
        let mut readable = Readable::default();
        for event in events {
            match event.data() {
                TIMER => self.fired = self.timer.fired(),
                STOP => self.ended = Some(LoopEnd::Stopped),
                SIGNAL => {
                    let signal = self.termination.as_ref().and_then(Termination::received);
                    self.ended = signal.map(LoopEnd::Signal).or(self.ended);
                }
                LINKS => {
                    self.links_changed |= self.watch.as_mut().is_some_and(LinkWatch::has_changed);
                }
                // The device has data or an error. Reading clears both.
                index => readable.add(index),
            }
        }
        readable
    }

    /// Reads one batch of each readable device. The bound keeps a flood from delaying sends and timers. Returns the
    /// time of this turn.
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
                // The housekeeping removes the device.
                Err(_) if self.watch.is_some() => self.links_changed = true,
                Err(error) => return Err(error),
            }
        }
        Ok(now)
    }

    /// Hands the packets of all batches to the node in order of arrival. Stops where a device may have further
    /// packets that arrived earlier than the rest. In that case the node's time does not advance further in this
    /// turn.
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

    /// Moves the node's packets to the devices. Returns the number of packets.
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

    /// Arms the timer for the next deadline. Returns how long to wait: without limit, or not at all.
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
                // A node may ask for a past deadline and then do nothing. It must not stop the clock of the
                // virtual-time kernel.
                self.counters.idle_deadlines += 1;
                due = now + IDLE_DEADLINE_WAIT;
            }
            deadline = deadline.min(due);
        }
        self.timer.wake_by(deadline)?;
        Ok(EpollTimeout::NONE)
    }
}

/// The housekeeping's access to the event loop.
#[derive(Debug)]
pub struct Housekeeping<'a> {
    /// The time of the call. If it is far more than an interval after the last call, the process was stopped in
    /// between.
    pub now: Instant,
    event_loop: &'a mut EventLoop,
}

impl Housekeeping<'_> {
    /// Ends the loop after this call.
    pub fn stop(&mut self) {
        self.event_loop.ended = Some(LoopEnd::Stopped);
    }

    /// True if interfaces, or other watched objects, may have changed since the last call.
    pub fn links_changed(&self) -> bool {
        self.event_loop.links_changed
    }

    /// Returns the loop, to remove devices and add others.
    pub fn event_loop(&mut self) -> &mut EventLoop {
        self.event_loop
    }

    /// Discards all packets that arrived before `time`, including those not read yet. After a lapse, the kernel has
    /// already forwarded them.
    pub fn discard_before(&mut self, time: Instant) {
        for port in &mut self.event_loop.ports {
            port.discard_before(time);
        }
    }

    /// How long the next packet has waited for this thread.
    pub fn waited(&self) -> Duration {
        let arrival = self.event_loop.earliest().map_or(self.now, |(arrival, _)| arrival);
        self.now.saturating_since(arrival)
    }

    /// Returns the counters of the devices, in the order in which they were added.
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
    /// Further packets wait, in a batch or in the kernel.
    more: bool,
}

/// The devices that are readable, one bit each.
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
/// The largest number of devices of one loop: the number of bits in [`Readable`].
const PORTS_MAX: usize = 64;
/// The largest number of packets sent in a turn. Our choice: 16 batches, under a millisecond of work, before the loop
/// looks at input again.
const TRANSMITS_MAX: usize = 1024;
/// Our choice: the time that a thread takes to wake anyway.
const IDLE_DEADLINE_WAIT: Duration = Duration::from_micros(50);
