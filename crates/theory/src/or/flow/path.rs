//! The input of a flow's prediction: its path, and the policy of its sender.

use super::growth::Growth;
use crate::or::RateReduction;

/// The path of a flow, and how often it loses packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPath {
    /// C: rate of the bottleneck, packets per second.
    pub c_packets_per_s: f64,
    /// U: round trip without queues, seconds.
    pub u_s: f64,
    /// AW: the receive window, packets.
    pub aw_packets: f64,
    /// p: the probability that a packet is lost, repairs included.
    pub loss: f64,
}

/// How a sender reacts to losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPolicy {
    /// What cwnd does during recovery.
    pub reduction: RateReduction,
    /// True if new data may go beyond the receive window during recovery.
    pub opportunistic: bool,
    /// How cwnd grows, and the part of it that remains after a loss.
    pub growth: Growth,
    /// What happens when a repair is lost.
    pub lost_repair: LostRepair,
}

/// How the loss of a repair is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LostRepair {
    /// Never: the link spares repairs (`Optimized (Optimal)` in Tables 14 and 15).
    Spared,
    /// By loss detection, a round trip later, as with RACK or Hack 1. With opportunistic retransmission the data of
    /// that round exceeded the receiver's window, and the receiver had to discard it. The next round has no window
    /// left, so two rounds are lost. Without it, one round is idle.
    Detected,
    /// By the retransmission timeout, in seconds. Nothing useful leaves until then. Slow start has to reach the window
    /// again, and ssthresh has to grow back.
    Timeout(f64),
}
