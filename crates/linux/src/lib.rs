//! Packet I/O, the event loop, netlink and nftables on Linux: all that a gateway needs, without the lab.

pub mod handover;
pub mod netlink;
pub mod nft;
pub mod offload;
pub mod shift_file;
pub mod sysctl;
mod system_error;
pub mod tun_routes;

pub use system_error::{Context, SystemError};

mod af_packet;
pub mod clock;
mod event_loop;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod exercise;
mod fallback;
mod filter;
mod frame;
mod holder;
mod icmp_listener;
mod mmsg;
mod null;
mod outbox;
mod port;
pub mod privilege;
mod quantiles;
mod read_batch;
#[cfg(target_pointer_width = "64")]
pub mod seccomp;
#[cfg(not(target_pointer_width = "64"))]
#[path = "no_seccomp.rs"]
pub mod seccomp;
mod signal;
mod slice;
mod sockopt;
#[cfg(test)]
mod testing;
pub mod timer;
mod tun;
pub mod virtio;

pub use af_packet::PacketSocket;
pub use event_loop::{EventLoop, EventLoopConfig, Housekeeping, LoopCounters, LoopEnd};
pub use fallback::Fallback;
pub use filter::Filter;
pub use icmp_listener::IcmpListener;
pub use null::NullForwarder;
pub use outbox::OutboxCounters;
pub use port::{Device, PortCounters};
pub use quantiles::Quantiles;
pub use signal::{StopHandle, Termination};
pub use slice::{Side, Slice};
pub use sockopt::{set_max_pacing_rate, set_option, tcp_info};
pub use tun::Tun;
