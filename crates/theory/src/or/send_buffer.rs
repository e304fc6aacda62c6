//! When the sending application stalls: Theorems 10 and 11.
//!
//! The send buffer is a multiple of cwnd, and the application is woken only once a third of it is free.

/// Definition 1 and Theorem 10: true if recovery with opportunistic retransmission can run out of data. The send buffer
/// is `factor` x `cwnd`. `free` is its free space, in the unit of `cwnd`. `beta` is the part of cwnd that recovery
/// leaves (1 for QARR and BARR).
///
/// Recovery can send beta x cwnd of new data on top of the cwnd in flight, Eq. (16). Once more than a third is free,
/// Eq. (17), the application fills the buffer again.
pub fn stalled(factor: f64, beta: f64, cwnd: f64, free: f64) -> bool {
    let buffer = factor * cwnd;
    free > buffer - (1.0 + beta) * cwnd && free <= buffer / 3.0
}

/// Theorem 10: the share of recoveries that stall, 0 to 1. It assumes that when recovery begins, every amount of free
/// space below a third of the buffer is equally likely. The paper has 55 % for factor 2 and beta = 0.7, and measures
/// 61 %.
pub fn theorem_10(factor: f64, beta: f64) -> f64 {
    let wake = factor / 3.0;
    let enough = (factor - (1.0 + beta)).clamp(0.0, wake);
    if wake > 0.0 { (wake - enough) / wake } else { 1.0 }
}

/// Theorem 11, Eq. (21): the least factor of growth with which no recovery stalls. With beta = 1, Eq. (22), it serves every
/// rate reduction and is 3.
pub fn theorem_11(beta: f64) -> f64 {
    3.0 * (1.0 + beta) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_paper() {
        assert!((theorem_10(2.0, 0.7) - 0.55).abs() < 1e-9);
        assert!((theorem_10(2.0, 1.0) - 1.0).abs() < 1e-9);
        assert!(theorem_10(3.0, 1.0).abs() < 1e-9);
        assert!((theorem_11(1.0) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_interval_of_theorem_10() {
        let cwnd = 180.0;
        assert!(!stalled(2.0, 0.7, cwnd, 0.3 * cwnd - 1.0));
        assert!(stalled(2.0, 0.7, cwnd, 0.3 * cwnd + 1.0));
        assert!(stalled(2.0, 0.7, cwnd, 2.0 * cwnd / 3.0 - 1.0));
        assert!(!stalled(2.0, 0.7, cwnd, 2.0 * cwnd / 3.0 + 1.0));
        assert!((0..180).all(|free| !stalled(3.0, 1.0, cwnd, f64::from(free))));
    }
}
