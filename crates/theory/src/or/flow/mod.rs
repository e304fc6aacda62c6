//! Beyond the paper: the use of a link by a whole flow, as a function of loss and bandwidth-delay product. It also
//! gives the smallest product at which a promised efficiency is lost. The paper leaves both open (Sections VIII and
//! IX).
//!
//! The model has one long flow, without its slow start. The link loses each packet with probability p, and queues all
//! others. The receive window AW is at least C x U, the packets that the path holds.
//!
//! # Adaptive rate reduction (QARR, BARR): only the receive window limits
//!
//! *As found.* Let packet j be the first one lost after a recovery. The sender can go on up to j + AW - 1 and no
//! further until j is repaired. Its repair leaves the sender after a round trip and joins the queue behind those
//! packets. It leaves the bottleneck right after j + AW - 1. From then on the bottleneck has only the repairs of other
//! packets, until the ACK of the first repair comes back U later. So it idles for U - (n - 1) / C, which is Theorem 4.
//! Other losses among the AW packets are repaired by then, or soon enough to stop nothing. The first of these holes
//! reaches the head of the window only after the window has moved by its distance. By then its repair, sent while the
//! link idled, has come. So losses within AW packets cost one idle time together. The next one that costs is the first
//! among the packets from j + AW on, 1 / p further on average. A cycle thus has
//!
//! ```text
//! N = 1/p + AW - 1   new packets,    n = p N   of them lost,    C I_min = max(C U - (n - 1), 0)   packets of idle time.
//! eta = N / (N + n + C I_min)  =  (1/p + AW - 1) / (1/p + AW + C U)   as long as n - 1 < C U.
//! ```
//!
//! With AW = a C U the product C U at which eta falls to E is
//!
//! ```text
//! C U = ((1 - E) / p - 1) / (E (1 + a) - a),
//! ```
//!
//! and there is none if E <= a / (1 + a): however long the path, one idle round follows at most one busy one.
//!
//! *With opportunistic retransmission* nothing idles as long as repairs arrive (Theorem 9). A repair is lost with
//! probability p. This happens to p^2 of the packets, and again AW packets share one such event. [`LostRepair`] gives
//! its cost. The cycle is 1/p^2 + AW - 1 new packets long.
//!
//! # Rate reductions that lower ssthresh (RFC 6675, RH, PRR): the congestion window limits, too
//!
//! The window w at which a loss is found is a Markov chain. Recovery takes one round, in which at most beta w packets
//! leave. Without opportunistic retransmission, these are not more than the repairs and AW - w. Then the window grows
//! by its law from beta w until the next loss. That comes after a geometric number of packets and is found a round
//! later. The chain is solved on a grid (`chain`).
//!
//! # Accuracy
//!
//! The reference is the simulator on 64 paths and senders, with CUBIC and RACK-TLP. Rates are 20 and 100 Mbit/s, delays
//! 50 to 200 ms and losses 0.01 to 0.5 %. The share of the link differs by [`MEAN_ERROR`] on average and
//! [`LARGEST_ERROR`] at most. `paceline reproduce or --part formulas` measures it again. BARR falls short most, at
//! 0.5 %, where losses lower its estimate of the rate.

mod adaptive;
mod chain;
mod growth;
mod least_bdp;
mod path;

pub use growth::Growth;
pub use least_bdp::least_bdp_packets;
pub use path::{FlowPath, FlowPolicy, LostRepair};

use super::episode::DomainError;

/// Difference between formulas and simulator in the share of the link: the mean over the grid.
pub const MEAN_ERROR: f64 = 0.015;
/// The largest such difference.
pub const LARGEST_ERROR: f64 = 0.07;

impl FlowPath {
    /// C x U, packets.
    pub fn bdp_packets(&self) -> f64 {
        self.c_packets_per_s * self.u_s
    }

    fn check(&self) -> Result<(), DomainError> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !positive(self.c_packets_per_s) || !positive(self.u_s) {
            return Err(DomainError::NoPath);
        }
        if !positive(self.loss) || self.loss >= 1.0 {
            return Err(DomainError::NoProbability);
        }
        if self.aw_packets.is_nan() || self.aw_packets < self.bdp_packets() || self.aw_packets < 4.0 {
            return Err(DomainError::WindowBelowPath);
        }
        Ok(())
    }
}

/// eta: delivered packets divided by the packets that the bottleneck could send in the long run, 0 to 1.
///
/// # Errors
/// Values for which the model says nothing.
pub fn utilization(path: &FlowPath, policy: &FlowPolicy) -> Result<f64, DomainError> {
    path.check()?;
    Ok(if policy.reduction.is_adaptive() {
        adaptive::utilization(path, policy)
    } else {
        chain::utilization(path, policy)
    })
}

#[cfg(test)]
mod tests;
