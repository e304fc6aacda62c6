//! TCP sockets with the options of a transfer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use paceline_linux::set_option;
use paceline_linux::{Context, SystemError};
use socket2::{Domain, Protocol, Socket, Type};

use super::traffic::SocketOptions;

/// Opens a listener for one transfer. Accepted sockets inherit the options.
pub(super) fn listen(address: SocketAddr, options: &SocketOptions) -> Result<Socket, SystemError> {
    let open = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(true)?;
        Ok(socket)
    };
    let socket = open().context(|| format!("open a socket for {address}"))?;
    apply(&socket, options)?;
    socket.bind(&address.into()).context(|| format!("bind to {address}"))?;
    socket.listen(16).context(|| format!("listen on {address}"))?;
    Ok(socket)
}

/// Starts to connect.
pub(super) fn connect(from: IpAddr, to: SocketAddr, options: &SocketOptions) -> Result<Socket, SystemError> {
    let open = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let socket = open().context(|| format!("open a socket for {to}"))?;
    apply(&socket, options)?;
    socket.bind(&SocketAddr::new(from, 0).into()).context(|| format!("bind to {from}"))?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
            Err(SystemError::new(format!("connect to {to}"), error))
        }
        _ => Ok(socket),
    }
}

/// Sets the fixed window. Must be repeated with every read. Newer kernels (6.6) compute the limit again from the
/// buffer, whenever a segment's size differs from the size before.
pub(super) fn clamp_window(socket: &impl AsFd, options: &SocketOptions) -> io::Result<()> {
    match options.window_bytes {
        Some(bytes) => tcp_option(socket, libc::TCP_WINDOW_CLAMP, bytes),
        None => Ok(()),
    }
}

fn apply(socket: &Socket, options: &SocketOptions) -> Result<(), SystemError> {
    if let Some(name) = &options.congestion_control {
        socket.set_tcp_congestion(name.as_bytes()).context(|| {
            format!("use congestion control {name} (is its kernel module loaded and allowed by net.ipv4.tcp_allowed_congestion_control?)")
        })?;
    }
    if let Some(bytes) = options.window_bytes {
        // Segments in memory take up to twice their size, and the kernel also doubles the value. With a smaller
        // buffer the window would also depend on how quickly the application reads.
        set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, clamped(bytes, 2, 32_768))
            .context(|| "set the receive buffer".to_owned())?;
        clamp_window(socket, options).context(|| format!("set a window of {bytes} bytes"))?;
    }
    if let Some(bytes) = options.send_buffer_bytes {
        set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, clamped(bytes / 2, 1, 0))
            .context(|| "set the send buffer".to_owned())?;
    }
    if let Some(bytes) = options.unsent_bytes_max {
        tcp_option(socket, libc::TCP_NOTSENT_LOWAT, bytes).context(|| "limit unsent data".to_owned())?;
    }
    if let Some(rto) = options.rto_min {
        let us = u32::try_from(rto.as_micros()).unwrap_or(u32::MAX);
        tcp_option(socket, TCP_RTO_MIN_US, us).context(|| {
            "set the minimum retransmission timeout (a socket option since Linux 6.15; a route has it on all)".to_owned()
        })?;
    }
    Ok(())
}

fn tcp_option(socket: &impl AsFd, name: i32, value: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, name, i32::try_from(value).unwrap_or(i32::MAX))
}

fn clamped(bytes: u32, factor: u32, more: u32) -> i32 {
    i32::try_from(bytes.saturating_mul(factor).saturating_add(more)).unwrap_or(i32::MAX)
}

/// Missing in the C library's headers.
const TCP_RTO_MIN_US: i32 = 45;
