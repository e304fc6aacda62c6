//! A TCP endpoint without I/O or clock: packets and time in, packets out.
//!
//! [`Connection`] is one connection, driven by a caller with packets and a clock. [`Endpoint`] is a
//! [`Node`](paceline_wire::Node) over one or many of them. Four traits have algorithms to choose by name:
//! [`CongestionControl`], [`RateReduction`], [`LossDetection`], [`ReceiveWindow`]. [`Status`] shows what a connection
//! does.
//!
//! Payload is bytes or, as in a simulator, only a length. Only the initial sequence number and the offset of timestamps
//! are random. They follow from a seed.
//!
//! ```
//! use core::net::{Ipv4Addr, SocketAddr};
//! use paceline_tcp::{Config, CongestionName, Endpoint};
//! use paceline_wire::{Duration, Instant, Node};
//!
//! let [server_at, client_at] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 80)));
//! let config = Config { congestion: CongestionName::Bbr, ..Config::default() };
//! let (mut server, mut client) = (Endpoint::new(1), Endpoint::new(2));
//! server.listen(server_at, config);
//! let mut now = Instant::ZERO;
//! let download = client.connect(now, client_at, server_at, &config);
//!
//! let (mut upload, mut received) = (None, 0);
//! while received < 100_000 {
//!     // The wire: each packet arrives 10 ms later.
//!     now += Duration::from_millis(10);
//!     server.handle_timeout(now);
//!     client.handle_timeout(now);
//!     while let Some((port, packet)) = client.poll_transmit(now) {
//!         server.handle_packet(now, port, packet);
//!     }
//!     while let Some((port, packet)) = server.poll_transmit(now) {
//!         client.handle_packet(now, port, packet);
//!     }
//!     // The applications.
//!     if let Some(id) = server.accept() {
//!         upload = Some(id);
//!     }
//!     if let Some(connection) = upload.and_then(|id| server.connection_mut(id)) {
//!         while connection.is_writable() {
//!             connection.write_length(1_000_000);
//!         }
//!     }
//!     if let Some(connection) = client.connection_mut(download) {
//!         received += connection.read_all(now);
//!     }
//! }
//! ```
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
pub mod congestion;
mod connection;
mod delivery;
pub mod detection;
mod endpoint;
mod filter;
mod names;
mod ranges;
mod rate_sample;
pub mod receive_window;
mod receiver;
mod reception_rate;
pub mod reduction;
mod rtt;
mod schedule;
mod scoreboard;
mod segment;
mod send_buffer;
mod send_queue;
mod sender;
mod snapshot;
mod status;

pub use config::{Config, Hack1Changes, KeepAlive, ReceiveBuffer, RtoName, TimestampClock, ValidationName};
pub use congestion::{CaState, CongestionControl, CongestionName, HystartName};
pub use connection::{CloseReason, Connection, InitialNumbers, State};
pub use delivery::Delivery;
pub use detection::{DetectionName, LossDetection, NclConfig, TauCd};
pub use endpoint::{ConnectionId, Endpoint, PORT};
pub use filter::{WindowedFilter, WindowedMax, WindowedMin};
pub use names::UnknownName;
pub use ranges::RangeSet;
pub use rate_sample::RateSample;
pub use receive_window::{ReceiveWindow, ReceiveWindowName};
pub use reception_rate::{ReceptionRate, Sampling};
pub use reduction::{RateReduction, ReductionName};
pub use schedule::ScheduleName;
pub use scoreboard::{Mark, Scoreboard, Segment, SendStamp};
pub use send_buffer::SendBufferName;
pub use status::{BusyTime, Episodes, Received, Sent, Status, StatusSummary, Timing, Windows};
