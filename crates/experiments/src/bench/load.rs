//! Bulk downloads that cost the hosts as little as possible, so that the forwarder is the limit. Each host uses one
//! thread, and the receiver discards data without copying it.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use paceline_lab::Lab;
use paceline_wire::Rate;
use socket2::{Domain, SockAddr, Socket, Type};

use super::CONGESTION_CONTROL;
use crate::error::{Error, Result};
use crate::interrupt;

/// The data that every flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// As much as the path carries.
    Endless,
    /// As much as the path carries, but at most this rate.
    Paced(Rate),
    /// This number of bytes. Then the connection stays open and idle.
    Bytes(u64),
}

/// Flows that run until this value is dropped.
#[derive(Debug)]
pub(super) struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

#[derive(Debug)]
struct Shared {
    /// The server may begin to send.
    go: AtomicBool,
    stop: AtomicBool,
    /// Payload bytes that have arrived, by flow.
    received: Vec<AtomicU64>,
}

impl Load {
    /// Opens `flows` connections, spread over `clients` addresses, and waits until all have carried data. An endless or
    /// paced flow without data after [`PATIENCE`] and [`PATIENCE_PER_FLOW`] is starved; the caller counts these flows.
    pub(super) fn start(lab: &Lab, flows: u32, clients: u8, amount: Amount) -> Result<Load> {
        let fault = |error: io::Error| Error::io("open the flows", &error);
        let listener =
            lab.server.run(|| listen(lab.server_address(false))).map_err(Error::system)?.map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let shared = Arc::new(Shared {
            // Short flows start one after the other, so that little data is in flight at any time.
            go: AtomicBool::new(matches!(amount, Amount::Bytes(_))),
            stop: AtomicBool::new(false),
            received: (0..flows).map(|_| AtomicU64::new(0)).collect(),
        });
        let mut load = Load { shared: shared.clone(), threads: Vec::new() };
        load.threads.push(thread::spawn(move || Sender::new(listener, amount)?.run(&shared)));
        let opened =
            lab.client.run(|| Receiver::open(lab, &address, flows, clients)).map_err(Error::system)?;
        let mut receiver = opened.map_err(fault)?;
        let shared = load.shared.clone();
        load.threads.push(thread::spawn(move || receiver.run(&shared)));
        load.shared.go.store(true, Ordering::Relaxed);
        load.wait_until_running(amount)?;
        Ok(load)
    }

    /// Payload bytes that have arrived, by flow.
    pub(super) fn received(&self) -> Vec<u64> {
        self.shared.received.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect()
    }

    fn wait_until_running(&self, amount: Amount) -> Result<()> {
        let (begin, flows) = (Instant::now(), self.shared.received.len());
        loop {
            let running = self.received().iter().filter(|&&bytes| bytes > 0).count();
            if running == flows {
                return Ok(());
            }
            if interrupt::requested() {
                return Err(Error::interrupted());
            }
            let is_late = begin.elapsed() > PATIENCE + PATIENCE_PER_FLOW * flows as u32;
            if is_late && !matches!(amount, Amount::Bytes(_)) && running > 0 {
                return Ok(());
            }
            if is_late || self.threads.iter().any(JoinHandle::is_finished) {
                return Err(Error::failed(format!("only {running} of {flows} flows carry data")));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The server's end of all flows.
struct Sender {
    epoll: Epoll,
    listener: Socket,
    flows: Vec<Outgoing>,
    /// The number of flows that may send.
    started: usize,
    /// When the first flow was allowed to send.
    begun: Option<Instant>,
    amount: Amount,
    chunk: Vec<u8>,
}

struct Outgoing {
    socket: Socket,
    left: u64,
}

impl Sender {
    fn new(listener: Socket, amount: Amount) -> io::Result<Sender> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        Ok(Sender {
            epoll,
            listener,
            flows: Vec::new(),
            started: 0,
            begun: None,
            amount,
            chunk: vec![7; CHUNK_BYTES],
        })
    }

    fn run(&mut self, shared: &Shared) -> io::Result<()> {
        let mut events = vec![EpollEvent::empty(); EVENTS_MAX];
        while !shared.stop.load(Ordering::Relaxed) {
            let count = wait(&self.epoll, &mut events)?;
            for event in &events[..count] {
                match event.data() {
                    LISTENER => self.accept()?,
                    index => self.send(index as usize)?,
                }
            }
            if shared.go.load(Ordering::Relaxed) {
                self.begin()?;
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        match self.listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(true)?;
                // Unsent data in the kernel only costs memory.
                socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
                socket.set_linger(Some(Duration::ZERO))?;
                if let Amount::Paced(rate) = self.amount {
                    paceline_linux::set_max_pacing_rate(&socket, rate)?;
                }
                let left = if let Amount::Bytes(bytes) = self.amount { bytes } else { u64::MAX };
                self.flows.push(Outgoing { socket, left });
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lets flows begin at [`BEGIN_PER_SECOND`], not all at once. The first flights of thousands of flows would
    /// overflow every queue. A flow that lost its whole flight would wait for timeouts that double.
    fn begin(&mut self) -> io::Result<()> {
        let due = self.begun.get_or_insert_with(Instant::now).elapsed().as_secs_f64() * BEGIN_PER_SECOND;
        let most = (due as usize).saturating_sub(self.started);
        for (index, flow) in self.flows.iter().enumerate().skip(self.started).take(most) {
            self.epoll.add(&flow.socket, EpollEvent::new(EpollFlags::EPOLLOUT, index as u64))?;
            self.started = index + 1;
        }
        Ok(())
    }

    /// Sends one chunk, so that all flows have their turn.
    fn send(&mut self, index: usize) -> io::Result<()> {
        let flow = &mut self.flows[index];
        let len = self.chunk.len().min(usize::try_from(flow.left).unwrap_or(usize::MAX));
        match flow.socket.send(&self.chunk[..len]) {
            Ok(sent) => flow.left -= sent as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(_) => flow.left = 0,
        }
        if flow.left == 0 {
            self.epoll.delete(&flow.socket)?;
        }
        Ok(())
    }
}

/// The client's end of all flows.
struct Receiver {
    epoll: Epoll,
    flows: Vec<Socket>,
    buffer: Vec<MaybeUninit<u8>>,
}

impl Receiver {
    /// Opens the connections. Must run in the client's namespace.
    fn open(lab: &Lab, server: &SockAddr, flows: u32, clients: u8) -> io::Result<Receiver> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut receiver =
            Receiver { epoll, flows: Vec::new(), buffer: vec![MaybeUninit::uninit(); READ_BYTES] };
        for number in 0..flows {
            let socket = Socket::new(Domain::IPV4, Type::STREAM.cloexec(), None)?;
            socket.set_tcp_congestion(CONGESTION_CONTROL.as_bytes())?;
            let client = lab.client_address(false, (number % u32::from(clients.max(1))) as u8);
            socket.bind(&SocketAddr::new(client, 0).into())?;
            socket.connect_timeout(server, PATIENCE)?;
            socket.set_nonblocking(true)?;
            socket.set_linger(Some(Duration::ZERO))?;
            receiver.epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, u64::from(number)))?;
            receiver.flows.push(socket);
        }
        Ok(receiver)
    }

    fn run(&mut self, shared: &Shared) -> io::Result<()> {
        let mut events = vec![EpollEvent::empty(); EVENTS_MAX];
        while !shared.stop.load(Ordering::Relaxed) {
            let count = wait(&self.epoll, &mut events)?;
            for event in &events[..count] {
                self.receive(event.data() as usize, shared)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, index: usize, shared: &Shared) -> io::Result<()> {
        let socket = &self.flows[index];
        // tcp(7), MSG_TRUNC: the bytes are discarded, not copied.
        match socket.recv_with_flags(&mut self.buffer, libc::MSG_TRUNC) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => self.epoll.delete(socket)?,
            Ok(bytes) => {
                shared.received[index].fetch_add(bytes as u64, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// Opens the listener. Must run in the server's namespace.
fn listen(address: IpAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking().cloexec(), None)?;
    // Accepted connections inherit the congestion control.
    socket.set_tcp_congestion(CONGESTION_CONTROL.as_bytes())?;
    socket.bind(&SocketAddr::new(address, 0).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Waits at most 20 ms, so that the caller sees a request to stop.
fn wait(epoll: &Epoll, events: &mut [EpollEvent]) -> io::Result<usize> {
    match epoll.wait(events, EpollTimeout::from(20u8)) {
        Err(nix::errno::Errno::EINTR) => Ok(0),
        result => Ok(result?),
    }
}

const LISTENER: u64 = u64::MAX;
const EVENTS_MAX: usize = 256;
/// Our choice: more than the 1,250 new flows a second of 10 Gbit/s (docs/evidence/scale.md).
const BEGIN_PER_SECOND: f64 = 2_000.0;
const BACKLOG: i32 = 1024;
/// Fits a processor's cache.
const CHUNK_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 4 << 20;
const UNSENT_BYTES_MAX: u32 = 128 << 10;
/// Our choice: a thousand flows open in a second even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Our choice: where a queue overflows, lost segments are sent again after 1, 2 and 4 s.
const PATIENCE_PER_FLOW: Duration = Duration::from_millis(5);
