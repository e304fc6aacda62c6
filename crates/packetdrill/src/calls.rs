//! The functions of the interface.
//!
//! packetdrill calls them with the arguments of the system calls of the same names. Pointers are used only during the
//! call.
// This makes each function safe.
#![allow(clippy::missing_safety_doc)]

use std::ffi::{c_int, c_long, c_longlong, c_uint, c_ulong, c_void};
use std::net::SocketAddr;
use std::slice;

use libc::{iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t, timeval};
use paceline_tcp::{CloseReason, Connection, State};
use paceline_wire::{Duration, Instant, Payload};

use crate::address;
use crate::info::tcp_info;
use crate::sockets::Kind;
use crate::stack::{self, Stack};
use crate::{This, sysctl};

type Outcome = Result<isize, c_int>;

pub(crate) fn told(outcome: Outcome) -> isize {
    outcome.unwrap_or_else(|errno| {
        // SAFETY: the pointer is to the C library's errno of the calling thread.
        unsafe { *libc::__errno_location() = errno };
        -1
    })
}

pub(crate) unsafe extern "C" fn free(_: This) {}

pub(crate) unsafe extern "C" fn socket(_: This, _: c_int, kind: c_int, _: c_int) -> c_int {
    let mut stack = stack::lock();
    let now = stack.now;
    let is_stream = kind & 0xf == libc::SOCK_STREAM;
    let opened = stack.sockets.open(Kind::New, now).filter(|_| is_stream);
    told(opened.map(|fd| fd as isize).ok_or(libc::EPROTONOSUPPORT)) as c_int
}

pub(crate) unsafe extern "C" fn bind(_: This, fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: packetdrill passes an address of this length.
    let address = unsafe { address::read(to, len) };
    let mut stack = stack::lock();
    let bound = address.ok_or(libc::EINVAL).and_then(|address| {
        stack.sockets.get_mut(fd)?.bound = Some(address);
        Ok(0)
    });
    told(bound) as c_int
}

pub(crate) unsafe extern "C" fn listen(_: This, fd: c_int, _: c_int) -> c_int {
    let mut stack = stack::lock();
    let listening = stack.sockets.get(fd).and_then(|socket| {
        let address = socket.bound.ok_or(libc::EINVAL)?;
        stack.endpoint.listen(address, sysctl::config());
        stack.sockets.get_mut(fd)?.kind = Kind::Listener(address);
        Ok(0)
    });
    told(listening) as c_int
}

pub(crate) unsafe extern "C" fn accept(_: This, fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    let attempt = |stack: &mut Stack| -> Option<Outcome> {
        let socket = match stack.sockets.get(fd) {
            Ok(socket) => socket,
            Err(errno) => return Some(Err(errno)),
        };
        let Kind::Listener(address) = socket.kind else { return Some(Err(libc::EINVAL)) };
        let id = stack.take_accepted(address)?;
        let now = stack.now;
        let opened = stack.sockets.open(Kind::Connection(id), now);
        if let Some(connection) = stack.endpoint.connection(id) {
            // SAFETY: packetdrill passes room for an address of this length, or none.
            unsafe { address::write(connection.key().dst, to, len) };
        }
        Some(opened.map(|fd| fd as isize).ok_or(libc::EMFILE))
    };
    told(stack::wait(fd, attempt).unwrap_or(Err(libc::EAGAIN))) as c_int
}

pub(crate) unsafe extern "C" fn connect(_: This, fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: packetdrill passes an address of this length.
    let address = unsafe { address::read(to, len) };
    if let Err(errno) = begin_to_connect(fd, address) {
        return told(Err(errno)) as c_int;
    }
    let attempt = |stack: &mut Stack| match stack.connection(fd) {
        Ok(connection) if connection.state() == State::SynSent => None,
        Ok(connection) => Some(failure(connection).map_or(Ok(0), Err)),
        Err(errno) => Some(Err(errno)),
    };
    told(stack::wait(fd, attempt).unwrap_or(Err(libc::EINPROGRESS))) as c_int
}

fn begin_to_connect(fd: c_int, to: Option<SocketAddr>) -> Result<(), c_int> {
    let mut stack = stack::lock();
    let socket = stack.sockets.get(fd)?;
    let to = to.ok_or(libc::EINVAL)?;
    if socket.kind != Kind::New {
        return Err(libc::EISCONN);
    }
    let from = socket.bound.or_else(|| stack.unbound()).ok_or(libc::EADDRNOTAVAIL)?;
    let now = stack.now;
    let id = stack.endpoint.connect(now, from, to, &sysctl::config());
    stack.sockets.get_mut(fd)?.kind = Kind::Connection(id);
    stack.poll();
    Ok(())
}

/// The reason why the connection is unusable, as an errno.
fn failure(connection: &Connection) -> Option<c_int> {
    match connection.close_reason()? {
        CloseReason::Finished => None,
        CloseReason::Reset => Some(libc::ECONNRESET),
        CloseReason::Refused => Some(libc::ECONNREFUSED),
        CloseReason::TimedOut => Some(libc::ETIMEDOUT),
        CloseReason::Aborted => Some(libc::ECONNABORTED),
    }
}

/// Reads into `room` until it is full or no data is left.
fn receive(fd: c_int, room: &mut [u8]) -> Outcome {
    let attempt = |stack: &mut Stack| -> Option<Outcome> {
        let now = stack.now;
        let connection = match stack.connection(fd) {
            Ok(connection) => connection,
            Err(errno) => return Some(Err(errno)),
        };
        let mut count = 0;
        while let Some(payload) =
            connection.read(now, room.len() - count).filter(|payload| !payload.is_empty())
        {
            let bytes = payload.bytes().unwrap_or_default();
            room[count..count + bytes.len()].copy_from_slice(bytes);
            count += bytes.len();
        }
        let is_over = connection.is_read_finished() || connection.is_closed();
        let failure = failure(connection);
        stack.poll();
        match (count, failure) {
            (0, Some(errno)) => Some(Err(errno)),
            (0, None) if !is_over => None,
            _ => Some(Ok(count as isize)),
        }
    };
    stack::wait(fd, attempt).unwrap_or(Err(libc::EAGAIN))
}

/// Writes all of `bytes`. On a non-blocking descriptor only as much as there is room for.
fn transmit(fd: c_int, bytes: &[u8]) -> Outcome {
    let mut count = 0;
    let attempt = |stack: &mut Stack| -> Option<Outcome> {
        let connection = match stack.connection(fd) {
            Ok(connection) => connection,
            Err(errno) => return Some(Err(errno)),
        };
        if connection.is_closed() {
            return Some(Err(failure(connection).unwrap_or(libc::EPIPE)));
        }
        let payload = Payload::from(bytes[count..].to_vec());
        let (taken, key, now) = (connection.write(&payload), connection.key(), Instant::ZERO);
        let status = connection.status(now);
        count += taken;
        if let Ok(socket) = stack.sockets.get_mut(fd) {
            socket.written += taken as u64;
            let written = socket.written;
            stack.offload.wrote(key, &status, written);
        }
        stack.poll();
        (count == bytes.len()).then_some(Ok(count as isize))
    };
    let outcome = stack::wait(fd, attempt);
    outcome.unwrap_or(if count > 0 { Ok(count as isize) } else { Err(libc::EAGAIN) })
}

/// The buffer of a read or a write.
///
/// # Safety
/// `at` points to `len` bytes, and nobody else uses them during the call.
unsafe fn room<'a>(at: *mut c_void, len: size_t) -> &'a mut [u8] {
    if at.is_null() {
        return &mut [];
    }
    // SAFETY: as said above.
    unsafe { slice::from_raw_parts_mut(at.cast(), len) }
}

/// Returns the first part only: packetdrill's scripts for this endpoint have just one.
///
/// # Safety
/// `parts` points to `count` parts, each of which points to its bytes.
unsafe fn first_part<'a>(parts: *const iovec, count: usize) -> &'a mut [u8] {
    if parts.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: there is a first part, as said above.
    unsafe { room((*parts).iov_base, (*parts).iov_len) }
}

pub(crate) unsafe extern "C" fn read(_: This, fd: c_int, at: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: the arguments of read(2).
    told(receive(fd, unsafe { room(at, len) }))
}

pub(crate) unsafe extern "C" fn readv(_: This, fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the arguments of readv(2).
    told(receive(fd, unsafe { first_part(parts, count as usize) }))
}

pub(crate) unsafe extern "C" fn recv(_: This, fd: c_int, at: *mut c_void, len: size_t, _: c_int) -> ssize_t {
    // SAFETY: the arguments of recv(2).
    told(receive(fd, unsafe { room(at, len) }))
}

pub(crate) unsafe extern "C" fn recvfrom(
    _: This,
    fd: c_int,
    at: *mut c_void,
    len: size_t,
    _: c_int,
    _: *mut sockaddr,
    _: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the arguments of recvfrom(2).
    told(receive(fd, unsafe { room(at, len) }))
}

pub(crate) unsafe extern "C" fn recvmsg(_: This, fd: c_int, message: *mut msghdr, _: c_int) -> ssize_t {
    // SAFETY: the arguments of recvmsg(2).
    told(receive(fd, unsafe { first_part((*message).msg_iov, (*message).msg_iovlen) }))
}

pub(crate) unsafe extern "C" fn write(_: This, fd: c_int, at: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: the arguments of write(2); the data is only read.
    told(transmit(fd, unsafe { room(at.cast_mut(), len) }))
}

pub(crate) unsafe extern "C" fn writev(_: This, fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the arguments of writev(2); the data is only read.
    told(transmit(fd, unsafe { first_part(parts, count as usize) }))
}

pub(crate) unsafe extern "C" fn send(
    _: This,
    fd: c_int,
    at: *const c_void,
    len: size_t,
    _: c_int,
) -> ssize_t {
    // SAFETY: the arguments of send(2); the data is only read.
    told(transmit(fd, unsafe { room(at.cast_mut(), len) }))
}

pub(crate) unsafe extern "C" fn sendto(
    _: This,
    fd: c_int,
    at: *const c_void,
    len: size_t,
    _: c_int,
    _: *const sockaddr,
    _: socklen_t,
) -> ssize_t {
    // SAFETY: the arguments of sendto(2); the data is only read.
    told(transmit(fd, unsafe { room(at.cast_mut(), len) }))
}

pub(crate) unsafe extern "C" fn sendmsg(_: This, fd: c_int, message: *const msghdr, _: c_int) -> ssize_t {
    // SAFETY: the arguments of sendmsg(2); the data is only read.
    told(transmit(fd, unsafe { first_part((*message).msg_iov, (*message).msg_iovlen) }))
}

/// In C the last argument is variadic. By the calling conventions of Linux on x86-64 and AArch64 it is passed like an
/// ordinary one.
pub(crate) unsafe extern "C" fn fcntl(_: This, fd: c_int, command: c_int, argument: c_long) -> c_int {
    // SAFETY: the commands that scripts give (F_GETFL, F_SETFL) take a number.
    unsafe { libc::fcntl(fd, command, argument) }
}

/// Its last argument is passed as that of [`fcntl`].
pub(crate) unsafe extern "C" fn ioctl(_: This, fd: c_int, request: c_ulong, value: *mut c_int) -> c_int {
    let mut stack = stack::lock();
    let outcome = stack.connection(fd).and_then(|connection| {
        // TIOCOUTQ is SIOCOUTQ, FIONREAD is SIOCINQ.
        let number = match request as libc::Ioctl as c_ulong {
            libc::FIONREAD => connection.readable(),
            libc::TIOCOUTQ => connection.unacknowledged(),
            _ => return Err(libc::ENOTTY),
        };
        // SAFETY: both requests have room for a number.
        unsafe { value.write(number as c_int) };
        Ok(0)
    });
    told(outcome) as c_int
}

pub(crate) unsafe extern "C" fn close(_: This, fd: c_int) -> c_int {
    let mut stack = stack::lock();
    if let Ok(connection) = stack.connection(fd) {
        // RFC 2525, Section 2.17, and Linux: unread data causes a reset.
        match connection.readable() {
            0 => connection.close(),
            _ => connection.abort(),
        }
    }
    let closed = stack.sockets.close(fd);
    if let Some(Kind::Connection(id)) = closed.map(|socket| socket.kind) {
        stack.was_closed.push(id);
    }
    let closed = closed.map(|_| 0).ok_or(libc::EBADF);
    stack.poll();
    stack::settle(stack);
    told(closed) as c_int
}

pub(crate) unsafe extern "C" fn shutdown(_: This, fd: c_int, how: c_int) -> c_int {
    let mut stack = stack::lock();
    let outcome = stack.connection(fd).map(|connection| {
        if how != libc::SHUT_RD {
            connection.close();
        }
        0
    });
    stack.poll();
    told(outcome) as c_int
}

pub(crate) unsafe extern "C" fn getsockopt(
    _: This,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let outcome = option(fd, level, name).map(|bytes| {
        // SAFETY: the arguments of getsockopt(2): `value` has room for `*len` bytes.
        unsafe {
            let room = room(value, *len as usize);
            room.fill(0);
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            // The kernel's struct may be longer than the bytes filled in here. The rest is zero.
            if name != libc::TCP_INFO {
                *len = count as socklen_t;
            }
        }
        0
    });
    told(outcome) as c_int
}

fn option(fd: c_int, level: c_int, name: c_int) -> Result<Vec<u8>, c_int> {
    let mut stack = stack::lock();
    let (now, socket) = (stack.now, stack.sockets.get(fd)?);
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            let errno = stack.connection(fd).ok().and_then(|connection| failure(connection)).unwrap_or(0);
            Ok(errno.to_ne_bytes().into())
        }
        // Linux also counts the overhead of segments, and returns twice the value that was set (socket(7)).
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => Ok((2 * socket.send_buffer.unwrap_or(0)).to_ne_bytes().into()),
        (libc::IPPROTO_TCP, libc::TCP_INFO) => {
            let status = stack.connection(fd)?.status(now);
            Ok(tcp_info(&status, now, socket.last_data).into())
        }
        // TCP_INFO is the only information about the congestion control.
        (libc::IPPROTO_TCP, libc::TCP_CC_INFO) => Ok(Vec::new()),
        (libc::SOL_SOCKET, libc::SO_MEMINFO) => Ok(vec![0; 9 * size_of::<u32>()]),
        _ => Err(libc::ENOPROTOOPT),
    }
}

pub(crate) unsafe extern "C" fn setsockopt(
    _: This,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: the arguments of setsockopt(2); the value is only read.
    let bytes = unsafe { room(value.cast_mut(), len as usize) };
    let number = bytes.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
    let mut stack = stack::lock();
    if (level, name) == (libc::SOL_SOCKET, libc::SO_SNDBUF)
        && let Ok(connection) = stack.connection(fd)
    {
        // Linux doubles it (socket(7)) and counts memory. Here it counts payload.
        connection.set_send_buffer(2 * number as u64);
    }
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT)
        && let Ok(connection) = stack.connection(fd)
    {
        connection.set_user_timeout((number > 0).then(|| Duration::from_millis(number as u64)));
        return 0;
    }
    let outcome = stack.sockets.get_mut(fd).and_then(|socket| match (level, name) {
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => Ok(0),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
            socket.send_buffer = Some(number as u32);
            Ok(0)
        }
        // These options concern IP, which an endpoint without I/O does not know.
        (libc::IPPROTO_IP, libc::IP_TOS | libc::IP_MTU_DISCOVER) => Ok(0),
        _ => Err(libc::ENOPROTOOPT),
    });
    told(outcome) as c_int
}

pub(crate) unsafe extern "C" fn netdev_send(_: This, at: *const c_void, len: size_t) -> c_int {
    let mut stack = stack::lock();
    // SAFETY: packetdrill passes a packet of this length, which is only read.
    stack.receive(unsafe { room(at.cast_mut(), len) });
    stack::settle(stack);
    0
}

pub(crate) unsafe extern "C" fn netdev_receive(
    _: This,
    at: *mut c_void,
    len: *mut size_t,
    time_us: *mut c_longlong,
) -> c_int {
    let mut stack = stack::lock();
    let packet = stack.next_packet(PATIENCE);
    // SAFETY: packetdrill passes room for `*len` bytes, and pointers to their number and the time.
    unsafe {
        let room = room(at, *len);
        *len = 0;
        if let Some((left, bytes)) = packet {
            let count = bytes.len().min(room.len());
            room[..count].copy_from_slice(&bytes[..count]);
            *len = count;
            *time_us = (left.as_nanos() / 1_000) as c_longlong;
        }
    }
    stack::settle(stack);
    0
}

pub(crate) unsafe extern "C" fn usleep(_: This, us: c_uint) -> c_int {
    let mut stack = stack::lock();
    stack.advance(Duration::from_micros(us.into()));
    stack::settle(stack);
    0
}

pub(crate) unsafe extern "C" fn gettimeofday(_: This, time: *mut timeval, _: *mut c_void) -> c_int {
    let mut stack = stack::lock();
    stack.advance(LOOK);
    let us = stack.now.as_nanos() / 1_000;
    // SAFETY: the arguments of gettimeofday(2).
    unsafe { time.write(timeval { tv_sec: (us / 1_000_000) as i64, tv_usec: (us % 1_000_000) as i64 }) };
    0
}

/// Advance of the clock at each query, because packetdrill waits by querying it.
const LOOK: Duration = Duration::from_micros(1);
/// Longer than any script waits for a packet.
const PATIENCE: Duration = Duration::from_secs(300);
