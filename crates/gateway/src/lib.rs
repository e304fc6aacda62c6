//! The accelerator between servers and the clients of a radio link, transparent or split. No I/O and no clock.
//!
//! [`Gateway`] is a [`Node`](paceline_wire::Node): it takes packets and time, and gives packets. The design is that of
//! W. S. Wan's thesis, "Transport Layer Optimization for Mobile Data Networks" (CUHK, 2010). Chapters, equations and
//! figures named in this crate are those of the thesis. Each algorithm has its own file. [`GatewayConfig`] can switch
//! it off by name.
#![no_std]

extern crate alloc;

mod ack_clumps;
pub mod auto;
mod base_rtt;
mod baseline;
pub mod bound;
mod by_name;
mod choice;
mod client_drwa;
pub mod config;
mod context;
mod counters;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod exercise;
mod flight;
mod flow;
mod gateway;
mod half_open;
mod handover;
mod handshake;
mod icmp;
mod ids;
mod keyed;
mod late_acks;
mod link_report;
mod mode;
mod modulation;
mod non_tcp;
mod observe;
mod passed_syns;
mod path_estimate;
mod pool;
mod ports;
mod prefix;
mod priority_round_robin;
mod retransmit_buffer;
mod ring;
mod rtt;
pub mod rtt_min;
mod schedule;
mod scheduler_entry;
mod scoreboard;
mod server_rtt;
mod share;
pub mod split;
mod status;
mod subscriber;
mod supply;
mod table;
#[cfg(test)]
mod test_time;
mod timers;
mod unanswered;
mod upload;
mod virtual_window;

pub use choice::Choice;
pub use config::GatewayConfig;
pub use counters::{Counters, PassReason};
pub use gateway::Gateway;
pub use handover::{GatewayState, RestoredGateway, RestoredSplitFlow, SplitState};
pub use handshake::Shifts;
pub use mode::Mode;
pub use observe::{Event, Observer};
pub use ports::{OVERHEARD, RADIO, WAN};
pub use prefix::Prefix;
pub use status::{FlowStage, FlowStatus, FlowTotals, Page, SubscriberStatus};
