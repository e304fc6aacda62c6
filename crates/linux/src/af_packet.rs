//! Packets of one interface over an AF_PACKET socket, in batches and with virtio headers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::net::if_::if_nametoindex;
use paceline_wire::{BufferPool, Packet};
use socket2::{Domain, Protocol, Socket, Type};

use crate::filter::Filter;
use crate::frame::FrameError;
use crate::mmsg::{ReceiveBatch, SendBatch};
use crate::outbox::{Outbox, SendProgress};
use crate::sockopt;

/// Our choice: 64 MiB, which is some 29,000 full-sized packets, or small ones of some 2 KB in the kernel's count. TCP
/// needs room for a few packets of each flow. Otherwise some flows wait for timeouts that double, while the ACKs of
/// others fill the room (Morris, TCP Behavior with Many Flows, ICNP 1997). With 16 MiB, less than one packet for each
/// of 9,900 flows, hundreds of flows got nothing for a minute. All flows together got half of what they get with 64 MiB
/// (docs/evidence/cost.md).
const RECEIVE_BUFFER_BYTES: usize = 64 << 20;

/// Bytes of sent packets that the device may hold.
const SEND_BUFFER_BYTES: usize = 16 << 20;
/// Our choice: packets in a system call. With more, the cost of the call no longer shows.
const BATCH: usize = 64;

/// An AF_PACKET socket bound to an interface. It receives what arrives at the interface, and sends by it.
///
/// The kernel sees the same packets. On a bridge or router a rule keeps them from it. On a dedicated interface
/// without addresses, nobody else takes them.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Socket,
    received: ReceiveBatch,
    sending: SendBatch,
    kernel_drops: u64,
}

impl PacketSocket {
    /// Opens a socket on the interface `name` of the current network namespace. It takes the frames of `filter`.
    pub fn open(name: &str, filter: &Filter) -> io::Result<Self> {
        let index = if_nametoindex(name)?;
        // Protocol 0: nothing is received before the filter is in place and the socket is bound.
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking().cloexec(), Some(Protocol::from(0)))?;
        sockopt::set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        sockopt::set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        sockopt::set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        sockopt::set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
        sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        sockopt::set_buffers(&socket, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES)?;
        if let Some(program) = filter.program()? {
            socket.attach_filter(&program)?;
        }
        sockopt::bind_to_interface(&socket, index)?;
        // Otherwise a network card discards frames that are not addressed to it.
        sockopt::take_all_addresses(&socket, index)?;
        Ok(PacketSocket::over(socket))
    }

    /// Takes over a socket that another process opened, with the packets that wait in it.
    pub fn adopt(descriptor: OwnedFd) -> Self {
        PacketSocket::over(Socket::from(descriptor))
    }

    fn over(socket: Socket) -> Self {
        let (received, sending) = (ReceiveBatch::new(BATCH), SendBatch::new(BATCH));
        PacketSocket { socket, received, sending, kernel_drops: 0 }
    }

    /// Continues the count of another process.
    pub(crate) fn count_drops_from(&mut self, drops: u64) {
        self.kernel_drops = drops;
    }

    /// Receives up to one batch.
    pub(crate) fn receive(&mut self) -> io::Result<usize> {
        self.received.receive(self.socket.as_fd())
    }

    /// Returns packet `index` of the last batch, with its payload in memory of `pool`. May be called once for each
    /// packet.
    pub(crate) fn take(&mut self, index: usize, pool: &mut BufferPool) -> Result<Packet, FrameError> {
        self.received.take(index, pool)
    }

    /// Time at which the kernel received packet `index` of the batch, on `CLOCK_REALTIME`.
    pub(crate) fn stamp_ns(&self, index: usize) -> Option<u64> {
        self.received.stamp_ns(index)
    }

    /// The largest number of packets in a batch.
    pub(crate) fn batch(&self) -> usize {
        self.received.capacity()
    }

    /// Sends as much of `outbox` as the device takes.
    pub(crate) fn send(&mut self, outbox: &mut Outbox) -> SendProgress {
        self.sending.send(self.socket.as_fd(), outbox)
    }

    /// The number of packets that the kernel dropped since the socket was opened, because nobody read them in time.
    pub fn kernel_drops(&mut self) -> u64 {
        // Reading resets the kernel's counter.
        let statistics: libc::tpacket_stats =
            sockopt::get(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS).unwrap_or(NO_STATISTICS);
        self.kernel_drops += u64::from(statistics.tp_drops);
        self.kernel_drops
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const NO_STATISTICS: libc::tpacket_stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
