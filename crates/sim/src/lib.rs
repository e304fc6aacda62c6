//! A deterministic simulator of paths between TCP endpoints, with the gateway in between.
//!
//! [`run`](fn@run) takes a [`Scenario`] (links, a gateway or none, flows) and gives a [`RunResult`](result::RunResult).
//! Underneath, [`Network`] holds nodes (anything that is a [`Node`](paceline_wire::Node)), links
//! ([`paceline_path::Link`]) and queues of events ordered by time and insertion. Nothing in it reads a clock. Every
//! random choice has a name within the run's seed. So the same seed gives the same run to the bit, on every machine and
//! beside any number of other runs.
//!
//! ```
//! use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
//! use paceline_sim::scenario::{Flow, Load, PathLink, Scenario, TcpFlow, Transport};
//! use paceline_sim::workload::SizeRange;
//! use paceline_wire::{Duration, Rate};
//!
//! let delay = Delay::Constant(Duration::from_millis(20));
//! let down = LinkConfig {
//!     rate: RateProcess::Constant(Rate::from_mbps(20.0)),
//!     queue: QueueLimit::Packets(100),
//!     delay: delay.clone(),
//!     ..LinkConfig::default()
//! };
//! let up = LinkConfig { delay, ..LinkConfig::default() };
//! let tcp = TcpFlow { load: Load::Size(SizeRange::exactly(1_000_000)), ..TcpFlow::default() };
//! let scenario = Scenario {
//!     path: vec![PathLink { name: "radio".into(), down, up }],
//!     flows: vec![Flow { transport: Transport::Tcp(Box::new(tcp)), ..Flow::default() }],
//!     ..Scenario::default()
//! };
//! let result = paceline_sim::run(&scenario)?;
//! assert!(result.flows[0].completed && result.flows[0].goodput_mbps > 8.0);
//! # Ok::<(), paceline_sim::ScenarioError>(())
//! ```
//!
//! | what | file |
//! |---|---|
//! | events in order | `queue.rs` |
//! | nodes, links, switches, taps, the loop | `network.rs` |
//! | a scenario as a network | `topology.rs` |
//! | one run, many runs | `run.rs`; transfers and their results `run/group.rs` |
//! | TCP hosts, datagrams | `host/` |
//! | applications | `workload.rs` |
//! | delays and reordering | `measure/` |
//! | what endpoints and gateways must not do | `checker.rs`, `checker/gateway.rs`; the gateway's tests are `tests/gateway/` |
//! | faults by seed | `faults.rs`; the swarm is `tests/swarm.rs` |
//! | wireless paths by name, and flows measured over them | `wireless/` |
//! | published experiments | `reproduce/` |

pub mod checker;
pub mod faults;
pub mod host;
pub mod measure;
mod network;
mod queue;
pub mod reproduce;
pub mod result;
mod run;
pub mod scenario;
mod seed;
mod topology;
pub mod wireless;
pub mod workload;

pub use network::{Counts, Hop, LinkId, Network, NodeId, Progress, RouteBy, SwitchId, Tap};
pub use queue::EventQueue;
pub use run::{RunObserver, run, run_all, run_tapped, run_watched};
pub use scenario::{Scenario, ScenarioError};
pub use seed::seed_of;
pub use topology::transfer_of;
