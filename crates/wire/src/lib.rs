//! IPv4, IPv6 and TCP headers: parse without copying, edit in place, incremental checksums; and the [`Packet`] that
//! travels between nodes. No I/O, no clock; no bytes make it panic.
#![no_std]

extern crate alloc;

pub mod rate;
pub mod seq;
pub mod time;

pub use rate::Rate;
pub use seq::Seq;
pub use time::{Duration, Instant};
