//! The lab: hosts, links and a gateway on one machine, in network namespaces, with real TCP. A gateway needs nothing of it.
//!
//! | what | file |
//! |---|---|
//! | namespaces that go away with their maker | `netns.rs` |
//! | servers, gateway, clients and the links between | `lab.rs` |
//! | links that delay, limit and lose packets; their thread | `emulator.rs`, `emulator/`; `links.rs` |
//! | a gateway as a child | `program.rs` |
//! | transfers and streams of the kernel's sockets; a proxy of them | `endpoint/` |
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
