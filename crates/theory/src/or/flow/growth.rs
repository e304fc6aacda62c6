//! How a congestion window grows back.

use super::FlowPath;

/// The law of growth in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// One packet per round, halved by a loss (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438), without fast convergence: the chain remembers one window only.
    Cubic,
}

/// C of RFC 9438, Section 5, in packets per second cubed.
const CUBIC_C: f64 = 0.4;

impl Growth {
    /// The part of the window that remains after a loss.
    pub const fn beta(self) -> f64 {
        match self {
            Growth::Reno => 0.5,
            Growth::Cubic => 0.7,
        }
    }

    /// The window `t_s` seconds after it was lowered from `before` to `after` packets, with rounds of `round_s`.
    pub(super) fn window(self, before: f64, after: f64, t_s: f64, round_s: f64) -> f64 {
        match self {
            Growth::Reno => after + t_s / round_s,
            Growth::Cubic => {
                // RFC 9438, Eqs. (1), (2) and (4). Like Linux (bictcp_update), the Reno-friendly slope stays
                // the same when it has passed the old window.
                let k_s = libm::cbrt((before - after).max(0.0) / CUBIC_C);
                let since = t_s - k_s;
                let cubic = CUBIC_C * since * since * since + before;
                let alpha = 3.0 * (1.0 - self.beta()) / (1.0 + self.beta());
                cubic.max(after + alpha * t_s / round_s).max(after)
            }
        }
    }

    /// Packets that the path could have carried, but did not, while a full window grows back after a loss.
    pub(super) fn deficit_packets(self, path: &FlowPath) -> f64 {
        let (bdp, before) = (path.bdp_packets(), path.aw_packets);
        let after = self.beta() * before;
        let mut deficit = 0.0;
        for round in 0..ROUNDS_MAX {
            let window = self.window(before, after, f64::from(round) * path.u_s, path.u_s);
            if window >= bdp {
                break;
            }
            deficit += bdp - window;
        }
        deficit
    }
}

/// Our choice: a bound on loops. Reno needs half a window of rounds, and no window of this model needs more.
pub(super) const ROUNDS_MAX: u32 = 10_000_000;
