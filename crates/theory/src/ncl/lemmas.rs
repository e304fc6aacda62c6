//! Lemmas 1 to 4 as functions.

/// Lemma 1, Eq. (3): goodput over throughput when a share `p_l` is lost and a share `zeta` of the others is later than tau_RD.
pub fn goodput_per_throughput(p_l: f64, zeta: f64) -> f64 {
    1.0 / ((1.0 + p_l) + zeta * (1.0 - p_l))
}

/// Lemmas 2 and 3, Eqs. (5) to (7): true if an ACK within tau_CD excludes a congestive loss. It does until tau_u.
/// Before that time no retransmission of a packet lost to congestion can be acknowledged.
pub fn not_congestive(tau_cd_s: f64, tau_u_s: f64) -> bool {
    tau_cd_s <= tau_u_s
}

/// Lemma 4, Eq. (12): the probability that neither copy of a packet is acknowledged by t after the retransmission. The
/// probability that a round trip takes at most t is `f` = F(t).
pub fn unacknowledged(p_c: f64, p_w: f64, f: f64) -> f64 {
    p_c + (1.0 - (1.0 - (p_c + p_w)) * f) * p_w
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_are_what_goodput_lacks() {
        assert_eq!(goodput_per_throughput(0.0, 0.0), 1.0);
        assert!((goodput_per_throughput(0.1, 0.05) - 1.0 / 1.145).abs() < 1e-12);
        assert!(goodput_per_throughput(0.1, 0.2) < goodput_per_throughput(0.1, 0.1));
    }

    #[test]
    fn before_any_round_trip_every_loss_is_unacknowledged() {
        assert!((unacknowledged(0.01, 0.05, 0.0) - 0.06).abs() < 1e-12);
        // After the longest round trip two kinds remain: congestive losses, and others whose retransmission was lost.
        assert!((unacknowledged(0.01, 0.05, 1.0) - (0.01 + 0.06 * 0.05)).abs() < 1e-12);
    }

    #[test]
    fn an_ack_tells_until_tau_u() {
        assert!(not_congestive(0.05, 0.06) && !not_congestive(0.07, 0.06));
    }
}
