//! What is to be transferred.

use std::net::{IpAddr, SocketAddr};

use paceline_wire::{Duration, Rate};

/// All traffic of one run.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// TCP connections.
    pub transfers: Vec<Transfer>,
    /// Streams of UDP datagrams.
    pub streams: Vec<UdpStream>,
    /// When whatever is unfinished is given up, from the start of the run.
    pub patience: Duration,
    /// Time between two samples of a sender's TCP state, and the width of the bins of received bytes.
    pub sample_interval: Duration,
    /// Compute and compare SHA-256; off only where the hosts' own cost would hide what is measured.
    pub verify: bool,
}

impl Traffic {
    /// No traffic yet; samples every 100 ms, payload verified.
    pub fn new(patience: Duration) -> Self {
        let sample_interval = Duration::from_millis(100);
        Traffic { transfers: Vec::new(), streams: Vec::new(), patience, sample_interval, verify: true }
    }
}

/// Where data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// To the client.
    #[default]
    Down,
    /// To the server.
    Up,
}

/// How much a transfer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many payload bytes.
    Bytes(u64),
    /// Always data to send, until this long after the start of the run.
    Until(Duration),
}

/// When a transfer's client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// So long after the start of the run.
    At(Duration),
    /// So long after another transfer (its place in [`Traffic::transfers`]) has ended, well or badly.
    After(usize, Duration),
}

/// One TCP connection that carries data one way. The client always connects.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// For reports.
    pub name: String,
    /// Where the data goes.
    pub direction: Direction,
    /// The server's address and port. Each transfer has a port of its own.
    pub server: SocketAddr,
    /// The client's address.
    pub client: IpAddr,
    /// When it begins.
    pub start: Start,
    /// How much.
    pub amount: Amount,
    /// Of the payload.
    pub seed: u64,
    /// How the receiving application reads.
    pub read: ReadPattern,
    /// Options of the server's socket.
    pub server_socket: SocketOptions,
    /// Options of the client's socket.
    pub client_socket: SocketOptions,
}

impl Transfer {
    /// A transfer that begins at once, read as fast as it comes, with the system's socket options.
    pub fn new(name: impl Into<String>, server: SocketAddr, client: IpAddr, amount: Amount) -> Self {
        Transfer {
            name: name.into(),
            direction: Direction::Down,
            server,
            client,
            start: Start::At(Duration::ZERO),
            amount,
            seed: u64::from(server.port()),
            read: ReadPattern::default(),
            server_socket: SocketOptions::default(),
            client_socket: SocketOptions::default(),
        }
    }
}

/// How an application reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadPattern {
    /// On average; `None` is as fast as data comes.
    pub rate: Option<Rate>,
    /// Stretches of the run, (from, to), in which nothing is read.
    pub pauses: Vec<(Duration, Duration)>,
}

/// Options of one TCP socket; what is `None` is left as the system has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// By the kernel's name, such as `cubic`.
    pub congestion_control: Option<String>,
    /// A fixed receive window in bytes, without autotuning. Up to 65,535 it is what a host without window scaling has, if
    /// scaling is also switched off in its namespace.
    pub window_bytes: Option<u32>,
    /// A fixed send buffer in bytes, without autotuning.
    pub send_buffer_bytes: Option<u32>,
    /// Data beyond what may be sent that the kernel takes from the application.
    pub unsent_bytes_max: Option<u32>,
    /// Send small segments at once.
    pub no_delay: bool,
    /// Minimum retransmission timeout, on kernels with a socket option for it (6.15); others have a route's.
    pub rto_min: Option<Duration>,
}

/// UDP datagrams at a fixed rate.
#[derive(Clone, Debug)]
pub struct UdpStream {
    /// For reports.
    pub name: String,
    /// Where the data goes.
    pub direction: Direction,
    /// The server's address and port.
    pub server: SocketAddr,
    /// The client's address and port.
    pub client: SocketAddr,
    /// Of IP bytes, as a link counts them.
    pub rate: Rate,
    /// UDP payload of each datagram, at least 16.
    pub datagram_bytes: u16,
    /// First datagram, from the start of the run.
    pub start: Duration,
    /// No datagram from here on, from the start of the run.
    pub stop: Duration,
}
