//! Beyond the paper: how well a whole flow uses its link, as a function of loss and bandwidth-delay product, and the
//! smallest product at which a promised efficiency is lost. The paper leaves both open (Sections VIII and IX).
//!
//! All of it is about one long flow, without its slow start, on a link that loses each packet with probability p and has a
//! queue for everything else. The receive window AW holds at least what the path holds, C x U.
//!
//! # Adaptive rate reduction (QARR, BARR): only the receive window limits
//!
//! *As found.* Let packet j be the first one lost after a recovery. The sender can go on up to j + AW - 1 and no further
//! until j is repaired. Its repair leaves the sender after a round trip, joins the queue behind those packets, and leaves the
//! bottleneck right after j + AW - 1. From then the bottleneck has only the repairs of other packets, until the ACK of the
//! first repair comes back U later: it idles for U - (n - 1) / C, which is Theorem 4. Whatever else was lost among the
//! AW packets is repaired by then, or soon enough to stop nothing: the first of these holes to stand at the head of
//! the window does so only after the window has moved by its distance, and its repair, sent while the link idled, has come
//! by then. So losses within AW packets cost one idle time together, and the next one that costs is the first among
//! the packets from j + AW on, 1 / p further on average. A cycle thus has
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
//! *With opportunistic retransmission* nothing idles as long as repairs arrive (Theorem 9). A repair is lost with probability
//! p: that happens to p^2 of the packets, and again AW packets share one such event. What it costs is
//! [`LostRepair`]'s to say; the cycle is 1/p^2 + AW - 1 new packets long.
//!
//! # Rate reductions that lower ssthresh (RFC 6675, RH, PRR): the congestion window limits, too
//!
//! The window w at which a loss is found is a Markov chain: recovery takes one round, in which at most beta w leaves, and,
//! without opportunistic retransmission, not more than the repairs and AW - w; then the window grows by its law from beta w
//! until the next loss, which comes after a geometric number of packets and is found a round later. The chain is solved
//! on a grid (`chain`).
//!
//! # How far off they are
//!
//! Against the simulator on 64 paths and senders of 20 and 100 Mbit/s, 50 to 200 ms and losses of 0.01 to 0.5 %, with CUBIC and
//! RACK-TLP, the share of the link differs by [`MEAN_ERROR`] on average and [`LARGEST_ERROR`] at most; `paceline reproduce or
//! --part formulas` measures it again. BARR falls short most, at 0.5 %, where losses lower its estimate of the rate.

mod adaptive;
mod chain;
mod growth;
mod least_bdp;
mod path;

pub use growth::Growth;
pub use least_bdp::least_bdp_packets;
pub use path::{FlowPath, FlowPolicy, LostRepair};

use super::episode::DomainError;

/// Of the share of the link: the formulas from the simulator, the mean over the grid.
pub const MEAN_ERROR: f64 = 0.015;
/// And the largest.
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

/// eta: delivered packets over what the bottleneck could send, 0 to 1, in the long run.
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
