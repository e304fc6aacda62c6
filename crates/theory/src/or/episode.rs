//! One loss recovery phase: input and output of the theorems.

use core::fmt;

/// The system model of Section III at the moment at which recovery begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    c_packets_per_s: f64,
    u_s: f64,
    aw_packets: u32,
    n_packets: u32,
    beta: f64,
}

/// Values for which the model says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainError {
    /// Rate and propagation delay are positive and finite.
    NoPath,
    /// At least one packet is lost, and at least one of the window is not.
    BurstOutsideWindow,
    /// The reduction factor lies above 0 and is at most 1.
    NoReductionFactor,
    /// The receive window holds at least the bandwidth-delay product and four packets.
    WindowBelowPath,
    /// A probability of loss lies above 0 and below 1.
    NoProbability,
    /// An efficiency lies above 0 and below 1.
    NoEfficiency,
}

/// The result of a theorem for an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// I_min: the least time, in seconds, in which the bottleneck sends nothing before the first packet that an ACK of
    /// recovery released.
    pub i_min_s: f64,
    /// Packets that the bottleneck sends in the rounds that `i_min_s` covers.
    pub sent_packets: f64,
    /// C, packets per second.
    pub c_packets_per_s: f64,
}

impl Episode {
    /// `c_packets_per_s` is C, the rate of the bottleneck. `u_s` is U, the propagation delay of the round trip.
    /// `aw_packets` is AW, the receive window, which also limits cwnd. `n_packets` of it are lost. `beta` is the part
    /// of cwnd that remains.
    ///
    /// # Errors
    /// Values for which the model says nothing.
    pub fn new(
        c_packets_per_s: f64,
        u_s: f64,
        aw_packets: u32,
        n_packets: u32,
        beta: f64,
    ) -> Result<Episode, DomainError> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !positive(c_packets_per_s) || !positive(u_s) {
            return Err(DomainError::NoPath);
        }
        if n_packets == 0 || n_packets >= aw_packets {
            return Err(DomainError::BurstOutsideWindow);
        }
        if !positive(beta) || beta > 1.0 {
            return Err(DomainError::NoReductionFactor);
        }
        Ok(Episode { c_packets_per_s, u_s, aw_packets, n_packets, beta })
    }

    /// C, packets per second.
    pub fn c_packets_per_s(&self) -> f64 {
        self.c_packets_per_s
    }

    /// U, seconds.
    pub fn u_s(&self) -> f64 {
        self.u_s
    }

    /// C x U: packets that the path holds without a queue.
    pub fn bdp_packets(&self) -> f64 {
        self.c_packets_per_s * self.u_s
    }

    /// AW, packets.
    pub fn aw_packets(&self) -> u32 {
        self.aw_packets
    }

    /// n, packets.
    pub fn n_packets(&self) -> u32 {
        self.n_packets
    }

    /// AW - n: packets in flight when recovery begins, at least 1.
    pub fn pipe_packets(&self) -> u32 {
        self.aw_packets - self.n_packets
    }

    /// beta x AW, rounded up: ssthresh after the reduction, in packets.
    pub fn ssthresh_packets(&self) -> u32 {
        scaled_up(self.beta, self.aw_packets)
    }

    /// In each of `rounds` rounds `window_packets` are sent. The first ACK of a round releases its last packet. The
    /// bottleneck idles for the rest of the round.
    pub(super) fn rounds(&self, rounds: u32, window_packets: u32) -> Recovery {
        let sent = f64::from(window_packets.saturating_sub(1));
        let idle_s = self.u_s - sent / self.c_packets_per_s;
        self.recovered(f64::from(rounds) * idle_s, f64::from(rounds) * sent)
    }

    pub(super) fn recovered(&self, idle_s: f64, sent_packets: f64) -> Recovery {
        Recovery { i_min_s: idle_s.max(0.0), sent_packets, c_packets_per_s: self.c_packets_per_s }
    }
}

impl Recovery {
    /// eta: the share of the bottleneck used during recovery, 0 to 1.
    ///
    /// Eq. (8) prints n in the place of the packets sent, which does not give the paper's own tables. With the packets
    /// sent in the rounds that I_min counts, all 72 of its numerical cells come out. All of these have a single round.
    /// Our choice for several rounds: both sides count all of them, because a share of time compares like with like.
    pub fn utilization(&self) -> f64 {
        let possible = self.c_packets_per_s * self.i_min_s + self.sent_packets;
        if possible > 0.0 { self.sent_packets / possible } else { 0.0 }
    }
}

/// `ceil(factor * packets)`. A product that differs from a whole number only in the last bits of a float counts as
/// whole.
pub(super) fn scaled_up(factor: f64, packets: u32) -> u32 {
    libm::ceil(factor * f64::from(packets) - 1e-6) as u32
}

impl fmt::Display for DomainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DomainError::NoPath => "rate and propagation delay must be positive",
            DomainError::BurstOutsideWindow => "lost packets: at least 1, and fewer than the window",
            DomainError::NoReductionFactor => "beta must lie above 0 and be at most 1",
            DomainError::WindowBelowPath => "the receive window must hold what the path holds",
            DomainError::NoProbability => "a probability of loss must lie between 0 and 1",
            DomainError::NoEfficiency => "an efficiency must lie between 0 and 1",
        })
    }
}

impl core::error::Error for DomainError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_does_not_cover_is_refused() {
        assert_eq!(Episode::new(0.0, 0.1, 10, 1, 0.7), Err(DomainError::NoPath));
        assert_eq!(Episode::new(1.0, f64::NAN, 10, 1, 0.7), Err(DomainError::NoPath));
        assert_eq!(Episode::new(1.0, 0.1, 10, 10, 0.7), Err(DomainError::BurstOutsideWindow));
        assert_eq!(Episode::new(1.0, 0.1, 10, 0, 0.7), Err(DomainError::BurstOutsideWindow));
        assert_eq!(Episode::new(1.0, 0.1, 10, 1, 1.1), Err(DomainError::NoReductionFactor));
    }

    #[test]
    fn a_product_that_is_whole_is_not_rounded_up() {
        assert_eq!(scaled_up(0.7, 180), 126);
        assert_eq!(scaled_up(0.7, 10), 7);
        assert_eq!(scaled_up(0.5, 181), 91);
    }
}
