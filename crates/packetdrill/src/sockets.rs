//! Descriptors and their sockets.

use std::collections::HashMap;
use std::ffi::c_int;
use std::net::SocketAddr;

use paceline_tcp::ConnectionId;
use paceline_wire::Instant;

/// The object of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    New,
    Listener(SocketAddr),
    Connection(ConnectionId),
}

/// A socket of packetdrill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Socket {
    pub(crate) kind: Kind,
    pub(crate) bound: Option<SocketAddr>,
    /// The value that was set, in bytes.
    pub(crate) send_buffer: Option<u32>,
    /// Arrival of the last data, or the opening of the connection.
    pub(crate) last_data: Instant,
    /// Bytes given to the connection.
    pub(crate) written: u64,
}

/// All sockets.
#[derive(Debug, Default)]
pub(crate) struct Sockets(HashMap<c_int, Socket>);

impl Sockets {
    /// Opens a real descriptor for a new socket. `None` if the process has no more.
    pub(crate) fn open(&mut self, kind: Kind, now: Instant) -> Option<c_int> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        let socket = Socket { kind, bound: None, send_buffer: None, last_data: now, written: 0 };
        (fd >= 0).then(|| self.0.insert(fd, socket)).map(|_| fd)
    }

    pub(crate) fn close(&mut self, fd: c_int) -> Option<Socket> {
        let socket = self.0.remove(&fd)?;
        // SAFETY: the descriptor was opened by `open`, and nobody else closes it.
        unsafe { libc::close(fd) };
        Some(socket)
    }

    pub(crate) fn contains(&self, fd: c_int) -> bool {
        self.0.contains_key(&fd)
    }

    pub(crate) fn get(&self, fd: c_int) -> Result<Socket, c_int> {
        self.0.get(&fd).copied().ok_or(libc::EBADF)
    }

    pub(crate) fn get_mut(&mut self, fd: c_int) -> Result<&mut Socket, c_int> {
        self.0.get_mut(&fd).ok_or(libc::EBADF)
    }

    /// The socket of a connection, while it is open.
    pub(crate) fn of(&mut self, id: ConnectionId) -> Option<&mut Socket> {
        self.0.values_mut().find(|socket| socket.kind == Kind::Connection(id))
    }

    /// True if calls on the descriptor wait.
    pub(crate) fn blocks(fd: c_int) -> bool {
        // SAFETY: the call takes no pointers.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        flags >= 0 && flags & libc::O_NONBLOCK == 0
    }
}
