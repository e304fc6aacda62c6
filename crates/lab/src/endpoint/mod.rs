//! The hosts of a lab run: TCP transfers and UDP streams between two namespaces, measured from both ends.
//!
//! Each host has one thread for all its connections. Payload is pseudo-random from a seed. The SHA-256 of the sent
//! bytes is compared with that of the received bytes. Every run ends when it is cancelled, or when its patience is
//! over.

mod connection;
mod control;
mod host;
mod mib;
mod payload;
mod poller;
mod proxy;
mod read_pace;
mod report;
mod run;
mod socket;
mod tcp_info;
mod traffic;
mod udp;

pub use control::Control;
pub use mib::{MibCounters, MibSample};
pub use payload::PayloadSource;
pub use proxy::{Proxy, ProxyConfig, ProxyCounters, ProxyThread};
pub use report::{TrafficReport, TransferReport, UdpReport};
pub use run::run;
pub use tcp_info::TcpSample;
pub use traffic::{Amount, Direction, ReadPattern, SocketOptions, Start, Traffic, Transfer, UdpStream};
