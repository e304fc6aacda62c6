//! A proxy of kernel sockets between clients and servers, as PEPsal and similar programs have it, for comparison.
//!
//! Policy routing hands the proxy all TCP that arrives at its interfaces. Sockets with `IP_TRANSPARENT` answer in the
//! name of the server, and connect to it in the name of the client. So each end sees the other's address and port.
//! Payload passes from socket to socket through a pipe (`splice(2)`), with buffers that the kernel tunes. Like
//! PEPsal, the proxy accepts the client's connection before it connects to the server. It has no window, schedule or
//! queue bound of its own. Nothing of it remains when it ends.

mod diversion;
mod pair;
mod thread;
mod way;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use paceline_linux::{Context, SystemError};
use paceline_wire::Duration;
use socket2::{Domain, Protocol, Socket, Type};

use super::connection::Ready;
use super::poller::Poller;
use diversion::Diversion;
use pair::{End, Pair, Turn};

pub use thread::ProxyThread;

/// The proxy's interfaces and ports, and its congestion control.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// The interfaces at which packets of clients and servers arrive. Packets that are addressed to this host still
    /// reach its sockets.
    pub interfaces: Vec<String>,
    /// The servers' ports.
    pub ports: Vec<u16>,
    /// Congestion control of all sockets, by the kernel's name.
    pub congestion_control: String,
}

/// Counters of the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounters {
    /// Connections of clients.
    pub flows: u64,
    /// Connections that ended with an error: refused, reset, timed out.
    pub failed: u64,
    /// Segments that the kernel retransmitted to clients.
    pub retransmitted_segments: u64,
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    listeners: Vec<Socket>,
    pairs: Vec<Option<Box<Pair>>>,
    free: Vec<usize>,
    poller: Poller,
    counters: ProxyCounters,
    congestion_control: String,
    /// The last field, so that arriving packets belong to the proxy until its end.
    _diversion: Diversion,
}

impl Proxy {
    /// Opens the proxy in the calling thread's network namespace, which must forward.
    pub fn open(config: &ProxyConfig) -> Result<Proxy, SystemError> {
        let poller = Poller::new().context(|| "open an epoll descriptor".to_owned())?;
        let mut listeners = Vec::with_capacity(2 * config.ports.len());
        for &port in &config.ports {
            for any in [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)] {
                let address = SocketAddr::new(any, port);
                let listener = listen(address, &config.congestion_control)
                    .context(|| format!("listen for connections to port {port}"))?;
                poller
                    .watch(&listener, LISTENER | listeners.len() as u64)
                    .context(|| "watch a socket".to_owned())?;
                listeners.push(listener);
            }
        }
        Ok(Proxy {
            listeners,
            pairs: Vec::new(),
            free: Vec::new(),
            poller,
            counters: ProxyCounters::default(),
            congestion_control: config.congestion_control.clone(),
            _diversion: Diversion::begin(&config.interfaces)?,
        })
    }

    /// Runs until `stop`. Connections that are open then are cut off.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<ProxyCounters> {
        let (mut ready, mut again) = (Vec::new(), Vec::new());
        while !stop.load(Ordering::Relaxed) {
            let timeout = if again.is_empty() { POLL_MAX } else { Duration::ZERO };
            ready.extend(self.poller.wait(timeout)?);
            let is_listener = |&(token, _): &(u64, Ready)| token & LISTENER != 0;
            // Handle connections before listeners. A new connection may take the place of one that ended in this
            // turn, and its events must not reach the new one.
            for &(token, news) in ready.iter().filter(|event| !is_listener(event)) {
                let id = (token / 2) as usize;
                if let Some(pair) = self.pairs.get_mut(id).and_then(Option::as_mut) {
                    pair.notice((token % 2) as usize, news);
                    again.push(id);
                }
            }
            again.sort_unstable();
            again.dedup();
            again.retain(|&id| self.work(id));
            for &(token, _) in ready.iter().filter(|event| is_listener(event)) {
                self.accept_all((token & !LISTENER) as usize);
            }
            ready.clear();
        }
        for id in 0..self.pairs.len() {
            self.remove(id);
        }
        Ok(self.counters)
    }

    /// Gives a pair a turn. True if there is more work at once.
    fn work(&mut self, id: usize) -> bool {
        let Some(pair) = self.pairs.get_mut(id).and_then(Option::as_mut) else { return false };
        match pair.work() {
            Ok(Turn::Again) => return true,
            Ok(Turn::Wait) => {}
            Ok(Turn::Finished) => self.remove(id),
            Err(_) => {
                pair.reset();
                self.counters.failed += 1;
                self.remove(id);
            }
        }
        false
    }

    fn remove(&mut self, id: usize) {
        if let Some(pair) = self.pairs.get_mut(id).and_then(Option::take) {
            self.counters.retransmitted_segments += pair.retransmitted_segments();
            self.free.push(id);
        }
    }

    fn accept_all(&mut self, listener: usize) {
        // The poller reports each change once, so accept until no connection is left.
        while let Some(Ok((client, _))) = self.listeners.get(listener).map(Socket::accept) {
            self.counters.flows += 1;
            if self.open_pair(client).is_err() {
                self.counters.failed += 1;
            }
        }
    }

    /// Opens the server's connection. An error resets the client's connection.
    fn open_pair(&mut self, client: Socket) -> io::Result<()> {
        let begin = || -> io::Result<Pair> {
            client.set_nonblocking(true)?;
            client.set_tcp_nodelay(true)?;
            let server = connect(&client, &self.congestion_control)?;
            Pair::new(End::connected(client.try_clone()?), End::connecting(server))
        };
        let pair = begin().inspect_err(|_| pair::reset(&client))?;
        let id = self.free.pop().unwrap_or(self.pairs.len());
        for (side, socket) in pair.sockets().into_iter().enumerate() {
            self.poller.watch(socket, (2 * id + side) as u64)?;
        }
        if id == self.pairs.len() {
            self.pairs.push(None);
        }
        self.pairs[id] = Some(Box::new(pair));
        Ok(())
    }
}

/// Opens a socket that may use addresses of other hosts.
fn transparent(address: SocketAddr, congestion_control: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_congestion(congestion_control.as_bytes())?;
    if address.is_ipv4() {
        socket.set_ip_transparent_v4(true)?;
    } else {
        socket.set_only_v6(true)?;
        socket.set_ip_transparent_v6(true)?;
    }
    Ok(socket)
}

fn listen(address: SocketAddr, congestion_control: &str) -> io::Result<Socket> {
    let socket = transparent(address, congestion_control)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Connects from the client's address to the client's destination.
fn connect(client: &Socket, congestion_control: &str) -> io::Result<Socket> {
    let [from, to] = [client.peer_addr()?, client.local_addr()?].map(|address| address.as_socket());
    let (Some(from), Some(to)) = (from, to) else { return Err(io::ErrorKind::Unsupported.into()) };
    let server = transparent(from, congestion_control)?;
    server.set_tcp_nodelay(true)?;
    server.bind(&from.into())?;
    match server.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(server),
    }
}

/// Bit in the tokens of listeners.
const LISTENER: u64 = 1 << 63;
const BACKLOG: i32 = 1_024;
/// Longest delay until the proxy stops.
const POLL_MAX: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
