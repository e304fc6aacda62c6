//! A device as the event loop sees it: batches in arrival order, an outbox, counters.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use ipnet::IpNet;
use paceline_wire::{BufferPool, Duration, Instant, Packet, PortId};

use crate::af_packet::PacketSocket;
use crate::clock::ArrivalClock;
use crate::frame::{Frame, FrameError};
use crate::outbox::{Outbox, OutboxCounters, Sent};
use crate::overheard::Overheard;
use crate::tun::Tun;

/// What packets pass through.
#[derive(Debug)]
pub enum Device {
    /// One interface, one port of the node.
    Packet {
        /// The port that it is.
        port: PortId,
        /// Its socket.
        socket: PacketSocket,
    },
    /// A TUN, both ports of a gateway: the kernel routes either direction through it.
    Tun {
        /// The device.
        tun: Tun,
        /// Packets to one of these count as arrived from the servers.
        clients: Vec<IpNet>,
        /// The port towards the servers.
        wan: PortId,
        /// The port towards the clients.
        radio: PortId,
    },
    /// Something to listen to; nothing is sent by it.
    Overheard {
        /// The port at which the node gets it.
        port: PortId,
        /// The listener.
        from: Overheard,
    },
}

/// What happened at a device so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PortCounters {
    /// Packets, super-packets among them, that were handed to the node.
    pub received_packets: u64,
    /// Their bytes from the IP header on.
    pub received_ip_bytes: u64,
    /// Frames dropped because they made no sense.
    pub malformed: u64,
    /// Frames dropped because they were longer than 65,535 bytes.
    pub too_long: u64,
    /// Packets dropped because all payload memory was in use.
    pub pool_exhausted: u64,
    /// Packets discarded because they had waited since before a lapse.
    pub stale: u64,
    /// Errors of receiving that passed, as when an interface goes down.
    pub receive_errors: u64,
    /// Packets that the kernel dropped because they were not read in time.
    pub kernel_drops: u64,
    /// What left.
    pub out: OutboxCounters,
}

#[derive(Debug)]
pub(crate) struct Port {
    device: Device,
    arrivals: ArrivalClock,
    outbox: Outbox,
    retry_at: Option<Instant>,
    batch_len: usize,
    /// The index of the next packet, when it arrived, and when the batch was read.
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
            arrivals: ArrivalClock::new(),
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

    /// Reads a batch and returns when its last packet arrived, which is not later than `now`. An error of one packet or of
    /// the link is counted; one that will not pass is returned.
    pub(crate) fn receive(&mut self, now: Instant) -> io::Result<Option<Instant>> {
        let count = match &mut self.device {
            Device::Packet { socket, .. } => socket.receive(),
            Device::Tun { tun, .. } => tun.receive(),
            Device::Overheard { from, .. } => from.receive(),
        };
        self.batch_len = count.or_else(|error| match error.raw_os_error() {
            // A deleted TUN. A packet socket says the same of an interface that is down and of one that is deleted (ENETDOWN): whether
            // it works is for the kernel's messages about interfaces to say (`LinkWatch`).
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

    /// When the next packet of the batch arrived; `None` at its end.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        (self.next < self.batch_len).then_some(self.next_arrival)
    }

    /// The next packet of the batch and the port it came by; `None` when it had to be dropped.
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
            Device::Overheard { port, from } => Ok((*port, from.frame(index)?.to_packet(pool)?)),
            Device::Tun { tun, clients, wan, radio } => {
                let frame: Frame<'_> = tun.frame(index)?;
                let packet = frame.to_packet(pool)?;
                let (_, to) = packet.addresses().ok_or(FrameError::Malformed)?;
                let is_downlink = clients.iter().any(|prefix| prefix.contains(&to));
                Ok((if is_downlink { *wan } else { *radio }, packet))
            }
        }
    }

    /// True at the end of a batch that was as long as it could be.
    pub(crate) fn may_have_more(&self) -> bool {
        let capacity = match &self.device {
            Device::Packet { socket, .. } => socket.batch(),
            Device::Tun { tun, .. } => tun.batch(),
            Device::Overheard { from, .. } => from.batch(),
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
            Device::Tun { .. } | Device::Overheard { .. } => None,
        }
    }

    /// What has not left yet, and the port that it is to leave by.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (PortId, Packet)> {
        let port = match &self.device {
            Device::Packet { port, .. } | Device::Overheard { port, .. } => *port,
            Device::Tun { wan, .. } => *wan,
        };
        self.outbox.iter().map(move |packet| (port, packet.clone()))
    }

    /// Packets that arrived before `time` are discarded from here on.
    pub(crate) fn discard_before(&mut self, time: Instant) {
        self.discard_before = time;
    }

    /// True for the ports that this device is.
    pub(crate) fn is(&self, port: PortId) -> bool {
        match &self.device {
            Device::Packet { port: own, .. } => *own == port,
            Device::Overheard { .. } => false,
            Device::Tun { wan, radio, .. } => *wan == port || *radio == port,
        }
    }

    /// Puts a packet behind those that wait.
    pub(crate) fn push(&mut self, packet: Packet) {
        self.outbox.push(packet);
    }

    /// Sends what waits, unless the device has to be given time first.
    pub(crate) fn flush(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|time| now < time) {
            return;
        }
        let sent = match &mut self.device {
            _ if self.outbox.is_empty() => Sent::All,
            Device::Packet { socket, .. } => socket.send(&mut self.outbox),
            Device::Tun { tun, .. } => tun.send(&mut self.outbox),
            // Nothing is pushed to it.
            Device::Overheard { .. } => Sent::All,
        };
        self.retry_at = match sent {
            Sent::All => None,
            Sent::Later => Some(now + RETRY_AFTER),
        };
    }

    /// When to call `flush` again although nothing was pushed.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Goes on counting where another process stopped.
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
            Device::Overheard { from, .. } => from.as_fd(),
        }
    }
}

/// Our choice: a full ring of a virtual device is emptied in tens of microseconds.
const RETRY_AFTER: Duration = Duration::from_micros(200);
