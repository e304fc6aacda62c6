//! A TCP endpoint without I/O or clock: packets and time in, packets out.
//!
//! [`Connection`] is one connection, driven by whoever has packets and a clock. [`Endpoint`] is a
//! [`Node`](paceline_wire::Node) over one or many of them. The algorithms are exchanged at four seams, by name:
//! [`CongestionControl`], [`RateReduction`], [`LossDetection`], [`SendBuffer`].
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
pub mod congestion;
mod connection;
pub mod detection;
mod endpoint;
mod event;
mod filter;
mod names;
mod ranges;
mod rate_sample;
mod receiver;
pub mod reduction;
mod rtt;
mod scoreboard;
mod segment;
mod send_buffer;
mod send_queue;
mod sender;
mod status;

pub use config::{Config, KeepAlive, ReceiveBuffer};
pub use congestion::{CaState, CongestionControl, CongestionName, HystartName};
pub use connection::{CloseReason, Connection, State};
pub use detection::{DetectionName, LossDetection};
pub use endpoint::{ConnectionId, Endpoint};
pub use event::{Event, Observer};
pub use names::UnknownName;
pub use rate_sample::RateSample;
pub use reduction::{RateReduction, ReductionName};
pub use scoreboard::{Mark, Scoreboard, Segment};
pub use send_buffer::{SendBuffer, SendBufferName};
pub use status::Status;
