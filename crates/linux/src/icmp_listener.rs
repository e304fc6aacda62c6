//! Copies of the ICMP messages about a smaller path MTU that leave by an interface, whether the host forwards or
//! sends them. A routed gateway, which receives only TCP, learns of them in this way. The kernel's own handling of
//! them does not change.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use nix::net::if_::if_nametoindex;
use socket2::{Domain, Protocol, Socket, Type};

use crate::filter;
use crate::frame::{Frame, FrameError};
use crate::read_batch::ReadBatch;
use crate::sockopt;
use crate::virtio::HEADER_LEN;

/// A socket that receives these messages at one interface of any kind. The bytes of a message begin with the IP header.
#[derive(Debug)]
pub struct IcmpListener {
    socket: Socket,
    /// Each message is behind an empty virtio header. The kernel adds this header to whole frames only. No message is
    /// longer than its interface allows, and all checksums are complete.
    batch: ReadBatch,
}

impl IcmpListener {
    /// Listens at the interface `name` of the current network namespace.
    pub fn open(name: &str) -> io::Result<Self> {
        let index = if_nametoindex(name)?;
        // Protocol 0: nothing is received before the filter is in place and the socket is bound.
        let socket =
            Socket::new(Domain::PACKET, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::from(0)))?;
        socket.attach_filter(&filter::outgoing_too_big())?;
        sockopt::bind_to_interface(&socket, index)?;
        Ok(IcmpListener { socket, batch: ReadBatch::new(BATCH, SLOT_BYTES) })
    }

    /// Reads waiting messages, up to one batch.
    pub(crate) fn receive(&mut self) -> io::Result<usize> {
        self.batch.fill(|slot| Ok(HEADER_LEN + (&self.socket).read(&mut slot[HEADER_LEN..])?))
    }

    /// The largest number of messages in a batch.
    pub(crate) fn batch(&self) -> usize {
        BATCH
    }

    /// Returns message `index` of the last batch.
    pub(crate) fn frame(&self, index: usize) -> Result<Frame<'_>, FrameError> {
        self.batch.frame(index)
    }
}

impl AsFd for IcmpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Our choice: a window of packets may cause as many messages, and all of them say the same.
const BATCH: usize = 16;
/// The longest of these messages are those of ICMPv6 (RFC 4443, Section 2.4(c): 1,280 bytes). A longer one is cut.
/// Its end is not needed.
const SLOT_BYTES: usize = (HEADER_LEN + 1_280).next_multiple_of(64);
