//! Fail-open of a bridged gateway: a packet filter rule that lapses by itself.
//!
//! The kernel's bridge goes on forwarding between the ports of the gateway. What the gateway forwards itself must be kept from
//! the bridge, but only while the gateway lives: a rule at the ingress of each port drops those packets as long as an element
//! of a set exists. The element times out unless it is renewed. Packet sockets see a packet before the rule does.

mod batch;
mod expression;
mod fail_open;

pub use fail_open::{FailOpen, FailOpenConfig, Refreshed};
