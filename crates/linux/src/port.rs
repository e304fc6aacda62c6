//! A device for the event loop: batches in order of arrival, an outbox, counters.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use ipnet::IpNet;
use paceline_wire::{BufferPool, Duration, Instant, Packet, PortId};

use crate::af_packet::PacketSocket;
use crate::clock::ArrivalClock;
use crate::frame::{Frame, FrameError};
use crate::icmp_listener::IcmpListener;
use crate::outbox::{Outbox, OutboxCounters, SendProgress};
use crate::tun::Tun;

/// A source and sink of packets.
#[derive(Debug)]
pub enum Device {
    /// One interface, one port of the node.
    Packet {
        /// Its port number.
        port: PortId,
        /// Its socket.
        socket: PacketSocket,
    },
    /// A TUN device. It is both ports of a gateway: the kernel routes either direction through it.
    Tun {
        /// The device.
        tun: Tun,
        /// Packets to one of these prefixes count as arrived from the servers.
        clients: Vec<IpNet>,
        /// The port towards the servers.
        wan: PortId,
        /// The port towards the clients.
        radio: PortId,
    },
    /// A listener, by which nothing is sent.
    IcmpListener {
        /// The port at which the node receives the messages.
        port: PortId,
        /// The listener.
        from: IcmpListener,
    },
}

/// Counters of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PortCounters {
    /// Packets handed to the node, super-packets included.
    pub received_packets: u64,
    /// Their bytes from the IP header on.
    pub received_ip_bytes: u64,
    /// Frames dropped because they were malformed.
    pub malformed: u64,
    /// Frames dropped because they were longer than 65,535 bytes.
    pub too_long: u64,
    /// Packets dropped because all payload memory was in use.
    pub pool_exhausted: u64,
    /// Packets discarded because they arrived before the end of a lapse.
    pub stale: u64,
    /// Temporary receive errors, for example when an interface goes down.
    pub receive_errors: u64,
    /// Packets that the kernel dropped because they were not read in time.
    pub kernel_drops: u64,
    /// Counters of sent packets.
    pub out: OutboxCounters,
}

#[derive(Debug)]
pub(crate) struct Port {
    device: Device,
    arrivals: ArrivalClock,
    outbox: Outbox,
    retry_at: Option<Instant>,
    batch_len: usize,
    /// Index of the next packet, its arrival time, and the time of the read.
    next: usize,
    next_arrival: Instant,
    now: Instant,
    discard_before: Instant,
    counters: PortCounters,
}

impl Port {
    pub(crate) fn new(device: Device, rejoins: bool) -> Self {
        Port {
            device,
            arrivals: ArrivalClock::default(),
            outbox: Outbox::new(rejoins),
            retry_at: None,
            batch_len: 0,
            next: 0,
            next_arrival: Instant::ZERO,
            now: Instant::ZERO,
            discard_before: Instant::ZERO,
            counters: PortCounters::default(),
        }
    }

    /// Reads a batch. Returns the arrival time of its last packet, which is not later than `now`. Counts an error of
    /// one packet or of the link, and returns a permanent error.
    pub(crate) fn receive(&mut self, now: Instant) -> io::Result<Option<Instant>> {
        let count = match &mut self.device {
            Device::Packet { socket, .. } => socket.receive(),
            Device::Tun { tun, .. } => tun.receive(),
            Device::IcmpListener { from, .. } => from.receive(),
        };
        self.batch_len = count.or_else(|error| match error.raw_os_error() {
            // The TUN was deleted. For a packet socket the error (ENETDOWN) is the same for an interface that is down
            // and one that is deleted. `LinkWatch` distinguishes them by the kernel's messages about interfaces.
            Some(libc::EBADFD | libc::EBADF) => Err(error),
            _ => {
                self.counters.receive_errors += 1;
                Ok(0)
            }
        })?;
        let Some(last) = self.batch_len.checked_sub(1) else { return Ok(None) };
        self.arrivals.refresh();
        (self.next, self.now) = (0, now);
        self.look_ahead();
        Ok(Some(self.arrivals.mapped(self.stamp(last), now).max(self.next_arrival)))
    }

    /// Returns the arrival time of the batch's next packet, or `None` at the end.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        (self.next < self.batch_len).then_some(self.next_arrival)
    }

    /// Returns the next packet of the batch and its port, or `None` if it had to be dropped.
    pub(crate) fn take(&mut self, pool: &mut BufferPool) -> Option<(PortId, Packet)> {
        let (index, arrival) = (self.next, self.next_arrival);
        self.next += 1;
        let taken = if arrival < self.discard_before { None } else { Some(self.take_frame(index, pool)) };
        self.look_ahead();
        match taken {
            None => self.counters.stale += 1,
            Some(Ok((port, packet))) => {
                self.counters.received_packets += 1;
                self.counters.received_ip_bytes += packet.ip_len() as u64;
                return Some((port, packet));
            }
            Some(Err(FrameError::Malformed)) => self.counters.malformed += 1,
            Some(Err(FrameError::TooLong)) => self.counters.too_long += 1,
            Some(Err(FrameError::PoolExhausted)) => self.counters.pool_exhausted += 1,
        }
        None
    }

    fn take_frame(&mut self, index: usize, pool: &mut BufferPool) -> Result<(PortId, Packet), FrameError> {
        match &mut self.device {
            Device::Packet { port, socket } => Ok((*port, socket.take(index, pool)?)),
            Device::IcmpListener { port, from } => Ok((*port, from.frame(index)?.to_packet(pool)?)),
            Device::Tun { tun, clients, wan, radio } => {
                let frame: Frame<'_> = tun.frame(index)?;
                let packet = frame.to_packet(pool)?;
                let (_, to) = packet.addresses().ok_or(FrameError::Malformed)?;
                let is_downlink = clients.iter().any(|prefix| prefix.contains(&to));
                Ok((if is_downlink { *wan } else { *radio }, packet))
            }
        }
    }

    /// True at the end of a batch of the largest possible length.
    pub(crate) fn may_have_more(&self) -> bool {
        let capacity = match &self.device {
            Device::Packet { socket, .. } => socket.batch(),
            Device::Tun { tun, .. } => tun.batch(),
            Device::IcmpListener { from, .. } => from.batch(),
        };
        self.next == self.batch_len && self.batch_len == capacity
    }

    fn look_ahead(&mut self) {
        if self.next < self.batch_len {
            self.next_arrival = self.arrivals.arrival(self.stamp(self.next), self.now);
        }
    }

    fn stamp(&self, index: usize) -> Option<u64> {
        match &self.device {
            Device::Packet { socket, .. } => socket.stamp_ns(index),
            Device::Tun { .. } | Device::IcmpListener { .. } => None,
        }
    }

    /// Returns the packets that have not left yet, with a port to send each of them by.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (PortId, Packet)> {
        let port = match &self.device {
            Device::Packet { port, .. } | Device::IcmpListener { port, .. } => *port,
            Device::Tun { wan, .. } => *wan,
        };
        self.outbox.iter().map(move |packet| (port, packet.clone()))
    }

    /// From here on discards packets that arrived before `time`.
    pub(crate) fn discard_before(&mut self, time: Instant) {
        self.discard_before = time;
    }

    /// True if this device is the port.
    pub(crate) fn is(&self, port: PortId) -> bool {
        match &self.device {
            Device::Packet { port: own, .. } => *own == port,
            Device::IcmpListener { .. } => false,
            Device::Tun { wan, radio, .. } => *wan == port || *radio == port,
        }
    }

    /// Appends a packet to the queue.
    pub(crate) fn push(&mut self, packet: Packet) {
        self.outbox.push(packet);
    }

    /// Sends the waiting packets, unless the device needs time first.
    pub(crate) fn flush(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|time| now < time) {
            return;
        }
        let sent = match &mut self.device {
            _ if self.outbox.is_empty() => SendProgress::All,
            Device::Packet { socket, .. } => socket.send(&mut self.outbox),
            Device::Tun { tun, .. } => tun.send(&mut self.outbox),
            // Nothing is sent by this device.
            Device::IcmpListener { .. } => SendProgress::All,
        };
        self.retry_at = match sent {
            SendProgress::All => None,
            SendProgress::Later => Some(now + RETRY_AFTER),
        };
    }

    /// The time at which `flush` is due again even if no packet is pushed.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Continues the counters of another process.
    pub(crate) fn count_from(&mut self, counters: PortCounters) {
        self.outbox.count_from(counters.out);
        if let Device::Packet { socket, .. } = &mut self.device {
            socket.count_drops_from(counters.kernel_drops);
        }
        self.counters = counters;
    }

    pub(crate) fn counters(&mut self) -> PortCounters {
        let mut counters = self.counters;
        counters.out = self.outbox.counters();
        if let Device::Packet { socket, .. } = &mut self.device {
            counters.kernel_drops = socket.kernel_drops();
        }
        counters
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.device {
            Device::Packet { socket, .. } => socket.as_fd(),
            Device::Tun { tun, .. } => tun.as_fd(),
            Device::IcmpListener { from, .. } => from.as_fd(),
        }
    }
}

/// Our choice: a virtual device empties a full ring in tens of microseconds.
const RETRY_AFTER: Duration = Duration::from_micros(200);
