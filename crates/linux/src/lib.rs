//! Packet I/O, the event loop and the lab on Linux. The only crate with `unsafe`, sockets and devices.

pub mod lab;
pub mod netlink;
pub mod netns;
pub mod offload;
pub mod sysctl;
mod system_error;

pub use system_error::SystemError;
