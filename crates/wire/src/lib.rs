//! IPv4, IPv6 and TCP headers: parsing without copying, in-place editing, incremental checksums. The [`Packet`] travels
//! between nodes. No I/O and no clock. No input makes it panic.
#![no_std]

extern crate alloc;

mod buffer;
pub mod checksum;
mod flow;
mod node;
mod packet;
pub mod rate;
pub mod seq;
pub mod time;

pub use buffer::{Block, Buffer, BufferPool};
pub use flow::FlowKey;
pub use node::{Node, PortId};
pub use packet::{
    Checksum, Ecn, Flags, HeaderTemplate, NoRoom, OpaqueReason, Packet, PathMarks, Payload, SackBlocks,
    Segments, Tcp, TcpFields, TcpMut, TcpOptionsRepr, TcpRepr,
};
pub use rate::Rate;
pub use seq::Seq;
pub use time::{Duration, Instant};
