//! A netlink socket for one exchange at a time: requests go out, acknowledgements and answers come back.

use std::io;
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use netlink_sys::{Socket, SocketAddr};

use crate::system_error::{Context, SystemError};

/// A blocking netlink socket. The kernel answers within the sending call, so nothing here waits for long.
pub(crate) struct Connection {
    inner: Mutex<Inner>,
}

struct Inner {
    socket: Socket,
    sequence: u32,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

impl Connection {
    pub(crate) fn open(protocol: isize) -> Result<Connection, SystemError> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(protocol)?;
            socket.bind_auto()?;
            // Without this, an error answer repeats the whole request.
            socket.set_cap_ack(true)?;
            Ok(socket)
        };
        let socket = open().context(|| "open a netlink socket".to_owned())?;
        Ok(Connection { inner: Mutex::new(Inner { socket, sequence: 0 }) })
    }

    /// Takes over a socket that another process opened. Kernel objects that belong to the socket stay.
    pub(crate) fn adopt(descriptor: OwnedFd) -> Connection {
        // SAFETY: the descriptor is open, and from here on nobody else owns it.
        let socket = unsafe { Socket::from_raw_fd(descriptor.into_raw_fd()) };
        Connection { inner: Mutex::new(Inner { socket, sequence: 0 }) }
    }

    /// Returns another descriptor of the socket.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.socket.as_fd().try_clone_to_owned()
    }

    /// Sends messages whose headers are complete except for the sequence number. Collects answers until every
    /// sequence number in `awaited` (counted from zero within this request) is acknowledged. The first error ends the
    /// exchange.
    pub(crate) fn exchange(&self, messages: &mut [u8], awaited: u32) -> io::Result<Vec<Vec<u8>>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let first = inner.sequence.wrapping_add(1);
        let count = number_messages(messages, first);
        inner.sequence = inner.sequence.wrapping_add(count);
        inner.socket.send_to(messages, &SocketAddr::new(0, 0), 0)?;
        inner.collect(first, count, awaited)
    }
}

impl Inner {
    fn collect(&mut self, first: u32, count: u32, awaited: u32) -> io::Result<Vec<Vec<u8>>> {
        let mut answers = Vec::new();
        let mut acknowledged = 0;
        while acknowledged < awaited {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = datagram.as_slice();
            while let Some((header, message, tail)) = next_message(rest) {
                rest = tail;
                // An answer of an earlier exchange that ended with an error.
                if header.sequence.wrapping_sub(first) >= count {
                    continue;
                }
                match header.kind {
                    NLMSG_ERROR => {
                        error_of(message)?;
                        acknowledged += 1;
                    }
                    NLMSG_DONE => acknowledged += 1,
                    _ => answers.push(message.to_vec()),
                }
            }
        }
        Ok(answers)
    }
}

pub(crate) struct Header {
    kind: u16,
    pub(crate) sequence: u32,
}

pub(crate) fn next_message(bytes: &[u8]) -> Option<(Header, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(0..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let sequence = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
    let message = bytes.get(..length).filter(|_| length >= HEADER_LENGTH)?;
    let tail = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    Some((Header { kind, sequence }, message, tail))
}

/// Gives each message its sequence number. Returns the number of messages.
pub(crate) fn number_messages(messages: &mut [u8], first: u32) -> u32 {
    let mut count = 0u32;
    let mut at = 0;
    while let Some(length) = messages.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes)
    {
        let Some(field) = messages.get_mut(at + 8..at + 12) else { break };
        field.copy_from_slice(&first.wrapping_add(count).to_ne_bytes());
        count += 1;
        at += (length as usize).max(HEADER_LENGTH).next_multiple_of(4);
    }
    count
}

/// Error zero is an acknowledgement.
pub(crate) fn error_of(message: &[u8]) -> io::Result<()> {
    let code = message.get(16..20).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes);
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

const HEADER_LENGTH: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
