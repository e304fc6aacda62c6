//! The traffic of a run.

use std::net::{IpAddr, SocketAddr};

use paceline_wire::{Duration, Rate};

/// All traffic of one run.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// TCP connections.
    pub transfers: Vec<Transfer>,
    /// Streams of UDP datagrams.
    pub streams: Vec<UdpStream>,
    /// Time from the start of the run after which unfinished transfers are given up.
    pub patience: Duration,
    /// Time between two samples of a sender's TCP state, and the width of the bins of received bytes.
    pub sample_interval: Duration,
    /// Compute and compare SHA-256. Off only if the hosts' own cost would hide the measured effect.
    pub verify: bool,
}

impl Traffic {
    /// No traffic yet. Samples are taken every 100 ms, and payload is verified.
    pub fn new(patience: Duration) -> Self {
        let sample_interval = Duration::from_millis(100);
        Traffic { transfers: Vec::new(), streams: Vec::new(), patience, sample_interval, verify: true }
    }
}

/// Direction of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// To the client.
    #[default]
    Down,
    /// To the server.
    Up,
}

/// The amount of data of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This many payload bytes.
    Bytes(u64),
    /// Always data to send, until this time after the start of the run.
    Until(Duration),
}

/// Time at which a transfer's client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// This time after the start of the run.
    At(Duration),
    /// This time after another transfer (its index in [`Traffic::transfers`]) has ended, with or without success.
    After(usize, Duration),
}

/// One TCP connection that carries data in one direction. The client always connects.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The name in reports.
    pub name: String,
    /// Direction of the data.
    pub direction: Direction,
    /// The server's address and port. Each transfer has its own port.
    pub server: SocketAddr,
    /// The client's address.
    pub client: IpAddr,
    /// Start of the transfer.
    pub start: Start,
    /// Amount of data.
    pub amount: Amount,
    /// Seed of the payload.
    pub seed: u64,
    /// How the receiving application reads.
    pub read: ReadPattern,
    /// Options of the server's socket.
    pub server_socket: SocketOptions,
    /// Options of the client's socket.
    pub client_socket: SocketOptions,
}

impl Transfer {
    /// A transfer that begins at once, with a reader without limits and the system's socket options.
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

/// Pattern in which an application reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadPattern {
    /// The average rate. `None` means as fast as data arrives.
    pub rate: Option<Rate>,
    /// Intervals of the run, (from, to), in which nothing is read.
    pub pauses: Vec<(Duration, Duration)>,
}

/// Options of one TCP socket. `None` leaves the system's setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Congestion control by the kernel's name, such as `cubic`.
    pub congestion_control: Option<String>,
    /// A fixed receive window in bytes, without autotuning. Up to 65,535 it is the window of a host without window
    /// scaling, if scaling is also off in its namespace.
    pub window_bytes: Option<u32>,
    /// A fixed send buffer in bytes, without autotuning.
    pub send_buffer_bytes: Option<u32>,
    /// Limit on bytes that the kernel accepts from the application but has not sent.
    pub unsent_bytes_max: Option<u32>,
    /// Minimum retransmission timeout, on kernels with a socket option for it (6.15). Other kernels have it per route.
    pub rto_min: Option<Duration>,
}

/// UDP datagrams at a fixed rate.
#[derive(Clone, Debug)]
pub struct UdpStream {
    /// The name in reports.
    pub name: String,
    /// Direction of the data.
    pub direction: Direction,
    /// The server's address and port.
    pub server: SocketAddr,
    /// The client's address and port.
    pub client: SocketAddr,
    /// Rate in IP bytes, as a link counts them.
    pub rate: Rate,
    /// UDP payload of each datagram in bytes, at least 16.
    pub datagram_bytes: u16,
    /// Time of the first datagram, from the start of the run.
    pub start: Duration,
    /// Time after which no datagram is sent, from the start of the run.
    pub stop: Duration,
}
