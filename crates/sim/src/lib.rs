//! A deterministic simulator of paths between TCP endpoints, with the gateway in between.
//!
//! [`Network`] holds nodes (anything that is a [`Node`](paceline_wire::Node)), links ([`paceline_path::Link`]) and one
//! queue of events ordered by time and insertion. Nothing in it reads a clock, and every random choice has a name within
//! the run's seed, so that the same seed gives the same run to the bit, on every machine and beside any number of others.

pub mod checker;
pub mod faults;
mod host;
pub mod measure;
mod network;
mod queue;
pub mod reproduce;
pub mod result;
mod run;
pub mod scenario;
mod seed;
pub mod statistics;
mod topology;
pub mod workload;

pub use network::{Counts, Hop, LinkId, Network, NodeId, Progress, RouteBy, SwitchId, Tap};
pub use queue::EventQueue;
pub use run::{Watch, run, run_all, run_tapped, run_watched};
pub use scenario::{Scenario, ScenarioError};
pub use seed::seed_of;
pub use topology::transfer_of;
