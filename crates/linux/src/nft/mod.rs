//! Fail-open by packet filter rules that lapse by themselves.
//!
//! The kernel goes on forwarding between the interfaces of the gateway. What the gateway forwards itself must be kept from the
//! kernel, but only while the gateway lives: a rule at the ingress of each interface drops those packets (on a bridge; packet
//! sockets see a packet before the rule does) or marks them for a TUN device (on a router) as long as an element of a set
//! exists. The element times out unless it is renewed. A second table, behind it, rescales the windows of flows that would
//! otherwise suffer without the gateway.

mod batch;
mod expression;
mod fail_open;
mod inspect;
mod rescale;
mod table;

pub use fail_open::{FailOpen, FailOpenConfig, Refreshed};
#[cfg(any(test, fuzzing))]
pub(crate) use inspect::base_chain;
pub use inspect::{BaseChain, base_chains};
pub use rescale::{CHANGES_MAX, FlowChange, RescaleConfig, RescaleTable};
