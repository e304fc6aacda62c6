//! Fail-open by packet filter rules that lapse without the gateway.
//!
//! The kernel continues to forward between the interfaces of the gateway. It must not also forward the packets that
//! the gateway forwards itself, but only while the gateway lives. So a rule at the ingress of each interface drops
//! those packets on a bridge: packet sockets see a packet before the rule does. On a router it marks them for a TUN
//! device. The rule works while an element of a set exists, and the element times out unless it is renewed. A second
//! table, behind it, rescales the windows of flows that would otherwise suffer without the gateway.

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
