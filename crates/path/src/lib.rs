//! A link without I/O: rate, queue, propagation, and impairments of a radio link.
//!
//! [`Link`] is one direction of a path. A driver with packets and a clock uses it: a simulator, or an emulator between
//! two network interfaces. Departures follow a virtual clock, so that a late caller does not change the rate. Every
//! random choice follows from a seed, so that a run repeats to the bit on every machine.
//!
//! The [rate](RateProcess) is constant, changes in steps, or follows a [`Trace`] of delivery opportunities. A trace is
//! read from one of three [formats](TraceFormat) or [generated](TraceModel). [`Oracle`] gives the best result that any
//! sender could reach. A duplex path is two links with two seeds.
//!
//! ```
//! use core::net::{Ipv4Addr, SocketAddr};
//! use paceline_path::{Delay, Link, LinkConfig, QueueLimit, RateProcess};
//! use paceline_wire::{Duration, FlowKey, Instant, Packet, Payload, Rate, TcpRepr};
//!
//! let config = LinkConfig {
//!     rate: RateProcess::Constant(Rate::from_mbps(12.0)), // 1,500 bytes in a millisecond
//!     queue: QueueLimit::Bytes(300_000),
//!     delay: Delay::Constant(Duration::from_millis(50)),
//!     ..LinkConfig::default()
//! };
//! let mut link = Link::new(config, 1, Instant::ZERO)?;
//!
//! let [server, client] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 80)));
//! for _ in 0..3 {
//!     let segment = Packet::build_tcp(FlowKey::new(server, client), &TcpRepr::default(), Payload::Length(1_460));
//!     link.send(Instant::ZERO, segment);
//! }
//! let mut arrivals = Vec::new();
//! while let Some(event) = link.next_event() {
//!     link.advance(event, &mut |delivered| arrivals.push((delivered.at, delivered.queue_delay)));
//! }
//! let ms = Duration::from_millis;
//! let expected = [(51, 0), (52, 1), (53, 2)].map(|(at, waited)| (Instant::ZERO + ms(at), ms(waited)));
//! assert_eq!(arrivals, expected);
//! # Ok::<(), paceline_path::ConfigError>(())
//! ```
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod aqm;
mod bottleneck;
mod config;
mod counters;
mod delay;
mod delivered;
mod error;
mod failed;
mod flight;
mod generate;
mod impairment;
mod link;
mod link_layer;
mod loss;
mod oracle;
mod originals;
mod outage;
mod packet_store;
mod policer;
mod queue;
mod queue_limit;
pub mod random;
mod rate;
mod reorder;
mod reorder_hold;
mod source;
#[cfg(test)]
mod testing;
mod text;
mod trace;
pub mod units;

pub use aqm::{AbcConfig, Aqm, CodelConfig, FqCodelConfig, PieConfig, RedConfig};
pub use config::LinkConfig;
pub use counters::{Count, LinkCounters};
pub use delay::{Delay, DelayStep, Jitter};
pub use delivered::Delivered;
pub use error::ConfigError;
pub use generate::{Handover, ModelName, TraceModel};
pub use link::Link;
pub use link_layer::LinkRetransmission;
pub use loss::{GilbertElliott, LoadLoss, LoadPoint, Loss, LossScope, ScriptedLoss};
pub use oracle::{Oracle, OraclePath};
pub use outage::{OutageEffect, OutageWindow, Outages, PeriodicOutage};
pub use policer::Policer;
pub use queue_limit::QueueLimit;
pub use rate::{RateProcess, RateStep};
pub use reorder::Reorder;
pub use source::{RateSource, SourceError, TraceFile};
pub use trace::{
    Gaps, LineProblem, OPPORTUNITY_BYTES, Pause, RateStats, Sample, Series, Trace, TraceError, TraceFormat,
    TraceOptions,
};
