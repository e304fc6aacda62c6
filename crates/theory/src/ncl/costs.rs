//! The cost of a wrong decision, in packets that the sender fails to send: Eqs. (16) to (19). W is the average cwnd.

/// Eq. (16): rounds of congestion avoidance until cwnd is W again.
pub fn n_ca(w_packets: u32) -> u32 {
    w_packets / 2
}

/// Eq. (17), C_S: the cost of a spurious congestion response.
pub fn c_s_packets(w_packets: u32) -> f64 {
    let n = f64::from(n_ca(w_packets));
    0.5 * n * (n + 1.0)
}

/// Eq. (18): rounds of slow start after a timeout until half of W.
pub fn n_ss(w_packets: u32) -> u32 {
    // The smallest n with 2^n >= W / 2; none for a window of up to two packets.
    w_packets.div_ceil(2).max(1).next_power_of_two().trailing_zeros()
}

/// Eq. (19), C_T: the cost of a timeout in place of a congestion response.
pub fn c_t_packets(w_packets: u32) -> f64 {
    let n = n_ss(w_packets);
    f64::from(n) * f64::from(w_packets) - libm::exp2(f64::from(n)) + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The closed forms equal their sums.
    #[test]
    fn closed_forms_are_their_sums() {
        for w in 1..500u32 {
            let half = w / 2;
            let missed: u32 = (1..=n_ca(w)).map(|i| w - (half + i - 1)).sum();
            // Eq. (17) takes W for twice its half; an odd window misses one packet more in each round.
            let odd = (w % 2) * n_ca(w);
            assert_eq!(c_s_packets(w), f64::from(missed - odd), "{w}");
            let sent: u32 = (1..=n_ss(w)).map(|i| 1 << (i - 1)).sum();
            assert_eq!(c_t_packets(w), f64::from(w * n_ss(w)) - f64::from(sent), "{w}");
            let log = libm::ceil(libm::log2(0.5 * f64::from(w))).max(0.0);
            assert_eq!(f64::from(n_ss(w)), log, "{w}");
        }
    }

    #[test]
    fn by_hand() {
        assert_eq!((c_s_packets(20), c_t_packets(20)), (55.0, 65.0));
        assert_eq!((c_s_packets(1), c_t_packets(1), c_t_packets(2)), (0.0, 0.0, 0.0));
    }
}
