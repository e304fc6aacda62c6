//! The lab: hosts, links and a gateway on one machine, in network namespaces, with real TCP. A gateway does not need
//! it.
//!
//! | what | file |
//! |---|---|
//! | namespaces that are removed with their creator | `netns.rs` |
//! | servers, gateway, clients and the links between | `lab.rs` |
//! | links with delay, limits and losses; their thread | `emulator.rs`, `emulator/`; `links.rs` |
//! | a gateway as a child | `program.rs` |
//! | transfers and streams of kernel sockets; a proxy of kernel sockets | `endpoint/` |
//! | what passed the gateway | `traffic.rs` |

pub mod emulator;
pub mod endpoint;
mod lab;
mod links;
pub mod netns;
mod program;
mod traffic;

pub use lab::{GatewayKind, Lab, LabConfig};
pub use links::{Links, Reports};
pub use program::GatewayProgram;
pub use traffic::{Count, Traffic};
